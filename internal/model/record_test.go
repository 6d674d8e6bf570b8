package model_test

import (
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
)

// TestWeightsStartByTheirInputs: a uniform weight or bias lies within one over the root of the
// inputs that are added up with it, of a context by the number of its features.
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

// rates are the dropouts of a recording, and the work of its products by the ops' own account.
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

// TestDropoutIsForTrainingAlone: a network in use records none, one that learns records its rates
// at every site; and the work that a model states by formula is that of the products it records,
// attention by its own formula.
func TestDropoutIsForTrainingAlone(t *testing.T) {
	const nodes, width, layers = 6, 8, 3
	dev := reference.New[float32](1)
	ad, err := model.NewAD(model.ADConfig{Width: width, Heads: 2, Layers: layers, Feed: 12, Positions: nodes, Observed: model.Sizes(3, 3), Actions: 5, Rewards: 2, Dropout: 0.25, AttentionDropout: 0.5})
	if err != nil {
		t.Fatal(err)
	}
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
		p := plan.New("ad", dev, 1, nodes, ad.Layout())
		ad.Encode(p, model.Sequences{Index: p.RowInts("index", 1, nodes, model.TokenFields(2)), Labels: p.RowInts("labels", 1, nodes, 2), First: p.RowInts("first", 1, nodes)}, train)
		drops, products = rates(p.Program())
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
			t.Errorf("AD states %d operations, it records %d", ad.FLOPs(nodes), want)
		}
	}
}
