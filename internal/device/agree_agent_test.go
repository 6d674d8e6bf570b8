package device_test

import (
	"math"
	"slices"
	"testing"

	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
)

// agent is the in-context agent's training step on one device: rows drawn there from the same
// histories, dropout on, as it is trained.
type agent struct {
	run          kernel.Runner
	store        kernel.Store
	layout       *kernel.Layout
	in           model.Sequences
	logits, sums *kernel.Tensor
}

const agentLayers, agentFeed, agentTokens, agentBatch = 3, 512, 164, 32

var agentRows = model.Transitions(kernel.RegionSpec{Streams: 20, Steps: 1000, Horizon: 20, Tokens: agentTokens, Compressed: true, Shortest: 20, Longest: 80, Ahead: 50, Seed: 42, Purpose: rng.Regions}, 2)

// agentHistory are transitions of any kind: what is compared does not depend on their sense.
func agentHistory() []int32 {
	out := make([]int32, agentRows.Streams*agentRows.Steps)
	for i := range out {
		w := rng.At(1, uint64(i), 0, rng.Learner)
		out[i] = int32(rng.Below(w[0], 9) | rng.Below(w[1], 9)<<8 | rng.Below(w[2], 5)<<16 | rng.Below(w[3], 2)<<24)
	}
	return out
}

func buildAgent(t *testing.T, dev kernel.Device) *agent {
	t.Helper()
	m, err := model.NewAD(model.ADConfig{Width: 128, Heads: 8, Layers: agentLayers, Feed: agentFeed, Positions: agentTokens, Observed: model.Sizes(9, 9), Actions: 5, Rewards: 2,
		Dropout: 0.1, AttentionDropout: 0.1, DropoutKey: 42})
	must(t, err)
	p := plan.New("agree", dev, agentBatch, agentTokens, m.Layout())
	a := &agent{layout: m.Layout()}
	a.in = model.Sequences{Index: p.RowInts("index", p.B(), agentTokens, model.TokenFields(2)), Labels: p.RowInts("labels", p.B(), agentTokens, 2),
		First: p.RowInts("first", p.B(), agentTokens)}
	history := p.Whole("history", agentRows.Streams*agentRows.Steps)
	p.Append(&kernel.Regions{Index: a.in.Index, Labels: a.in.Labels, First: a.in.First, Records: history, RegionSpec: agentRows})
	logits := m.Encode(p, a.in, true)
	a.logits = p.Rows("kept", logits.Shape...)
	p.Append(&kernel.Dropout{Y: a.logits, X: logits}) // a copy that the host may read
	a.sums = p.CrossEntropy("loss", logits, a.in.Labels, m.Columns(), 0, true)
	p.Backward()
	p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, Decay: 0.01, MaxNorm: 1, Warmup: 3, Total: 100}, 1)
	p.TallyHeads(a.sums, m.Heads()...)
	a.store, err = dev.NewStore(m.Layout(), true)
	must(t, err)
	must(t, a.store.WriteWeights(model.Initial(m.Layout(), 9)))
	a.run, err = p.Compile(dev, a.store)
	must(t, err)
	t.Cleanup(func() { must(t, a.run.Close()) })
	must(t, a.run.SetControl(kernel.Control{LearningRate: 3e-4, Temperature: 1}))
	must(t, a.run.WriteBatch(history, agentHistory()))
	return a
}

func (a *agent) ints(t *testing.T, x *kernel.Tensor) []int32 {
	t.Helper()
	out := make([]int32, x.Len()/x.Shape[0]*agentBatch)
	must(t, a.run.ReadBatch(x, out))
	return out
}

func (a *agent) floats(t *testing.T, x *kernel.Tensor) []float32 {
	t.Helper()
	out := make([]float32, x.Len()/x.Shape[0]*agentBatch)
	must(t, a.run.ReadBatch(x, out))
	return out
}

func (a *agent) weights(t *testing.T) []float32 {
	t.Helper()
	out := make([]float32, a.layout.Len)
	must(t, a.store.ReadWeights(out))
	return out
}

// apart is the distance of x and y by how far y lies from origin; a nil origin is 0.
func apart(x, y, origin []float32) float64 {
	var diff, norm float64
	for i, v := range y {
		d, n := float64(x[i]-v), float64(v)
		if origin != nil {
			n -= float64(origin[i])
		}
		diff += d * d
		norm += n * n
	}
	return math.Sqrt(diff / norm)
}

// TestAgentsStayTogether trains the agent for ten steps on both devices. Tokens, labels and the
// ends of sequences are equal bit for bit, step after step. Each device's logits and gradients are
// within 8·ε·√k of the truth for each of 9 roundings per layer, there and back, whose squares add
// (kernel/kerneltest); so they are apart by a share of at most twice that, and usually by an eighth
// of it. Adam moves a weight by the sign of its gradient, which is open where the gradient is
// smaller than its error: about that eighth of the share of all weights may go the other way, and
// what was moved is then apart by twice its root. Twice that again leaves room for the steps that
// build on each other.
func TestAgentsStayTogether(t *testing.T) {
	cpu, gpu := both(t)
	a, b := buildAgent(t, cpu), buildAgent(t, gpu)
	start := a.weights(t)
	share := 2 * 8 * 0x1p-24 * math.Sqrt(agentFeed+agentTokens) * math.Sqrt(2*9*agentLayers)
	for step := range 10 {
		must(t, a.run.Run())
		must(t, b.run.Run())
		for _, pair := range [][2]*kernel.Tensor{{a.in.Index, b.in.Index}, {a.in.Labels, b.in.Labels}, {a.in.First, b.in.First}} {
			if !slices.Equal(a.ints(t, pair[0]), b.ints(t, pair[1])) {
				t.Fatalf("step %d: the devices draw other %s", step+1, pair[0].Name)
			}
		}
		if step == 0 { // the weights are still the same
			if d := apart(b.floats(t, b.logits), a.floats(t, a.logits), nil); !(d <= share) {
				t.Errorf("logits are apart by %.2g of their length, bound %.2g", d, share)
			}
			if d := apart(b.floats(t, b.sums), a.floats(t, a.sums), nil); !(d <= share) {
				t.Errorf("losses are apart by %.2g of their length, bound %.2g", d, share)
			}
		}
		d := apart(b.weights(t), a.weights(t), start)
		t.Logf("step %d: weights apart by %.2g of how far they moved", step+1, d)
		if bound := 4 * math.Sqrt(share/8); !(d <= bound) {
			t.Errorf("step %d: weights apart by %.2g of how far they moved, bound %.2g", step+1, d, bound)
		}
	}
}
