package kerneltest

import (
	"testing"

	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
)

// Train runs sampled training steps at the sizes of tiny_1, with ten starts, and returns the
// weights after them, for comparing two runs bit for bit.
func Train(t *testing.T, dev kernel.Device, steps int) []float32 {
	t.Helper()
	return train(t, dev, steps, step{GTConfig: model.GTConfig{Width: 128, Heads: 4, Layers: 3, FeedMul: 2}, nodes: 11, batch: 128,
		mode: kernel.SharedMean, starts: 10, forced: true})
}

// TrainMuon is Train with matrices updated by Muon.
func TrainMuon(t *testing.T, dev kernel.Device, steps int) []float32 {
	t.Helper()
	return train(t, dev, steps, step{GTConfig: model.GTConfig{Width: 128, Heads: 4, Layers: 3, FeedMul: 2}, nodes: 11, batch: 128,
		mode: kernel.SharedMean, starts: 10, forced: true, side: kernel.MuonSide(128)})
}

// TrainWide is Train with one start, the greedy baseline, and as many rows as the kernels for many
// of them ask for.
func TrainWide(t *testing.T, dev kernel.Device, steps int) []float32 {
	t.Helper()
	return train(t, dev, steps, step{GTConfig: model.GTConfig{Width: 128, Heads: 4, Layers: 2, FeedMul: 2}, nodes: 51, batch: 170,
		mode: kernel.Given, starts: 1})
}

// TrainNear is TrainWide at the sizes of tiny_1, for which a device may have kernels that do much
// at once.
func TrainNear(t *testing.T, dev kernel.Device, steps int) []float32 {
	t.Helper()
	return train(t, dev, steps, step{GTConfig: model.GTConfig{Width: 128, Heads: 4, Layers: 2, FeedMul: 2}, nodes: 11, batch: 127,
		mode: kernel.Given, starts: 1})
}

func train(t *testing.T, dev kernel.Device, steps int, s step) []float32 {
	t.Helper()
	tr := s.on(t, dev, kernel.Sample)
	check(t, tr.run.SetControl(kernel.Control{LearningRate: stepRate, Temperature: 1, Coefficients: bonus(0.01)}))
	for range steps {
		check(t, tr.run.Run())
	}
	weights := make([]float32, tr.layout.Len)
	check(t, tr.store.ReadWeights(weights))
	check(t, tr.run.Close())
	return weights
}

// Gradient is a step's gradient at N nodes with one or two starts per instance, along given
// actions, or along sampled ones where there are none, which it returns: what devices of different
// precision can be compared by.
func Gradient(t *testing.T, dev kernel.Device, nodes, batch, starts int, actions []int32) (grad []float32, along []int32) {
	t.Helper()
	s := step{GTConfig: model.GTConfig{Width: 128, Heads: 4, Layers: 3, FeedMul: 2}, nodes: nodes, batch: batch, mode: kernel.SharedMean,
		starts: starts}
	if starts == 1 {
		s.mode = kernel.Running // a mean of its own length would leave nothing
	}
	choice := kernel.Sample
	if actions != nil {
		choice = kernel.Replay
	}
	tr := s.on(t, dev, choice)
	defer tr.run.Close()
	// the weights stay as they are
	check(t, tr.run.SetControl(kernel.Control{Temperature: temperature, Coefficients: bonus(0.05)}))
	if actions != nil {
		check(t, tr.run.WriteBatch(tr.routes.Actions, actions))
	}
	if s.mode == kernel.Running {
		// With another baseline than these lengths' mean most of the gradient would cancel, and what
		// rounding does to the weights, which is the same in every instance, would be left.
		check(t, tr.run.Run())
		lengths, sum := make([]float32, s.trajectories()), 0.0
		check(t, tr.run.ReadBatch(tr.routes.Length, lengths))
		for _, l := range lengths {
			sum += float64(l)
		}
		check(t, tr.run.SetState(kernel.State{Scalars: map[string]float64{plan.MeanCost: sum / float64(len(lengths)), plan.MeanBatches: 3}}))
	}
	check(t, tr.run.Run())
	along = make([]int32, s.trajectories()*2*nodes)
	check(t, tr.run.ReadBatch(tr.routes.Actions, along))
	grad = make([]float32, tr.layout.Len)
	check(t, tr.run.ReadGrad(grad))
	return grad, along
}
