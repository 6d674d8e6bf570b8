package cuda

import (
	"slices"
	"testing"

	"haul/internal/cu"
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/optimizer"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
)

// graphPeer has a place in a graph, and a hostPeer none.
type graphPeer struct{ hostPeer }

func (graphPeer) Record(_ *cu.Graph, _ cu.Stream, _ uint64, _ int, wait []cu.Node) ([]cu.Node, error) {
	return wait, nil
}

func (graphPeer) InGraph() bool { return true }

func (graphPeer) RecordGather(_ *cu.Graph, _ cu.Stream, _, _ uint64, _ int, wait []cu.Node) ([]cu.Node, error) {
	return wait, nil
}

// twoPeer is one of two in the graph.
type twoPeer struct{ graphPeer }

func (twoPeer) Share() kernel.Share { return kernel.Share{Rank: 1, Size: 2} }

type hostPeer struct{}

func (hostPeer) Exchange([]float32) error { return nil }

func (hostPeer) Share() kernel.Share { return kernel.Share{Size: 1} }

func (hostPeer) Sum([]float64) error { return nil }

// seamStep is a step of policy gradient with a running baseline, its gradient exchanged with a peer
// where there is one.
func seamStep(t *testing.T, peer kernel.Peer, every, parts int) *kernel.Program {
	t.Helper()
	const n = 7
	m, err := model.NewGT(model.GTConfig{Width: 16, Heads: 2, Layers: 1, FeedMul: 2})
	if err != nil {
		t.Fatal(err)
	}
	p := plan.New("seam", recorder{}, 8, n, m.Layout())
	if err := p.SplitStep(parts, peer); err != nil {
		t.Fatal(err)
	}
	mode := kernel.Running
	if parts > 1 { // a mean over all rows is not exchanged
		mode = kernel.SharedMean
	}
	in := p.Drawn(kernel.Rules{Capacity: 30}, n, kernel.Drawing{DemandMin: 1, DemandMax: 9, Symmetries: 1})
	routes := p.Rollout("policy", m.Encode(p, 0, in, true), plan.RolloutSpec{Starts: 2, MaxStep: 2 * n}, rng.Actions)
	adv, base := p.Advantage(routes, mode, nil, 0.9, plan.Comparison{})
	p.PolicyGradient(routes, adv)
	p.Backward()
	p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}, every)
	p.TallyRoutes(routes, adv, base)
	return p.Program()
}

// TestSeamLaunchesMatchPTX: alone, AdamW sums the lanes on its way; with a peer a kernel does it
// before.
func TestSeamLaunchesMatchPTX(t *testing.T) {
	kernels := declarations(t)
	for _, c := range []struct {
		peer         kernel.Peer
		every, parts int
		want         []string
	}{
		{nil, 1, 1, []string{"adamw_sum", "adamw_update"}},
		{nil, 2, 1, []string{"adamw_sum", "adamw_update"}},
		{nil, 1, 4, []string{"adamw_sum", "adamw_update"}},
		{graphPeer{}, 1, 1, []string{"reduce", "adamw_sum", "adamw_update"}},
		{graphPeer{}, 2, 1, []string{"reduce", "adamw_sum", "adamw_update"}},
		{hostPeer{}, 1, 1, []string{"reduce", "adamw_sum", "adamw_update"}},
		{hostPeer{}, 1, 4, []string{"reduce", "adamw_sum", "adamw_update"}},
		{twoPeer{}, 1, 4, []string{"reduce", "reduce_ranks", "adamw_sum", "adamw_update"}},
	} {
		var got []string
		lanes := int32(0)
		for _, l := range bindStep(t, seamStep(t, c.peer, c.every, c.parts), bind.FP32) {
			checkLaunch(t, kernels, l)
			if l.Module == "adamw" {
				got = append(got, l.Kernel)
			}
			if l.Kernel == "adamw_sum" {
				lanes = l.Args[7].(int32)
			}
		}
		if joined := c.peer != nil; !slices.Equal(got, c.want) || (lanes == 1) != joined {
			t.Errorf("peer %T, every %d, %d parts: launches %v over %d lanes, want %v", c.peer, c.every, c.parts, got, lanes, c.want)
		}
	}
	if optimizer.InGraph(&kernel.Exchange{Peer: hostPeer{}}) != nil || optimizer.InGraph(&kernel.Exchange{Peer: graphPeer{}}) == nil {
		t.Error("a peer of the host was given a place in the graph, or one of the graph none")
	}
}

