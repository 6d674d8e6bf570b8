package plan_test

import (
	"math"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
)

// learner is a recorded step of policy gradient in float64: sampled routes, their advantage, and
// what the step computes from it.
type learner struct {
	run       *reference.Runner[float64]
	routes    *plan.Routes
	adv, base *kernel.Tensor
}

// record records the step; base is the Given baseline.
func record(t *testing.T, batch int, mode kernel.BaselineMode, starts int, decay float64, base []float32, adam *kernel.AdamW) *learner {
	t.Helper()
	m, err := model.NewGT(model.GTConfig{Width: 6, Heads: 2, Layers: 1, FeedMul: 2})
	if err != nil {
		t.Fatal(err)
	}
	dev, store := onReference(t, m.Layout())
	p := plan.New("learn", dev, batch, gtNodes, m.Layout())
	l := &learner{}
	l.routes = p.Rollout("policy", m.Encode(p, 0, roomy(p), true), plan.RolloutSpec{Choice: kernel.Sample, Starts: starts, Forced: starts > 1, MaxStep: 2 * gtNodes, Seed: 4}, rng.Actions)
	var given *kernel.Tensor
	if mode == kernel.Given {
		given = p.Rows("given", p.B(), 1)
	}
	l.adv, l.base = p.Advantage(l.routes, mode, given, decay, plan.Comparison{})
	p.PolicyGradient(l.routes, l.adv)
	p.Backward()
	if adam != nil {
		p.Optimize(adam, 1)
	}
	p.TallyRoutes(l.routes, l.adv, l.base)
	l.run = compile(t, p, dev, store)
	if mode == kernel.Given {
		if err := l.run.WriteBatch(l.base, base); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// roomy generates instances that one vehicle can serve: the length of a route then depends only on
// its order.
func roomy(p *plan.Plan) model.Instances {
	in := generate(p)
	in.Capacity = 9 * gtNodes
	return in
}

func meanOf(v []float64) (sum float64) {
	for _, x := range v {
		sum += x / float64(len(v))
	}
	return sum
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*(1+math.Abs(b)) }

// TestAdvantageIsLengthAboveTheBaseline: a route longer than the baseline has a positive advantage,
// divided by the batch. The sums of the step agree with their definitions.
func TestAdvantageIsLengthAboveTheBaseline(t *testing.T) {
	given := []float32{2, 1.5, 2.5, 1, 3}
	const decay = 0.75
	for name, c := range map[string]struct {
		mode   kernel.BaselineMode
		starts int
	}{"given": {kernel.Given, 1}, "shared": {kernel.SharedMean, 3}, "running": {kernel.Running, 1}} {
		t.Run(name, func(t *testing.T) {
			l := record(t, gtBatch, c.mode, c.starts, decay, given, nil)
			running := 0.0
			for n := range 4 {
				if err := l.run.Run(); err != nil {
					t.Fatal(err)
				}
				length, adv, base := l.run.Batch(l.routes.Length), l.run.Batch(l.adv), l.run.Batch(l.base)
				logProb, entropy := l.run.Batch(l.routes.LogProb), l.run.Batch(l.routes.Entropy)
				loss, logs := 0.0, 0.0
				for i, v := range length {
					want := 0.0
					switch row := i / c.starts; c.mode {
					case kernel.Given:
						want = float64(given[row])
					case kernel.SharedMean:
						want = meanOf(length[row*c.starts:][:c.starts])
					case kernel.Running:
						want = running
						if n == 0 {
							want = v // no earlier step exists
						}
					}
					if got := base[i/c.starts]; !near(got, want) {
						t.Fatalf("step %d, row %d: baseline %v, want %v", n, i, got, want)
					}
					if want = (v - want) / float64(len(length)); !near(adv[i], want) {
						t.Fatalf("step %d, row %d: advantage %v of a route of %v over %v, want %v", n, i, adv[i], v, base[i/c.starts], want)
					}
					loss += adv[i] * logProb[i]
					logs += math.Log(v)
				}
				if running = decay*running + (1-decay)*meanOf(length); n == 0 {
					running = meanOf(length)
				}
				m, err := l.run.TakeMetrics()
				if err != nil {
					t.Fatal(err)
				}
				rows := float64(len(length))
				for sum, want := range map[string]float64{plan.SumCost: meanOf(length) * rows, plan.SumLogCost: logs, plan.SumBaseline: meanOf(base) * rows,
					plan.SumLoss: loss - float64(float32(gtEntropy))*meanOf(entropy), plan.SumEntropy: meanOf(entropy) * rows, kernel.SumRows: rows} {
					if got := m.Sum(sum); !near(got, want) {
						t.Errorf("step %d: %s is %v, want %v", n, sum, got, want)
					}
				}
				state, err := l.run.State()
				if err != nil {
					t.Fatal(err)
				}
				if c.mode == kernel.Running && (state.Scalars[plan.MeanBatches] != float64(n+1) || !near(state.Scalars[plan.MeanCost], running)) {
					t.Errorf("after step %d the running mean is %v, want %v", n, state.Scalars, running)
				}
			}
		})
	}
}

// TestGroupsNeedWholeShards: comparing rows of different shards panics.
func TestGroupsNeedWholeShards(t *testing.T) {
	for _, together := range []bool{true, false} {
		m, err := model.NewGT(model.GTConfig{Width: 6, Heads: 2, Layers: 1, FeedMul: 2})
		if err != nil {
			t.Fatal(err)
		}
		p := plan.New("learn", reference.New[float64](3), 16, gtNodes, m.Layout())
		if together {
			p.SetGroupSize(8)
		}
		spec := plan.RolloutSpec{Choice: kernel.Sample, Starts: 2, Forced: true, MaxStep: 2 * gtNodes}
		routes := p.Rollout("policy", m.Encode(p, 0, roomy(p), true), spec, rng.Actions)
		func() {
			defer func() {
				if why := recover(); (why == nil) != together {
					t.Errorf("together %v: %v", together, why)
				}
			}()
			p.Advantage(routes, kernel.SharedMean, nil, 0, plan.Comparison{By: kernel.Preference, Group: 8})
		}()
	}
}

// TestLearningShortensRoutes: an update reduces the expected length. With a baseline that does not
// depend on the samples, sampled routes get shorter. Sums of the advantage alone would not show a
// wrong sign.
func TestLearningShortensRoutes(t *testing.T) {
	for name, mode := range map[string]kernel.BaselineMode{"shared": kernel.SharedMean, "running": kernel.Running} {
		t.Run(name, func(t *testing.T) {
			starts := 1
			if mode == kernel.SharedMean {
				starts = 4
			}
			l := record(t, 16, mode, starts, 0.8, nil, &kernel.AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, MaxNorm: 1})
			if err := l.run.SetControl(kernel.Control{LearningRate: 0.02, Temperature: 1}); err != nil {
				t.Fatal(err)
			}
			mean := func(steps int) float64 {
				for range steps {
					if err := l.run.Run(); err != nil {
						t.Fatal(err)
					}
				}
				m, err := l.run.TakeMetrics()
				if err != nil {
					t.Fatal(err)
				}
				return m.Sum(plan.SumCost) / m.Sum(kernel.SumRows)
			}
			first := mean(40)
			mean(80)
			if last := mean(40); last > 0.97*first {
				t.Errorf("routes of %.4f on average are %.4f after 120 steps", first, last)
			}
		})
	}
}
