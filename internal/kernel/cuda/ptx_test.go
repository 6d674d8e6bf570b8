package cuda

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"haul/internal/cu"
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/fuse"
	"haul/internal/kernel/cuda/routing"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
)

// declarations are of all embedded kernels, by "module.kernel". They are unpacked and parsed once
// for all tests, which only read them.
func declarations(t *testing.T) map[string]declaration {
	t.Helper()
	declaredOnce.Do(func() { declaredByAll = parseModules(t) })
	if declaredByAll == nil {
		t.Fatal("the kernels cannot be read")
	}
	return declaredByAll
}

var (
	declaredOnce  sync.Once
	declaredByAll map[string]declaration
)

func parseModules(t *testing.T) map[string]declaration {
	t.Helper()
	out := map[string]declaration{}
	for _, name := range Modules() {
		text, err := image(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entriesOf(text) {
			out[name+"."+e.name] = declarationAt(text, e.body)
		}
	}
	return out
}

// recorder is a device that compiles nothing: plans ask it for a shard size only.
type recorder struct{ kernel.Device }

func (recorder) ShardSize(int) int { return 1 << 30 }

// step records a training step of the graph transformer, with a greedy baseline.
func step(t *testing.T, batch, n, width, heads, starts int, dropout float32) *kernel.Program {
	t.Helper()
	return stepOf(t, batch, n, starts, model.GTConfig{Width: width, Heads: heads, Layers: 2, FeedMul: 2, Dropout: dropout})
}

func stepOf(t *testing.T, batch, n, starts int, c model.GTConfig) *kernel.Program {
	t.Helper()
	m, err := model.NewGT(c)
	if err != nil {
		t.Fatal(err)
	}
	p := plan.New("step", recorder{}, batch, n, m.Layout())
	in := p.Drawn(kernel.Rules{Set: c.Rules, Capacity: 30}, n, kernel.Drawing{Purpose: rng.TrainInstances, DemandMin: 1, DemandMax: 9, Symmetries: 1, Mix: 1})
	routes := p.Rollout("policy", m.Encode(p, 0, in, true), plan.RolloutSpec{Starts: starts, Forced: starts > 1, MaxStep: 2 * n}, rng.Actions)
	base := p.Rollout("greedy", m.Encode(p, 1, in, false), plan.RolloutSpec{Choice: kernel.Greedy, Starts: 1, MaxStep: 2 * n}, rng.Actions).Length
	adv, base := p.Advantage(routes, kernel.Given, base, 0, plan.Comparison{})
	p.PolicyGradient(routes, adv)
	p.Backward()
	p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, MaxNorm: 1}, 1)
	p.TallyRoutes(routes, adv, base)
	return p.Program()
}

// agentStep records a training step of the in-context agent, its sequences drawn on the card.
func agentStep(t *testing.T, batch, tokens int, c model.ADConfig) *kernel.Program {
	t.Helper()
	m, err := model.NewAD(c)
	if err != nil {
		t.Fatal(err)
	}
	p := plan.New("agent", recorder{}, batch, tokens, m.Layout())
	in := model.Sequences{Index: p.ShardInts("index", batch, tokens, model.TokenFields(2)), Labels: p.ShardInts("labels", batch, tokens, 2),
		First: p.ShardInts("first", batch, tokens)}
	spec := model.Transitions(kernel.RegionSpec{Streams: 3, Steps: 1000, Horizon: 20, Tokens: tokens, Compressed: true, Shortest: 20, Longest: 80, Ahead: 2, Purpose: rng.Regions}, 2)
	p.Append(&kernel.Regions{Index: in.Index, Labels: in.Labels, First: in.First, Records: p.Whole("history", 3000), RegionSpec: spec})
	sums := p.CrossEntropy("loss", m.Encode(p, in, true), in.Labels, m.Columns(), 0.1, true)
	p.Backward()
	p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, MaxNorm: 1, Warmup: 10, Total: 100}, 2)
	p.TallyHeads(sums, m.Heads()...)
	return p.Program()
}

// agentUse records one step of the agent with its past in caches.
func agentUse(t *testing.T, batch int, c model.ADConfig) *kernel.Program {
	t.Helper()
	m, err := model.NewAD(c)
	if err != nil {
		t.Fatal(err)
	}
	p := plan.New("use", recorder{}, batch, 1, m.Layout())
	m.Step(p, p.RowInts("index", batch, 1, model.TokenFields(2)), p.RowInts("at", batch, 1), p.RowInts("of", batch, 1), c.Positions)
	return p.Program()
}