// TestPartsAreTheSameRowsWhoeverRunsThem: however many processes share a step of four parts, part k
// is the rows from k·batch/4 on, its op shapes are the same, and an instance weighs one of the
// whole batch.
func TestPartsAreTheSameRowsWhoeverRunsThem(t *testing.T) {
	alone, second := seamStep(t, nil, 1, 4), seamStep(t, twoPeer{}, 1, 4)
	for _, c := range []struct {
		p           *kernel.Program
		first, runs int
	}{{alone, 0, 4}, {second, 4, 2}} {
		reduce := c.p.Once[0].(*kernel.Reduce)
		if c.p.Batch != 2 || c.p.Total() != 8 || c.p.First() != c.first || c.p.Share.Runs() != c.runs || reduce.Every != c.runs {
			t.Errorf("batch %d of %d from %d on, %d runs, reduced every %d", c.p.Batch, c.p.Total(), c.p.First(), c.p.Share.Runs(), reduce.Every)
		}
	}
	for i, op := range alone.PerShard {
		if g, ok := op.(*kernel.RolloutGrad); ok && g.Weight != second.PerShard[i].(*kernel.RolloutGrad).Weight {
			t.Error("an instance weighs another share of the step")
		}
	}
	p := plan.New("odd", recorder{}, 8, 3, alone.Layout)
	if err := p.SplitStep(3, nil); err == nil {
		t.Error("a batch of 8 was cut into 3")
	}
	p = plan.New("odd", recorder{}, 24, 3, alone.Layout)
	if err := p.SplitStep(6, twoPeer{}); err == nil {
		t.Error("two processes share six parts, whose tree has no halves")
	}
}

// TestScalarsAndFlatBuffersOrderOps: what moves a running mean waits for its readers, and the
// optimizer's ops for all before them and each other.
func TestScalarsAndFlatBuffersOrderOps(t *testing.T) {
	p := seamStep(t, graphPeer{}, 1, 1)
	at := map[string]int{}
	for i, op := range append(append([]kernel.Op(nil), p.PerShard...), p.Once...) {
		at[op.Kind()] = i
	}
	deps := dependencies(p, false)
	for op, before := range map[string]string{"mean.running": "advantage", "exchange": "reduce", "adamw": "exchange", "tally": "advantage"} {
		if !slices.Contains(deps[at[op]], at[before]) {
			t.Errorf("%s waits for %v, not for %s, which is op %d", op, deps[at[op]], before, at[before])
		}
	}
	// Through what it waits for, the reduction waits for every op before it.
	reached := map[int]bool{}
	var walk func(i int)
	walk = func(i int) {
		for _, j := range deps[i] {
			if !reached[j] {
				reached[j] = true
				walk(j)
			}
		}
	}
	walk(at["reduce"])
	if len(reached) != at["reduce"] {
		t.Errorf("the reduction waits for %d of the %d ops before it", len(reached), at["reduce"])
	}
}

// TestWhatFits: a batch that would fit is named, and none where not one instance does.
func TestWhatFits(t *testing.T) {
	for _, c := range []struct {
		free         uint64
		total, batch int
		want         string
	}{{1000, 1600, 8, "a batch of 4 would fit"}, {1000, 900, 1, "a batch of 1 would fit"}, {1000, 901, 1, "not even one instance at a time would fit"}, {0, 3, 8, "not even one instance at a time would fit"}} {
		if got := whatFits(c.free, c.total, c.batch); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
