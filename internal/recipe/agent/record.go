package agent

import (
	"fmt"
	"math"

	"haul/internal/comm"
	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/world"
)

// newModel is the network of the settings for worlds of that space.
func newModel(c *config.AD, space world.Space) (*model.AD, error) {
	var observed []model.Vocabulary
	for _, f := range space.Fields {
		observed = append(observed, model.Vocabulary{Name: f.Name, Size: f.Size})
	}
	for _, f := range space.Fields {
		if c.LastObservation {
			observed = append(observed, model.Vocabulary{Name: "last_" + f.Name, Size: f.Size})
		}
	}
	return model.NewAD(model.ADConfig{Width: c.NEmbd, Heads: c.NHead, Layers: c.NLayer, Feed: c.FeedForward(), Positions: c.NTransit,
		Observed: observed, Actions: space.Actions, Rewards: len(space.Rewards), Dropout: float32(c.Dropout), AttentionDropout: float32(c.AttnDropout), DropoutKey: c.Seed})
}

// program is a recorded step over sequences. History is nil where the rows come from the host.
type program struct {
	plan    *plan.Plan
	in      model.Sequences
	history *kernel.Tensor
}

// fed lists what the host writes where it makes the rows, in a slab's order.
func (p *program) fed() []*kernel.Tensor {
	return []*kernel.Tensor{p.in.Index, p.in.Labels, p.in.First}
}

// hostRows records sequences that the host writes.
func hostRows(p *plan.Plan, m *model.AD, tokens int) model.Sequences {
	return model.Sequences{Index: p.RowInts("index", p.B(), tokens, m.Fields()), Labels: p.RowInts("labels", p.B(), tokens, 2),
		First: p.RowInts("first", p.B(), tokens)}
}

// recordStep records a training step, with a peer this process's share of it. With onDevice the
// histories live there and the step draws its own rows from them.
func recordStep(dev kernel.Device, m *model.AD, c *config.AD, l *dataset, onDevice bool, peer kernel.Peer) (*program, error) {
	t := l.trainSpec.Tokens
	p := plan.New("train", dev, c.TrainBatchSize, t, m.Layout())
	out := &program{plan: p}
	if err := p.Divide(c.GradientParts, peer); err != nil {
		return nil, fmt.Errorf("%s: %w", keyBatch, err)
	}
	switch runs := p.Program().Share.Runs(); {
	case runs > 1 && c.GradientAccumulationSteps > 1:
		return nil, fmt.Errorf("gradient_parts %d and gradient_accumulation_steps %d both cut an update on a GPU: leave one of them at 1", c.GradientParts, c.GradientAccumulationSteps)
	case runs > 1 && !onDevice:
		return nil, fmt.Errorf("gradient_parts %d wants the histories on the GPU: the host feeds whole batches (--data device)", c.GradientParts)
	}
	if onDevice {
		out.history = p.Whole("history", len(l.train))
		out.in = model.Sequences{Index: p.ShardInts("index", p.B(), t, m.Fields()), Labels: p.ShardInts("labels", p.B(), t, 2), First: p.ShardInts("first", p.B(), t)}
		p.Append(&kernel.Regions{Index: out.in.Index, Labels: out.in.Labels, First: out.in.First, Records: out.history, RegionSpec: l.trainSpec})
	} else {
		out.in = hostRows(p, m, t)
	}
	sums := p.CrossEntropy("loss", m.Encode(p, out.in, true), out.in.Labels, m.Columns(), float32(c.LabelSmoothing), true)
	p.Backward()
	// An update takes the sum of its parts' gradients, the settings mean their average: with the
	// clipping norm and eps as many times larger both give the same weights.
	parts := float32(c.GradientAccumulationSteps)
	p.Optimize(&kernel.AdamW{Beta1: c.Beta1, Beta2: c.Beta2, Eps: parts * float32(c.AdamEps), Decay: float32(c.WeightDecay),
		MaxNorm: parts * float32(c.GradientClipNorm), Warmup: c.NumWarmupSteps, Total: c.TrainTimesteps, Floor: float32(c.MinLR / c.LR)}, c.GradientAccumulationSteps)
	p.TallyHeads(sums, m.Heads()...)
	return out, nil
}

// recordTest records the loss on rows that the host writes, without dropout; of ranks, each takes
// its share of the rows where they divide.
func recordTest(dev kernel.Device, m *model.AD, c *config.AD, tokens int, w *comm.World) (*program, bool) {
	p := plan.New("test", dev, c.TestBatchSize, tokens, m.Layout())
	shared := w != nil && p.Cut(w.Share()) == nil
	in := hostRows(p, m, tokens)
	p.TallyHeads(p.CrossEntropy("loss", m.Encode(p, in, false), in.Labels, m.Columns(), float32(c.LabelSmoothing), false), m.Heads()...)
	return &program{plan: p, in: in}, shared
}

// learningRate is the rate of iteration i, from 1, as the device's schedule has it.
func learningRate(c *config.AD, i int) float64 {
	if i <= c.NumWarmupSteps {
		return c.LR * float64(i) / float64(c.NumWarmupSteps)
	}
	share := float64(i-c.NumWarmupSteps) / float64(c.TrainTimesteps-c.NumWarmupSteps)
	return c.MinLR + (c.LR-c.MinLR)*(1+math.Cos(math.Pi*share))/2
}

// stepFLOPs is the work of training on that many rows, by formula: forward, and twice that for the
// gradient.
func stepFLOPs(m *model.AD, tokens int, rows int64) int64 { return 3 * rows * m.FLOPs(tokens) }
