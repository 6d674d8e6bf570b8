package device_test

import (
	"math"
	"testing"

	"haul/internal/cu"
	"haul/internal/device"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
)

// policy is a fixed GT on one device that routes instances by one rule and keeps everything it did.
type policy struct {
	run                 kernel.Runner
	posX, posY, demand  *kernel.Tensor
	routes              *plan.Routes
	batch, nodes, limit int
	layout              *kernel.Layout
	store               kernel.Store
}

const agreeNodes, agreeBatch = 11, 2048

// build compiles rollout alone, or with learn a whole training step on replayed actions.
func build(t *testing.T, dev kernel.Device, choice kernel.Choice, learn bool) *policy {
	t.Helper()
	m, err := model.NewGT(model.GTConfig{Width: 128, Heads: 4, Layers: 3, FeedMul: 2})
	must(t, err)
	p := plan.New("agree", dev, agreeBatch, agreeNodes, m.Layout())
	b := p.B()
	a := &policy{batch: agreeBatch, nodes: agreeNodes, limit: 2 * agreeNodes, layout: m.Layout()}
	a.posX, a.posY, a.demand = p.Rows("x", b, agreeNodes), p.Rows("y", b, agreeNodes), p.RowInts("demand", b, agreeNodes)
	in := kernel.Instances{Rules: kernel.Rules{Capacity: 30}, PosX: a.posX, PosY: a.posY, Nodes: a.demand,
		Feature: p.Shard("feature", b, agreeNodes, len(kernel.CVRP.Features()))}
	p.Append(&kernel.Generate{Instances: in, Drawing: kernel.Drawing{Seed: 5, Purpose: rng.TestInstances, Grid: 100, DemandMin: 1, DemandMax: 10, Symmetries: 1}})
	spec := plan.RolloutSpec{Choice: choice, Starts: 1, MaxStep: a.limit, Seed: 5, Keep: true}
	if choice == kernel.Replay {
		spec.Actions = p.RowInts("replayed", b, 1, a.limit)
	}
	a.routes = p.Rollout("policy", m.Encode(p, 0, in, true), spec, rng.Actions)
	if learn {
		adv, base := p.Advantage(a.routes, kernel.Running, nil, 0.9, plan.Comparison{})
		p.PolicyGradient(a.routes, adv)
		p.Backward()
		p.TallyRoutes(a.routes, adv, base)
		p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-6, MaxNorm: 1}, 1)
	}
	a.store, err = dev.NewStore(m.Layout(), learn)
	must(t, err)
	must(t, a.store.WriteWeights(model.Initial(m.Layout(), 9)))
	a.run, err = p.Compile(dev, a.store)
	must(t, err)
	control := kernel.Control{LearningRate: 1e-3, Temperature: 1}
	if learn {
		control.Coefficients = map[string]float32{plan.EntropyBonus: 0.01}
	}
	must(t, a.run.SetControl(control))
	return a
}

func (a *policy) floats(t *testing.T, x *kernel.Tensor) []float32 {
	t.Helper()
	out := make([]float32, x.Len()/x.Shape[0]*a.batch)
	must(t, a.run.ReadBatch(x, out))
	return out
}

func (a *policy) ints(t *testing.T, x *kernel.Tensor) []int32 {
	t.Helper()
	out := make([]int32, x.Len()/x.Shape[0]*a.batch)
	must(t, a.run.ReadBatch(x, out))
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// both opens the CPU and the first GPU in fp32, or skips.
func both(t *testing.T) (cpu, gpu kernel.Device) {
	t.Helper()
	if _, err := cu.Open(); err != nil {
		t.Skip("needs a GPU: ", err)
	}
	cpu, err := device.Open("cpu", device.Options{})
	must(t, err)
	gpu, err = device.Open("cuda:0", device.Options{Precision: "fp32"})
	must(t, err)
	t.Cleanup(func() { must(t, cpu.Close()); must(t, gpu.Close()) })
	return cpu, gpu
}

// TestSameInstancesSameActions: instances are equal bit for bit, and at least 999 of 1,000 actions
// of a fixed policy; that the rest lie at a decision's edge is kernel/kerneltest's to judge. Routes
// that agree have lengths within a few units.
func TestSameInstancesSameActions(t *testing.T) {
	cpu, gpu := both(t)
	for name, choice := range map[string]kernel.Choice{"greedy": kernel.Greedy, "sampled": kernel.Sample} {
		t.Run(name, func(t *testing.T) {
			a, b := build(t, cpu, choice, false), build(t, gpu, choice, false)
			var total, equal int
			for range 4 {
				must(t, a.run.Run())
				must(t, b.run.Run())
				for _, pair := range [][2][]float32{{a.floats(t, a.posX), b.floats(t, b.posX)}, {a.floats(t, a.posY), b.floats(t, b.posY)}} {
					for i, v := range pair[0] {
						if math.Float32bits(v) != math.Float32bits(pair[1][i]) {
							t.Fatalf("coordinate %d: %v on the CPU, %v on the GPU", i, v, pair[1][i])
						}
					}
				}
				x, y := a.ints(t, a.routes.Actions), b.ints(t, b.routes.Actions)
				la, lb := a.floats(t, a.routes.Length), b.floats(t, b.routes.Length)
				steps := a.ints(t, a.routes.Steps)
				for i := range la {
					same := true
					for s := range int(steps[i]) {
						total++
						if x[i*a.limit+s] == y[i*a.limit+s] {
							equal++
						} else {
							same = false
						}
					}
					// A route's length is a sum of at most 2N terms of order one.
					if same && math.Abs(float64(la[i]-lb[i])) > 8*0x1p-24*float64(2*agreeNodes) {
						t.Errorf("route %d: length %v on the CPU, %v on the GPU", i, la[i], lb[i])
					}
				}
			}
			t.Logf("%d of %d actions equal", equal, total)
			if float64(equal) < 0.999*float64(total) {
				t.Errorf("%d of %d actions equal, want 99.9 %%", equal, total)
			}
		})
	}
}

// TestTenStepsStayTogether replays the CPU's sampled actions on both devices for ten training
// steps. Rounding grows with each update, so the bound is that of one gradient, sqrt(rows)·ε of its
// norm, times the steps, times an amplification of 64 through Adam's division by small second
// moments.
func TestTenStepsStayTogether(t *testing.T) {
	cpu, gpu := both(t)
	sampler := build(t, cpu, kernel.Sample, false)
	a, b := build(t, cpu, kernel.Replay, true), build(t, gpu, kernel.Replay, true)
	weights := [2][]float32{make([]float32, a.layout.Len), make([]float32, a.layout.Len)}
	for step := range 10 {
		must(t, sampler.run.Run())
		actions := sampler.ints(t, sampler.routes.Actions)
		for _, p := range []*policy{a, b} {
			must(t, p.run.WriteBatch(p.routes.Actions, actions))
			must(t, p.run.Run())
		}
		must(t, a.store.ReadWeights(weights[0]))
		must(t, b.store.ReadWeights(weights[1]))
		var diff, norm float64
		for i, v := range weights[0] {
			d := float64(v - weights[1][i])
			diff += d * d
			norm += float64(v) * float64(v)
		}
		bound := 64 * float64(step+1) * math.Sqrt(agreeBatch*agreeNodes) * 0x1p-24
		t.Logf("step %d: weights apart by %.2g of their norm, bound %.2g", step+1, math.Sqrt(diff/norm), bound)
		if r := math.Sqrt(diff / norm); !(r <= bound) {
			t.Errorf("step %d: weights apart by %.2g of their norm, bound %.2g", step+1, r, bound)
		}
	}
}
