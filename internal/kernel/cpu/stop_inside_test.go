package cpu

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/attention"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/routing"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
)

// TestStopReachesInsideOneShard: a step that is one shard, and an op that takes most of its time,
// are left at once. Every long loop has a primitive that it calls in each turn: the primitive stops
// the runner in its first call, and must not be called again.
func TestStopReachesInsideOneShard(t *testing.T) {
	var stop func()
	calls := 0
	once := func() {
		calls++
		stop()
	}
	for name, c := range map[string]struct {
		plant  func(p, real *isa.Primitives)
		record func(t *testing.T, dev *Device) (*plan.Plan, *kernel.Layout)
	}{
		"between two ops": {func(p, real *isa.Primitives) {
			p.Norm = func(y, mean, rstd, x, gamma, beta []float32, rows, d int, eps float32) {
				once()
				real.Norm(y, mean, rstd, x, gamma, beta, rows, d, eps)
			}
		}, routingStep},
		"attention": {func(p, real *isa.Primitives) {
			p.SoftmaxBias = func(s, dist []float32, rows, n, ld int, scale, slope float32) {
				once()
				real.SoftmaxBias(s, dist, rows, n, ld, scale, slope)
			}
		}, routingStep},
		"attention's gradient": {func(p, real *isa.Primitives) {
			p.SoftmaxBiasGrad = func(dp, s, dist []float32, rows, n, ld int, scale float32) float32 {
				once()
				return real.SoftmaxBiasGrad(dp, s, dist, rows, n, ld, scale)
			}
		}, routingStep},
		"rollout": {func(p, real *isa.Primitives) {
			p.Pointer = func(s, lp, th, ent, u []float32, mask []uint64, rows, n, ld, words int, scale, mult float32) {
				once()
				real.Pointer(s, lp, th, ent, u, mask, rows, n, ld, words, scale, mult)
			}
		}, routingStep},
		"rollout's gradient": {func(p, real *isa.Primitives) {
			p.PointerGrad = func(du, s, lp, th, ent, wa, we []float32, act []int32, rows, n, ld int, scale, mult float32) {
				once()
				real.PointerGrad(du, s, lp, th, ent, wa, we, act, rows, n, ld, scale, mult)
			}
		}, routingStep},
		"causal attention": {func(p, real *isa.Primitives) {
			p.SoftmaxCausal = func(s, logSum []float32, first []int32, mask []uint16, rows, from, end, n, ld, words int, scale, keep float32) {
				once()
				real.SoftmaxCausal(s, logSum, first, mask, rows, from, end, n, ld, words, scale, keep)
			}
		}, agentStep},
		"causal attention's gradient": {func(p, real *isa.Primitives) {
			p.SoftmaxCausalGrad = func(ds, s, logSum, dots []float32, first []int32, mask []uint16, rows, from, end, n, ld, words int, scale, keep float32) {
				once()
				real.SoftmaxCausalGrad(ds, s, logSum, dots, first, mask, rows, from, end, n, ld, words, scale, keep)
			}
		}, agentStep},
	} {
		t.Run(name, func(t *testing.T) {
			dev, err := Open(Options{Workers: 1, ShardRows: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			own := *dev.Prims
			c.plant(&own, dev.Prims)
			dev.Prims, calls = &own, 0
			p, layout := c.record(t, dev)
			r := initial(t, dev, p, layout)
			if n := p.Program().Shards(); n != 1 {
				t.Fatalf("%d shards, want 1", n)
			}
			stop = r.(kernel.Stopper).Stop
			if err := r.Run(); !errors.Is(err, kernel.ErrStopped) || calls != 1 {
				t.Errorf("%v, after %d calls", err, calls)
			}
			if s, err := r.State(); err != nil || s.Instances != 0 || s.Step != 0 {
				t.Errorf("it stands at %+v, %v", s, err)
			}
		})
	}
}

// TestStopWithinAStep: it is heeded between two shards, by all workers alike: none begins another.
func TestStopWithinAStep(t *testing.T) {
	const workers = 2
	dev, err := Open(Options{Workers: workers, ShardRows: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	own, real := *dev.Prims, dev.Prims
	var calls atomic.Int32
	var inside sync.WaitGroup
	inside.Add(workers)
	var stop func()
	own.Norm = func(y, mean, rstd, x, gamma, beta []float32, rows, d int, eps float32) {
		if calls.Add(1) <= workers { // each is in a shard of its own when they are stopped
			inside.Done()
			inside.Wait()
			stop()
		}
		real.Norm(y, mean, rstd, x, gamma, beta, rows, d, eps)
	}
	dev.Prims = &own
	p, layout := agentStepOf(t, dev, 8, 16)
	if n := p.Program().Shards(); n <= workers {
		t.Fatalf("%d shards, want more than there are workers", n)
	}
	r := initial(t, dev, p, layout)
	stop = r.(kernel.Stopper).Stop
	if err := r.Run(); !errors.Is(err, kernel.ErrStopped) || calls.Load() != workers {
		t.Errorf("%v, after %d calls of %d workers", err, calls.Load(), workers)
	}
	if s, err := r.State(); err != nil || s.Instances != 0 || s.Step != 0 {
		t.Errorf("it stands at %+v, %v", s, err)
	}
}

// all starts are one block of decisions, so that one call is one turn of the loop
const routingStarts = routing.DecodeRows

func routingStep(t *testing.T, dev *Device) (*plan.Plan, *kernel.Layout) {
	const n = routingStarts
	m, err := model.NewGT(model.GTConfig{Width: 16, Heads: 4, Layers: 2, FeedMul: 2})
	if err != nil {
		t.Fatal(err)
	}
	p := plan.New("routing", dev, 2, n+1, m.Layout())
	in := p.Drawn(kernel.Rules{Capacity: 30}, n+1, kernel.Drawing{Seed: 1, Purpose: rng.TrainInstances, DemandMin: 1, DemandMax: 9, Symmetries: 1})
	routes := p.Rollout("policy", m.Encode(p, 0, in, true), plan.RolloutSpec{Starts: n, Forced: true, MaxStep: 2 * n, Seed: 1}, rng.Actions)
	adv, base := p.Advantage(routes, kernel.SharedMean, nil, 0, plan.Comparison{})
	p.PolicyGradient(routes, adv)
	p.Backward()
	p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8}, 1)
	p.TallyRoutes(routes, adv, base)
	return p, m.Layout()
}

func agentStep(t *testing.T, dev *Device) (*plan.Plan, *kernel.Layout) {
	return agentStepOf(t, dev, 2, 16)
}

func agentStepOf(t *testing.T, dev *Device, batch, width int) (*plan.Plan, *kernel.Layout) {
	const tokens = 5 * attention.CausalRows
	m, err := model.NewAD(model.ADConfig{Width: width, Heads: 2, Layers: 2, Feed: 32, Positions: tokens, Observed: model.Sizes(9, 9), Actions: 5, Rewards: 2})
	if err != nil {
		t.Fatal(err)
	}
	spec := model.Transitions(kernel.RegionSpec{Streams: 8, Steps: 1000, Horizon: 20, Tokens: tokens, Seed: 1, Purpose: rng.Regions}, 2)
	p := plan.New("agent", dev, batch, tokens, m.Layout())
	in := model.Sequences{Index: p.ShardInts("index", p.B(), tokens, model.TokenFields(2)), Labels: p.ShardInts("labels", p.B(), tokens, 2), First: p.ShardInts("first", p.B(), tokens)}
	history := p.Whole("history", spec.Streams*spec.Steps)
	p.Append(&kernel.Regions{Index: in.Index, Labels: in.Labels, First: in.First, Records: history, RegionSpec: spec})
	sums := p.CrossEntropy("loss", m.Encode(p, in, true), in.Labels, m.Columns(), 0, true)
	p.Backward()
	p.TallyHeads(sums, m.Heads()...)
	p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8}, 1)
	return p, m.Layout()
}