// testBinder binds a program's ops to made-up addresses, as on an H200.
func testBinder(p *kernel.Program, precision bind.Precision) *bind.Binder {
	const far = 1 << 40 // apart enough for any tensor
	b := bind.New(p)
	b.Precision, b.Lanes, b.SMs, b.MaxShared, b.LaneSize, b.Hopper = precision, 8, 132, 227<<10, p.Layout.Len, true
	b.Address = func(t *kernel.Tensor) uint64 {
		at := uint64(t.Root().ID+1) * far
		switch {
		case t.Parent != nil && precision.Compact(t):
			at += 2 * uint64(t.Offset)
		case t.Parent != nil:
			at += 4 * uint64(t.Offset)
		}
		return at
	}
	b.Bf16 = func(w *kernel.Tensor) uint64 { return uint64(w.ID+1)*far + far/4 }
	b.Scratch, b.Table = func(int) uint64 { return far / 2 }, func([]byte) uint64 { return far / 2 }
	b.Tiled = func(cu.Matrix) uint64 { return far / 2 }
	return b
}

// bindStep binds every op of a program.
func bindStep(t *testing.T, p *kernel.Program, precision bind.Precision) []bind.Launch {
	t.Helper()
	p = fuse.JoinWayBack(p, precision, 132)
	b := testBinder(p, precision)
	var out []bind.Launch
	ops := append(append([]kernel.Op(nil), p.PerShard...), p.Once...)
	fuse.Find(b, ops)
	for _, op := range ops {
		ls, err := launchesOf(b, op)
		if err != nil {
			t.Fatalf("%s: %v", op.Kind(), err)
		}
		for _, why := range exchanged(t, b.Address, op, ls) {
			t.Error(why)
		}
		out = append(out, ls...)
	}
	return out
}

// TestLaunchesMatchPTX compares what the binders pass with what the kernels take: a parameter that
// is missing or of another width would be read from whatever lies beside it.
func TestLaunchesMatchPTX(t *testing.T) {
	kernels := declarations(t)
	for _, precision := range []bind.Precision{bind.FP32, bind.TF32, bind.BF16} {
		for _, s := range []struct {
			batch, n, width, heads, starts int
			dropout                        float32
		}{
			{128, 11, 128, 4, 1, 0}, {512, 101, 128, 8, 1, 0}, {256, 101, 128, 8, 100, 0.1}, {3, 7, 18, 3, 6, 0.1}, {16, 21, 256, 4, 1, 0},
			{2, 401, 128, 8, 1, 0}, {5, 31, 516, 2, 1, 0.5}, {256, 129, 128, 4, 128, 0}, {64, 136, 128, 8, 135, 0},
		} {
			t.Run(fmt.Sprintf("%s/B=%d,N=%d,D=%d,H=%d,S=%d", precision, s.batch, s.n, s.width, s.heads, s.starts), func(t *testing.T) {
				for _, bias := range []struct {
					near  float32
					pairs bool
				}{{0, false}, {0.2, false}, {0, true}} {
					c := model.GTConfig{Width: s.width, Heads: s.heads, Layers: 2, FeedMul: 2, Dropout: s.dropout, Near: bias.near, Pairs: bias.pairs}
					for _, l := range bindStep(t, stepOf(t, s.batch, s.n, s.starts, c), precision) {
						checkLaunch(t, kernels, l)
					}
				}
			})
		}
	}
}

// TestDepotLaunchesMatchPTX does the same for problems with several depots. Those that add to
// scores take the kernels that hold all nodes of an instance, two blocks of a rollout on a
// multiprocessor; others the streamed ones and those of one row.
func TestDepotLaunchesMatchPTX(t *testing.T) {
	kernels, held := declarations(t), map[string]bool{}
	for _, precision := range []bind.Precision{bind.FP32, bind.TF32, bind.BF16} {
		for _, n := range []int{4, 16, 23, 53, 103, 128, 129, 1024} {
			for _, pairs := range []bool{false, true} {
				c := model.GTConfig{Width: 128, Heads: 4, Layers: 2, FeedMul: 2, Pairs: pairs, Rules: kernel.MDVRP}
				for _, l := range bindStep(t, stepOf(t, 64, n, n-3, c), precision) {
					checkLaunch(t, kernels, l)
					held[l.Module] = true
					if n == 103 && strings.HasPrefix(l.Module, "starts_half") && 2*(l.Shared+1024) > 228<<10 {
						t.Errorf("%d bytes of shared memory, too much for two blocks", l.Shared)
					}
				}
			}
		}
	}
	for _, source := range []string{"generate", "rollout", "rollout_grad", "biases", "stream_starts", "stream_row", "stream_walk", "stream_rows", "stream_nodes", "half_walk"} {
		if module := routing.Ruled(source, kernel.MDVRP); !held[module] {
			t.Errorf("%s is launched by none", module)
		}
	}
	for _, tiles := range routing.NodeTiles {
		for _, source := range []string{"starts_half_mdvrp", "half_rows_mdvrp"} {
			if module := fmt.Sprint(source, "_", 8*tiles); !held[module] {
				t.Errorf("%s is launched by none", module)
			}
		}
	}
}

