package cpu_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu"
	"haul/internal/kernel/reference"
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
	spec := model.Transitions(kernel.RegionSpec{Streams: 8, Steps: max(1000, 4*tokens), Horizon: 20, Tokens: tokens, Seed: 1, Purpose: rng.Regions}, 2)
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

// TestRowsPastABatchLeaveNoGradient: the last shard of a batch that shards do not divide has rows
// that do not exist, where the shard before has left its own.
func TestRowsPastABatchLeaveNoGradient(t *testing.T) {
	size := open(t, cpu.Options{Workers: 1}).ShardSize(1)
	for _, batch := range []int{size + 3, 2*size + 1, 3*size - 1} {
		grad := func(dev kernel.Device) []float32 {
			m := model.NewMLP(2, 8, 5)
			p := plan.New("learner", dev, batch, 1, m.Layout())
			x, sample := p.Rows("x", p.B(), 2), p.Rows("sample", p.B(), 4)
			p.PPO(m.Record(p, x), sample, kernel.PPO{Clip: 0.2, ValueCoef: 0.5, EntropyCoef: 0.01})
			p.Backward()
			p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-5}, 1)
			run, _ := compiled(t, p, dev, m.Layout())
			xs, samples := make([]float32, 2*batch), make([]float32, 4*batch)
			for i := range xs {
				xs[i] = float32(i%9) / 9
			}
			for i := 0; i < len(samples); i += 4 {
				samples[i], samples[i+1], samples[i+2], samples[i+3] = float32(i/4%5), -1.6, float32(i%3)-1, 5
			}
			check(t, run.WriteBatch(x, xs))
			check(t, run.WriteBatch(sample, samples))
			check(t, run.Run())
			out := make([]float32, m.Layout().Len)
			check(t, run.ReadGrad(out))
			return out
		}
		want, got := grad(reference.New[float64](batch)), grad(open(t, cpu.Options{Workers: 1}))
		for i := range want {
			if d := math.Abs(float64(want[i] - got[i])); !(d <= 1e-5*(1+math.Abs(float64(want[i])))) {
				t.Errorf("batch %d: gradient %d is %v, want %v", batch, i, got[i], want[i])
				break
			}
		}
	}
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

// TestAnOpThatRunsPerShardDoesNotRunOnce, and is refused by its name.
func TestAnOpThatRunsPerShardDoesNotRunOnce(t *testing.T) {
	var l kernel.Layout
	dev := open(t, cpu.Options{Workers: 1})
	p := plan.New("once", dev, 2, 1, &l)
	x := p.Shard("x", p.B(), 2, 4)
	p.Once(&kernel.Dropout{Y: x, X: x, Drop: kernel.Drop{Nodes: 2}})
	store, err := dev.NewStore(&l, true)
	check(t, err)
	if _, err := p.Compile(dev, store); err == nil || !strings.HasSuffix(err.Error(), "the CPU has no op dropout that runs once") {
		t.Error(err)
	}
}
