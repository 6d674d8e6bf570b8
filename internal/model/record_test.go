package model_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
)

// TestWeightsStartByTheirInputs: an initial weight or bias is at most 1/√(number of summed inputs);
// for a context the inputs are its features.
func TestWeightsStartByTheirInputs(t *testing.T) {
	m, err := model.NewGT(model.GTConfig{Width: 32, Heads: 2, Layers: 1, FeedMul: 2, Pairs: true})
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string]int{"decoder.load.weight": 1, "decoder.pair_load.weight": 1, "decoder.proj.weight": 32, "decoder.graph.weight": 32, "decoder.pointer.weight": 32}
	for _, p := range m.Layout().Params {
		if want, ok := inputs[p.Name]; ok {
			delete(inputs, p.Name)
			if p.FanIn != want || p.Init != kernel.InitUniform {
				t.Errorf("%s begins by %d inputs, want %d", p.Name, p.FanIn, want)
			}
		}
	}
	if len(inputs) > 0 {
		t.Errorf("there is no %v", inputs)
	}
}

// rates returns the dropouts of a recording, and the operations of its products by the ops'
// formulas.
func rates(prog *kernel.Program) (drops []float32, products int64) {
	for _, op := range prog.PerShard {
		var d kernel.Drop
		switch o := op.(type) {
		case *kernel.Linear:
			d = o.Drop
			products += o.Cost().FLOPs
		case *kernel.Dropout:
			d = o.Drop
		case *kernel.CausalAttention:
			d = o.Drop
		}
		if d.Rate > 0 {
			drops = append(drops, d.Rate)
		}
	}
	return drops, products
}

// TestDropoutIsForTrainingAlone: a network in inference has no dropout; in training it has its rate
// at every site. The operations that a model states by formula equal those of its recorded
// products, and of attention by its own formula.
func TestDropoutIsForTrainingAlone(t *testing.T) {
	const nodes, width, layers = 6, 8, 3
	dev := reference.New[float32](1)
	for _, train := range []bool{true, false} {
		gat, err := model.NewGAT(model.GATConfig{Width: width, Heads: 2, Layers: layers, Edge: 3, FeedMul: 2, Leak: 0.2, Dropout: 0.25})
		if err != nil {
			t.Fatal(err)
		}
		pl := plan.New("gat", dev, 1, nodes, gat.Layout())
		gat.Encode(pl, 0, pl.Given(kernel.Rules{Capacity: 9}, nodes), train)
		drops, products := rates(pl.Program())
		if want := layers; train && len(drops) != want || !train && len(drops) != 0 {
			t.Errorf("GAT, training %v: dropouts %v", train, drops)
		}
		if want := products + layers*2*nodes*nodes*width; gat.EncodeFLOPs(nodes) != want {
			t.Errorf("GAT states %d operations, it records %d", gat.EncodeFLOPs(nodes), want)
		}
		for _, pairs := range []bool{false, true} {
			gt, err := model.NewGT(model.GTConfig{Width: width, Heads: 2, Layers: layers, FeedMul: 2, Pairs: pairs, Dropout: 0.25})
			if err != nil {
				t.Fatal(err)
			}
			p := plan.New("gt", dev, 1, nodes, gt.Layout())
			in := p.Given(kernel.Rules{Capacity: 9}, nodes)
			p.Rollout("routes", gt.Encode(p, 0, in, train), plan.RolloutSpec{Starts: 2, MaxStep: 2 * nodes}, rng.Actions)
			drops, products := rates(p.Program())
			if want := 2 * layers; train && len(drops) != want || !train && len(drops) != 0 {
				t.Errorf("GT, training %v: dropouts %v", train, drops)
			}
			all := p.Program().PerShard
			decodes := 2 * kernel.ExpectedSteps(nodes) * gt.DecodeFLOPs(nodes)
			want := products + layers*4*nodes*nodes*width + all[len(all)-1].Cost().FLOPs
			if got := gt.EncodeFLOPs(nodes) + decodes; got != want {
				t.Errorf("GT, pairs %v, states %d operations, it records %d", pairs, got, want)
			}
		}
		for _, kv := range []int{0, 1, 2} {
			ad := agentOf(t, model.ADConfig{Width: width, Heads: 4, KVHeads: kv, Layers: layers, Feed: 12, Positions: nodes, Dropout: 0.25, AttentionDropout: 0.5})
			drops, products := rates(encoded(dev, ad, nodes, train))
			halves := 0
			for _, r := range drops {
				if r == 0.5 {
					halves++
				}
			}
			if train && (len(drops) != 3*layers || halves != layers) || !train && len(drops) != 0 {
				t.Errorf("AD, training %v: dropouts %v", train, drops)
			}
			if want := products + layers*4*width*nodes*(nodes+1)/2; ad.FLOPs(nodes) != want {
				t.Errorf("AD with %d heads of keys states %d operations, it records %d", kv, ad.FLOPs(nodes), want)
			}
		}
	}
}