// TestStopReachesInsideHeads: likewise where a head is attended by tiles at once.
func TestStopReachesInsideHeads(t *testing.T) {
	var stop func()
	for name, plant := range map[string]func(own, real *isa.TileSet, once func()){
		"forward": func(own, real *isa.TileSet, once func()) {
			own.Attend = func(h *isa.HeadArgs) { once(); real.Attend(h) }
		},
		"gradient": func(own, real *isa.TileSet, once func()) {
			own.AttendGrad = func(h *isa.HeadArgs) { once(); real.AttendGrad(h) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			dev, err := Open(Options{Precision: "bf16", Workers: 1, ShardRows: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			if dev.Tiles.Attend == nil {
				t.Skip("no tiles here that attend")
			}
			own, calls := *dev.Tiles, 0
			plant(&own, dev.Tiles, func() { calls++; stop() })
			dev.Tiles = &own
			p, layout := agentStepOf(t, dev, 2, 2*isa.HeadWidth)
			r := initial(t, dev, p, layout)
			stop = r.(kernel.Stopper).Stop
			if err := r.Run(); !errors.Is(err, kernel.ErrStopped) || calls != 1 {
				t.Errorf("%v, after %d calls", err, calls)
			}
		})
	}
}

// initial compiles a step with the initial weights.
func initial(t *testing.T, dev *Device, p *plan.Plan, layout *kernel.Layout) kernel.Runner {
	t.Helper()
	store, err := dev.NewStore(layout, true)
	if err == nil {
		err = store.WriteWeights(model.Initial(layout, 1))
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Compile(dev, store)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
