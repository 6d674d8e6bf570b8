package agent

import (
	"fmt"
	"math"
	"strings"

	"haul/internal/comm"
	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/world"
)

// newModel returns the settings' network for worlds of the given space.
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
	return model.NewAD(model.ADConfig{Width: c.NEmbd, Heads: c.NHead, KVHeads: c.NKVHead, Layers: c.NLayer, Feed: c.FeedForward(), Positions: c.NTransit, Rotary: c.Positions == config.PositionsRotary,
		Observed: observed, Actions: space.Actions, Rewards: len(space.Rewards), Values: c.Method == config.MethodIQL, Dropout: float32(c.Dropout), AttentionDropout: float32(c.AttnDropout), DropoutKey: c.Seed})
}

// cpuAlone returns advice if err reports that a device lacks an op that a setting needs, otherwise
// nil.
func cpuAlone(err error) error {
	if err != nil && strings.HasSuffix(err.Error(), "no op "+new(kernel.ImplicitQ).Kind()) {
		return fmt.Errorf("method iql runs on a CPU alone: use --device cpu (%w)", err)
	}
	return nil
}

// program is a recorded step over sequences. History is nil if the rows come from the host.
type program struct {
	plan    *plan.Plan
	in      model.Sequences
	history *kernel.Tensor
}

// fed returns the tensors that the host writes if it makes the rows, in the order of a slab.
func (p *program) fed() []*kernel.Tensor {
	return []*kernel.Tensor{p.in.Index, p.in.Labels, p.in.First}
}

// hostRows records sequences that the host writes.
func hostRows(p *plan.Plan, m *model.AD, tokens int) model.Sequences {
	return model.Sequences{Index: p.RowInts("index", p.B(), tokens, m.Fields()), Labels: p.RowInts("labels", p.B(), tokens, 2),
		First: p.RowInts("first", p.B(), tokens)}
}

// recordStep records a training step, with a peer this rank's part of it. With onDevice the
// histories are on the device and the step draws its rows from them.
func recordStep(dev kernel.Device, m *model.AD, c *config.AD, l *dataset, onDevice bool, peer kernel.Peer) (*program, error) {
	t := l.trainSpec.Tokens
	p := plan.New("train", dev, c.TrainBatchSize, t, m.Layout())
	out := &program{plan: p}
	cuts := c.GradientParts
	if dev.ShardSize(t) != kernel.WholeBatch {
		cuts = 1 // a shard is a small enough part: batches have few rows, and the host may write them
	}
	if err := p.SplitStep(cuts, peer); err != nil {
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
	sums := recordLoss(p, m, c, l.space, out.in)
	p.Backward()
	// The gradient of an update is the sum over parts, while the settings mean the average. A
	// clipping norm and an eps that are larger by the number of parts give the same weights.
	// clipping norm and eps as many times larger both give the same weights.
	parts := float32(c.GradientAccumulationSteps)
	p.Optimize(&kernel.AdamW{Beta1: c.Beta1, Beta2: c.Beta2, Eps: parts * float32(c.AdamEps), Decay: float32(c.WeightDecay),
		MaxNorm: parts * float32(c.GradientClipNorm), Warmup: c.NumWarmupSteps, Total: c.TrainTimesteps, Floor: float32(c.MinLR / c.LR)}, c.GradientAccumulationSteps)
	p.TallyHeads(sums, m.Heads()...)
	return out, nil
}

// recordLoss records the network and its loss: the cross-entropy of the labels or, with implicit
// Q-learning, the cross-entropy of each action weighted by its advantage, plus the losses of the
// values that the advantage is computed from.
func recordLoss(p *plan.Plan, m *model.AD, c *config.AD, space world.Space, in model.Sequences) (sums *kernel.Tensor) {
	if c.Method != config.MethodIQL {
		return p.CrossEntropy("loss", m.Encode(p, in, true), in.Labels, m.Columns(), float32(c.LabelSmoothing), true)
	}
	logits, values := m.EncodeValues(p, in, true)
	observed := m.Fields() - model.TokenFields(0)
	weigh, losses := p.ImplicitQ("values.loss", values, float32(c.IQLWeight), kernel.ImplicitQ{Labels: in.Labels, Index: in.Index, First: in.First,
		Gain: observed + model.AfterReward, Type: observed + model.AfterType, Gains: shares(space.Rewards),
		Discount: float32(c.IQLDiscount), Expectile: float32(c.IQLExpectile), Slope: float32(c.IQLBeta), Most: mostWeight})
	p.TallyValues(losses)
	return p.WeighedCrossEntropy("loss", logits, in.Labels, weigh, m.Columns(), float32(c.LabelSmoothing), true)
}

// mostWeight is the largest weight of an action's advantage.
const mostWeight = 100

// shares returns rewards divided by the largest absolute reward, so that the weight of
// an advantage does not depend on the unit of rewards.
func shares(rewards []float64) []float32 {
	most := 0.0
	for _, r := range rewards {
		most = max(most, math.Abs(r))
	}
	out := make([]float32, len(rewards))
	for i, r := range rewards {
		if most > 0 {
			out[i] = float32(r / most)
		}
	}
	return out
}

// recordTest records the loss on rows that the host writes, without dropout. If the number of rows
// allows it, ranks divide the rows; the result reports whether they do.
func recordTest(dev kernel.Device, m *model.AD, c *config.AD, tokens int, w *comm.World) (*program, bool) {
	p := plan.New("test", dev, c.TestBatchSize, tokens, m.Layout())
	shared := w != nil && p.PartitionBatch(w.Share()) == nil
	in := hostRows(p, m, tokens)
	p.TallyHeads(p.CrossEntropy("loss", m.Encode(p, in, false), in.Labels, m.Columns(), float32(c.LabelSmoothing), false), m.Heads()...)
	return &program{plan: p, in: in}, shared
}

// learningRate returns the rate of iteration i, counted from 1, as the device computes it.
func learningRate(c *config.AD, i int) float64 {
	if i <= c.NumWarmupSteps {
		return c.LR * float64(i) / float64(c.NumWarmupSteps)
	}
	share := float64(i-c.NumWarmupSteps) / float64(c.TrainTimesteps-c.NumWarmupSteps)
	return c.MinLR + (c.LR-c.MinLR)*(1+math.Cos(math.Pi*share))/2
}

// stepFLOPs returns the floating-point operations of training on rows, by formula: the forward
// pass, and twice as much for the gradient.
func stepFLOPs(m *model.AD, tokens int, rows int64) int64 { return 3 * rows * m.FLOPs(tokens) }