// agentOf returns an agent for observations of two fields.
func agentOf(t *testing.T, c model.ADConfig) *model.AD {
	t.Helper()
	c.Observed, c.Actions, c.Rewards = model.Sizes(3, 3), 5, 2
	m, err := model.NewAD(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// encoded returns an agent's program over a row.
func encoded(dev kernel.Device, m *model.AD, tokens int, train bool) *kernel.Program {
	p := plan.New("ad", dev, 1, tokens, m.Layout())
	m.Encode(p, model.Sequences{Index: p.RowInts("index", 1, tokens, m.Fields()), Labels: p.RowInts("labels", 1, tokens, 2), First: p.RowInts("first", 1, tokens)}, train)
	return p.Program()
}

// TestAsManyHeadsOfKeysAreTheSameNetwork: with tf_n_kv_head equal to tf_n_head an agent records the
// same ops as without the setting.
func TestAsManyHeadsOfKeysAreTheSameNetwork(t *testing.T) {
	c := model.ADConfig{Width: 16, Heads: 4, Layers: 2, Feed: 12, Positions: 9, Rotary: true}
	dev, plain := reference.New[float32](1), agentOf(t, c)
	c.KVHeads = 4
	same := agentOf(t, c)
	if diff := cmp.Diff(plain.Layout(), same.Layout()); diff != "" {
		t.Errorf("the weights differ: %s", diff)
	}
	if diff := cmp.Diff(encoded(dev, plain, 9, true).PerShard, encoded(dev, same, 9, true).PerShard); diff != "" {
		t.Errorf("the steps differ: %s", diff)
	}
	for _, op := range encoded(dev, same, 9, true).PerShard {
		if op.Kind() == new(kernel.Spread).Kind() {
			t.Error("keys and values are copied to the heads that they belong to")
		}
	}
}

// TestSharedKeysAreSmaller: with fewer heads of keys and values, the weight and the caches have
// fewer columns.
func TestSharedKeysAreSmaller(t *testing.T) {
	const width, heads, tokens, batch = 32, 8, 11, 3
	for kv, kept := range map[int]int{0: 32, 8: 32, 4: 16, 2: 8, 1: 4} {
		m := agentOf(t, model.ADConfig{Width: width, Heads: heads, KVHeads: kv, Layers: 2, Feed: 12, Positions: tokens})
		for _, q := range m.Layout().Params {
			if strings.HasSuffix(q.Name, "qkv.weight") && !slices.Equal(q.Shape, []int{width + 2*kept, width}) {
				t.Errorf("%d heads of keys: %s is %v", kv, q.Name, q.Shape)
			}
		}
		p := plan.New("use", reference.New[float32](1), batch, 1, m.Layout())
		m.Step(p, p.RowInts("index", p.B(), 1, m.Fields()), p.RowInts("at", p.B(), 1), nil, tokens)
		caches := 0
		for _, x := range p.Program().Tensors {
			if strings.HasSuffix(x.Name, ".keys") || strings.HasSuffix(x.Name, ".values") {
				caches++
				if !slices.Equal(x.Shape[1:], []int{tokens, kept}) {
					t.Errorf("%d heads of keys: %s is %v", kv, x.Name, x.Shape)
				}
			}
		}
		if caches != 4 {
			t.Errorf("%d caches for two layers", caches)
		}
	}
}

func TestHeadsThatCannotBeShared(t *testing.T) {
	for _, kv := range []int{-1, 3, 5, 8} {
		_, err := model.NewAD(model.ADConfig{Width: 16, Heads: 4, KVHeads: kv, Layers: 1, Feed: 12, Positions: 9, Observed: model.Sizes(3, 3), Actions: 5, Rewards: 2})
		if want := fmt.Sprintf("model AD: tf_n_head 4 is not divisible by tf_n_kv_head %d", kv); err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
