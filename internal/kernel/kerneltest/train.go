package kerneltest

import (
	"testing"

	"haul/internal/kernel"
	"haul/internal/model"
)

// Train runs sampled training steps at the sizes of tiny_1, with ten starts, and returns the weights after them, for
// comparing two runs bit for bit.
func Train(t *testing.T, dev kernel.Device, steps int) []float32 {
	t.Helper()
	return train(t, dev, steps, step{GTConfig: model.GTConfig{Width: 128, Heads: 4, Layers: 3, FeedMul: 2}, nodes: 11, batch: 128,
		mode: kernel.SharedMean, starts: 10, forced: true})
}

// TrainWide is Train with one start, the greedy baseline, and as many rows as the kernels for many of them ask for.
func TrainWide(t *testing.T, dev kernel.Device, steps int) []float32 {
	t.Helper()
	return train(t, dev, steps, step{GTConfig: model.GTConfig{Width: 128, Heads: 4, Layers: 2, FeedMul: 2}, nodes: 51, batch: 170,
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
