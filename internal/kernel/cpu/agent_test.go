package cpu_test

import (
	"slices"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
)

// adDR is the agent of ad_dr.yaml.
var adDR = model.ADConfig{Width: 64, Heads: 4, Layers: 4, Feed: 256, Positions: 80, Observed: model.Sizes(9, 9), Actions: 5, Rewards: 2, Dropout: 0.1, AttentionDropout: 0.1, DropoutKey: 1}

// agentRun records a training step of the in-context agent, drawn from made-up histories on the
// device, as one of `every` parts of an update.
func agentRun(t testing.TB, dev kernel.Device, cfg model.ADConfig, batch, tokens, every int) (kernel.Runner, kernel.Store) {
	t.Helper()
	m, err := model.NewAD(cfg)
	check(t, err)
	spec := model.Transitions(kernel.RegionSpec{Streams: 8, Steps: 1000, Horizon: 20, Tokens: tokens, Seed: 1, Purpose: rng.Regions}, 2)
	p := plan.New("agent", dev, batch, tokens, m.Layout())
	in := model.Sequences{Index: p.ShardInts("index", p.B(), tokens, model.TokenFields(2)), Labels: p.ShardInts("labels", p.B(), tokens, 2), First: p.ShardInts("first", p.B(), tokens)}
	history := p.Whole("history", spec.Streams*spec.Steps)
	p.Append(&kernel.Regions{Index: in.Index, Labels: in.Labels, First: in.First, Records: history, RegionSpec: spec})
	sums := p.CrossEntropy("loss", m.Encode(p, in, true), in.Labels, m.Columns(), 0, true)
	p.Backward()
	p.TallyHeads(sums, m.Heads()...)
	p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, Decay: 0.01, MaxNorm: 1, Warmup: 10, Total: 50000}, every)
	run, store := compiled(t, p, dev, m.Layout())
	made := make([]int32, history.Len())
	for i := range made {
		w := rng.At(1, uint64(i), 0, rng.Learner)
		made[i] = int32(rng.Below(w[0], 9) | rng.Below(w[1], 9)<<8 | rng.Below(w[2], 5)<<16 | rng.Below(w[3], 2)<<24)
	}
	check(t, run.WriteBatch(history, made))
	return run, store
}

func compiled(t testing.TB, p *plan.Plan, dev kernel.Device, l *kernel.Layout) (kernel.Runner, kernel.Store) {
	t.Helper()
	store, err := dev.NewStore(l, true)
	check(t, err)
	check(t, store.WriteWeights(model.Initial(l, 1)))
	run, err := p.Compile(dev, store)
	check(t, err)
	check(t, run.SetControl(kernel.Control{LearningRate: 3e-4, Temperature: 1}))
	return run, store
}

func open(t testing.TB, o cpu.Options) kernel.Device {
	t.Helper()
	dev, err := cpu.Open(o)
	check(t, err)
	t.Cleanup(func() { check(t, dev.Close()) })
	return dev
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAgentWorkers: weights after a few updates, each of two parts, are the same bits on one
// worker, two and three, and a step allocates nothing.
func TestAgentWorkers(t *testing.T) {
	cfg := model.ADConfig{Width: 16, Heads: 2, Layers: 1, Feed: 24, Positions: 70, Observed: model.Sizes(9, 9), Actions: 5, Rewards: 2, Dropout: 0.1, AttentionDropout: 0.2, DropoutKey: 1}
	m, err := model.NewAD(cfg)
	check(t, err)
	size := m.Layout().Len
	for _, set := range cpu.Sets() {
		var want []float32
		for _, workers := range []int{1, 2, 3} {
			run, store := agentRun(t, open(t, cpu.Options{Set: set, Workers: workers, ShardRows: 140}), cfg, 11, 70, 2)
			for range 5 {
				check(t, run.Run())
			}
			got := make([]float32, size)
			check(t, store.ReadWeights(got))
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %d workers end at other weights than one", set, workers)
			}
			if n := testing.AllocsPerRun(2, func() { check(t, run.Run()) }); n != 0 {
				t.Errorf("%s, %d workers: %v allocations a step", set, workers, n)
			}
		}
	}
}
