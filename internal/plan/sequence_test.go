package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
)

// tape is a step whose loss is read from sums, with and without its gradient.
type tape struct {
	forward, both *reference.Runner[float64]
	store         *reference.Store[float64]
	layout        *kernel.Layout
	loss          func(run *reference.Runner[float64]) float64
}

// check compares the gradient with differences of the loss.
func (g *tape) check(t *testing.T) {
	t.Helper()
	step(t, g.both)
	differ(t, g.layout, g.store.Weights(), g.both.Grad(), 1, func() float64 {
		step(t, g.forward)
		return g.loss(g.forward)
	})
}

// mean returns 1/n as the ops store it.
func mean(n int) float64 { return float64(1 / float32(n)) }

// onReference returns a store with weights away from symmetric values.
func onReference(t *testing.T, l *kernel.Layout) (*reference.Device[float64], kernel.Store) {
	t.Helper()
	dev := reference.New[float64](2)
	store, _ := dev.NewStore(l, true)
	if err := store.WriteWeights(scattered(l)); err != nil {
		t.Fatal(err)
	}
	return dev, store
}

// The agent on sampled rows: several sequences per row, regions that end, and a shard that is
// partly idle.
func TestGradientOfAD(t *testing.T) {
	const batch, tokens = 3, 11
	spec := model.Transitions(kernel.RegionSpec{Streams: 2, Steps: 40, Horizon: 2, Tokens: tokens, Shortest: 1, Longest: 3, Ahead: 1, Seed: 7, Purpose: rng.Regions}, 2)
	history := make([]int32, spec.Streams*spec.Steps)
	random := rand.New(rand.NewPCG(9, 9))
	for i := range history {
		history[i] = int32(random.IntN(2) | random.IntN(2)<<8 | random.IntN(3)<<16 | random.IntN(2)<<24)
	}
	for _, c := range []struct {
		dropout, smoothing float32
		compressed, rotary bool
		width, heads, kv   int
	}{{0, 0, true, false, 4, 2, 0}, {0.25, 0.1, true, false, 4, 2, 0}, {0.25, 0.1, false, false, 4, 2, 0}, {0.25, 0.1, true, true, 4, 2, 0},
		{0.25, 0.1, true, false, 4, 2, 1}, {0.25, 0, true, true, 8, 4, 2}} {
		t.Run(fmt.Sprintf("dropout=%v/smoothing=%v/compressed=%v/rotary=%v/heads=%d,%d", c.dropout, c.smoothing, c.compressed, c.rotary, c.heads, c.kv), func(t *testing.T) {
			spec.Compressed = c.compressed
			m, err := model.NewAD(model.ADConfig{Width: c.width, Heads: c.heads, KVHeads: c.kv, Layers: 2, Feed: 6, Positions: tokens, Rotary: c.rotary, Observed: model.Sizes(2, 2), Actions: 3, Rewards: 2,
				Dropout: c.dropout, AttentionDropout: c.dropout, DropoutKey: 3})
			if err != nil {
				t.Fatal(err)
			}
			dev, store := onReference(t, m.Layout())
			g := &tape{store: store.(*reference.Store[float64]), layout: m.Layout()}
			record := func(learn bool) *reference.Runner[float64] {
				p := plan.New("agent", dev, batch, tokens, m.Layout())
				b := p.B()
				in := model.Sequences{Index: p.ShardInts("index", b, tokens, model.TokenFields(2)), Labels: p.ShardInts("labels", b, tokens, 2), First: p.ShardInts("first", b, tokens)}
				whole := p.Whole("history", len(history))
				p.Append(&kernel.Regions{Index: in.Index, Labels: in.Labels, First: in.First, Records: whole, RegionSpec: spec})
				sums := p.CrossEntropy("loss", m.Encode(p, in, true), in.Labels, m.Columns(), c.smoothing, learn)
				if learn {
					p.Backward()
				}
				run := compile(t, p, dev, store)
				if err := run.WriteBatch(whole, history); err != nil {
					t.Fatal(err)
				}
				g.loss = func(run *reference.Runner[float64]) (loss float64) {
					for i, v := range run.Batch(sums) {
						if i%3 == 0 {
							loss += v * mean(batch*tokens)
						}
					}
					return loss
				}
				return run
			}
			g.both, g.forward = record(true), record(false)
			g.check(t)
		})
	}
}