// TestVariedLaunchesMatchPTX does the same for problems of many kinds. Those that add to scores
// take the kernels that hold all nodes of an instance, two blocks of a rollout on a multiprocessor.
func TestVariedLaunchesMatchPTX(t *testing.T) {
	kernels := declarations(t)
	for _, precision := range []bind.Precision{bind.FP32, bind.TF32, bind.BF16} {
		for _, s := range []struct{ n, heads, tiles int }{{16, 4, 2}, {17, 8, 4}, {32, 4, 4}, {51, 4, 7}, {56, 8, 7}, {57, 4, 13}, {101, 4, 13}, {104, 8, 13}, {105, 4, 16}, {128, 4, 16}, {129, 4, 0}} {
			for _, pairs := range []bool{false, true} {
				c := model.GTConfig{Width: 128, Heads: s.heads, Layers: 2, FeedMul: 2, Pairs: pairs, Rules: kernel.VRP}
				held := map[string]bool{}
				for _, l := range bindStep(t, stepOf(t, 64, s.n, s.n-1, c), precision) {
					checkLaunch(t, kernels, l)
					held[l.Module] = true
					if s.n == 101 && strings.HasPrefix(l.Module, "starts_half") && 2*(l.Shared+1024) > 228<<10 {
						t.Errorf("%d bytes of shared memory, too much for two blocks", l.Shared)
					}
				}
				want := pairs && precision != bind.FP32 && s.tiles > 0
				for _, module := range []string{fmt.Sprint("starts_half_vrp_", 8*s.tiles), fmt.Sprint("half_rows_vrp_", 8*s.tiles), "half_walk_vrp"} {
					if held[module] != want {
						t.Errorf("%s, %d nodes, pairs %t: %s is launched: %t", precision, s.n, pairs, module, held[module])
					}
				}
			}
		}
	}
}

// TestAgentLaunchesMatchPTX does the same for the in-context agent: its training step, and its use
// with caches.
func TestAgentLaunchesMatchPTX(t *testing.T) {
	kernels := declarations(t)
	for _, precision := range []bind.Precision{bind.FP32, bind.TF32, bind.BF16} {
		for _, s := range []struct {
			batch, tokens int
			model.ADConfig
		}{
			{1024, 164, model.ADConfig{Width: 128, Heads: 8, Layers: 2, Feed: 512, Positions: 328, Observed: model.Sizes(9, 9), Actions: 5, Rewards: 2, Dropout: 0.1, AttentionDropout: 0.1}},
			{256, 80, model.ADConfig{Width: 64, Heads: 4, Layers: 2, Feed: 256, Positions: 80, Observed: model.Sizes(9, 9), Actions: 5, Rewards: 2}},
			{256, 80, model.ADConfig{Width: 128, Heads: 8, KVHeads: 2, Layers: 1, Feed: 512, Positions: 80, Rotary: true, Observed: model.Sizes(9, 9), Actions: 5, Rewards: 2}},
			{16, 20, model.ADConfig{Width: 32, Heads: 4, KVHeads: 1, Layers: 1, Feed: 16, Positions: 20, Observed: model.Sizes(9, 9), Actions: 5, Rewards: 2}},
		} {
			t.Run(fmt.Sprintf("%s/B=%d,T=%d,D=%d,H=%d,%d", precision, s.batch, s.tokens, s.Width, s.Heads, s.KVHeads), func(t *testing.T) {
				for _, p := range []*kernel.Program{agentStep(t, s.batch, s.tokens, s.ADConfig), agentUse(t, s.batch, s.ADConfig)} {
					for _, l := range bindStep(t, p, precision) {
						checkLaunch(t, kernels, l)
					}
				}
			})
		}
	}
}

func checkLaunch(t *testing.T, kernels map[string]declaration, l bind.Launch) {
	t.Helper()
	if testing.Verbose() { // to be compared with another commit's, where there is no card
		t.Log("launch", l.Key(), l.Grid, l.Block, l.Shared, len(l.Args))
	}
	d, ok := kernels[l.Key()]
	if !ok {
		t.Errorf("%s: no such kernel", l.Key())
		return
	}
	if why := d.refuses(l); why != "" {
		t.Error(why)
	}
	if l.Shared < 0 || l.Shared > 227<<10 {
		t.Errorf("%s: %d bytes of shared memory", l.Key(), l.Shared)
	}
}

// TestStructs holds the blocks to the sizes that optimizer/src/adamw.cu asserts of their C++
// counterparts.
func TestStructs(t *testing.T) {
	got := []uintptr{unsafe.Sizeof(control{}), unsafe.Sizeof(state{}), unsafe.Sizeof(metrics{}), unsafe.Offsetof(state{}.scalars), unsafe.Offsetof(metrics{}.badStep)}
	if diff := cmp.Diff([]uintptr{64, 104, 280, 40, 264}, got); diff != "" {
		t.Error(diff)
	}
	s := kernel.State{Step: 1, Instances: 2, Beta1T: 3, Beta2T: 4, Part: 7, Scalars: map[string]float64{"a": 5, "b": 6}}
	packed := packState(s, []float64{5, 6})
	if diff := cmp.Diff(s, packed.unpack([]string{"a", "b"})); diff != "" {
		t.Error(diff)
	}
}
