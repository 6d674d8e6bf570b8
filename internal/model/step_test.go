package model_test

import (
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
)

// trainStep records a whole GT training step at the sizes of tiny_1.
func trainStep(tb testing.TB, dev kernel.Device, n, batch int, mode kernel.BaselineMode) (kernel.Runner, kernel.Store) {
	m, err := model.NewGT(model.GTConfig{Width: 128, Heads: 4, Layers: 3, FeedMul: 2})
	if err != nil {
		tb.Fatal(err)
	}
	p := plan.New("train", dev, batch, n+1, m.Layout())
	in := p.Drawn(kernel.Rules{Capacity: 30}, n+1, kernel.Drawing{Seed: 1, Purpose: rng.TrainInstances, Grid: 100, DemandMin: 1, DemandMax: 10, Symmetries: 1})
	dec := m.Encode(p, 0, in, true)
	starts := 1
	if mode == kernel.SharedMean {
		starts = n
	}
	routes := p.Rollout("policy", dec, plan.RolloutSpec{Starts: starts, Forced: starts > 1, MaxStep: 2*n + 1, Seed: 1}, rng.Actions)
	var base *kernel.Tensor
	if mode == kernel.Given {
		base = p.Rollout("greedy", m.Encode(p, 1, in, false), plan.RolloutSpec{Choice: kernel.Greedy, Starts: 1, MaxStep: 2*n + 1}, rng.Actions).Length
	}
	adv, base := p.Advantage(routes, mode, base, 0, plan.Comparison{})
	p.PolicyGradient(routes, adv)
	p.Backward()
	p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 1e-4, MaxNorm: 1}, 1)
	p.TallyRoutes(routes, adv, base)
	policy, _ := dev.NewStore(m.Layout(), true)
	frozen, _ := dev.NewStore(m.Layout(), false)
	w := model.Initial(m.Layout(), 1)
	if err := policy.WriteWeights(w); err != nil {
		tb.Fatal(err)
	}
	if err := frozen.WriteWeights(w); err != nil {
		tb.Fatal(err)
	}
	r, err := p.Compile(dev, policy, frozen)
	if err != nil {
		tb.Fatal(err)
	}
	if err := r.SetControl(kernel.Control{LearningRate: 6e-4, Temperature: 1}); err != nil {
		tb.Fatal(err)
	}
	return r, policy
}

func BenchmarkStepTiny(b *testing.B) {
	for _, set := range cpu.Sets() {
		b.Run(set, func(b *testing.B) {
			dev, err := cpu.Open(cpu.Options{Set: set})
			if err != nil {
				b.Fatal(err)
			}
			r, _ := trainStep(b, dev, 10, 128, kernel.Given)
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestLearns(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := trainStep(t, dev, 10, 32, kernel.SharedMean)
	var cost []float64
	for range 3 {
		for range 25 {
			if err := r.Run(); err != nil {
				t.Fatal(err)
			}
		}
		m, err := r.TakeMetrics()
		if err != nil {
			t.Fatal(err)
		}
		cost = append(cost, m.Sum(plan.SumCost)/m.Sum(kernel.SumRows)/10)
		t.Logf("cpc %.4f entropy %.3f grad %.3f bad %d", cost[len(cost)-1], m.Sum(plan.SumEntropy)/m.Sum(kernel.SumRows), m.GradNorm/float64(m.Steps), m.BadStep)
	}
	if !(cost[2] < 0.97*cost[0]) {
		t.Errorf("cost per customer went from %.4f to %.4f in 75 steps; want a fall of 3 %%", cost[0], cost[2])
	}
}