// Actor and critic of the source learner with the clipped loss, with ratios inside and on both
// sides of the clip range.
func TestGradientOfMLP(t *testing.T) {
	const batch, inputs, actions = 7, 4, 5
	m := model.NewMLP(inputs, 6, actions)
	dev, store := onReference(t, m.Layout())
	g := &tape{store: store.(*reference.Store[float64]), layout: m.Layout()}
	spec := kernel.PPO{Clip: 0.2, ValueCoef: 0.5, EntropyCoef: 0.05}
	random := rand.New(rand.NewPCG(4, 4))
	x, sample := make([]float32, batch*inputs), make([]float32, batch*4)
	for i := range x {
		x[i] = float32(random.NormFloat64())
	}
	for b := range batch {
		copy(sample[4*b:], []float32{float32(random.IntN(actions)), float32(-0.5 - 2*random.Float64()), float32(random.NormFloat64()), float32(random.NormFloat64())})
	}
	left := 0.0
	record := func() *reference.Runner[float64] {
		p := plan.New("learner", dev, batch, 1, m.Layout())
		in, given := p.Rows("x", p.B(), inputs), p.Rows("sample", p.B(), 4)
		sums := p.PPO(m.Record(p, in), given, spec)
		p.Backward()
		run := compile(t, p, dev, store)
		for tensor, values := range map[*kernel.Tensor][]float32{in: x, given: sample} {
			if err := run.WriteBatch(tensor, values); err != nil {
				t.Fatal(err)
			}
		}
		g.loss = func(run *reference.Runner[float64]) (loss float64) {
			left = 0
			for s := run.Batch(sums); len(s) > 0; s = s[4:] {
				loss += (s[0] + float64(spec.ValueCoef)*s[1] - float64(spec.EntropyCoef)*s[2]) * mean(batch)
				left += s[3]
			}
			return loss
		}
		return run
	}
	g.both, g.forward = record(), record()
	g.check(t)
	if left < 2 || left > batch-2 {
		t.Errorf("%v of %d ratios left the clip; the case needs some of each", left, batch)
	}
}

// The recurrent learner: rows of one step and of several, with nonzero initial units and the
// clipped loss, with and without measured inputs.
func TestGradientOfRecurrent(t *testing.T) {
	for _, c := range []struct{ steps, measured int }{{1, 0}, {4, 0}, {1, 2}, {4, 1}} {
		steps := c.steps
		const batch, inputs, rows, hidden, actions = 5, 3, 6, 4, 3
		m := model.NewRecurrent(inputs, rows, 2, c.measured, hidden, actions)
		dev, store := onReference(t, m.Layout())
		g := &tape{store: store.(*reference.Store[float64]), layout: m.Layout()}
		spec := kernel.PPO{Clip: 0.2, ValueCoef: 0.5, EntropyCoef: 0.05}
		random := rand.New(rand.NewPCG(4, uint64(steps)))
		index, units, sample := make([]int32, batch*steps*inputs), make([]float32, batch*hidden), []float32(nil)
		for i := range index {
			index[i] = int32(i % rows)
		}
		for i := range units {
			units[i] = float32(random.NormFloat64())
		}
		numbers := make([]float32, batch*steps*c.measured)
		for i := range numbers {
			numbers[i] = float32(random.NormFloat64())
		}
		for range batch * steps {
			sample = append(sample, float32(random.IntN(actions)), float32(-0.5-2*random.Float64()), float32(random.NormFloat64()), float32(random.NormFloat64()))
		}
		record := func() *reference.Runner[float64] {
			p := plan.New("learner", dev, batch, 1, m.Layout())
			x, from, given := p.RowInts("index", p.B(), steps*inputs, 1), p.Rows("units", p.B(), hidden), p.Rows("sample", p.B(), steps, 4)
			values := map[*kernel.Tensor]any{x: index, from: units, given: sample}
			var input *kernel.Tensor
			if c.measured > 0 {
				input = p.Rows("measured", p.B(), steps, c.measured)
				values[input] = numbers
			}
			sums := p.PPO(m.Record(p, x, input, from, false), given, spec)
			p.Backward()
			run := compile(t, p, dev, store)
			for tensor, values := range values {
				if err := run.WriteBatch(tensor, values); err != nil {
					t.Fatal(err)
				}
			}
			g.loss = func(run *reference.Runner[float64]) (loss float64) {
				for i, v := range run.Batch(sums) {
					loss += v * mean(batch*steps) * []float64{1, float64(spec.ValueCoef), -float64(spec.EntropyCoef), 0}[i/steps%4]
				}
				return loss
			}
			return run
		}
		g.both, g.forward = record(), record()
		g.check(t)
	}
}
