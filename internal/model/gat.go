package model

import (
	"fmt"

	"haul/internal/kernel"
)

// GATConfig holds the sizes of the graph attention network.
type GATConfig struct {
	Width   int // gat_hidden_dim, D
	Heads   int
	Layers  int
	Edge    int     // gat_edge_dim, E: width of an edge's features
	FeedMul int     // the gated unit after the attention has width FeedMul·D
	Leak    float32 // slope of the leaky ReLU below 0
	// options of the decoder, see PointerConfig
	Near         float32
	Pairs, Views bool
	Rules        kernel.RuleSet
	Dropout      float32
	DropoutKey   uint64
}

// gat is the graph attention network of Veličković et al. 2018, https://arxiv.org/abs/1710.10903,
// on the complete graph of an instance. The score of a pair of nodes is the sum of a term of each
// node and of a term of their distance. docs/models.md has the formulas and the differences from
// the paper.
type gat struct {
	cfg          GATConfig
	embW, embB   int
	layers       []gatLayer
	normG, normB int
}

type gatLayer struct {
	normG, normB, value, scoreW, scoreB, edgeW, edgeB, far int
	gateW, gateB, outW, outB                               int
}

// NewGAT returns a routing policy with a graph attention network as its encoder.
func NewGAT(cfg GATConfig) (*Network, error) {
	switch {
	case cfg.Width < 1 || cfg.Heads < 1 || cfg.Layers < 1 || cfg.Edge < 1 || cfg.FeedMul < 1:
		return nil, fmt.Errorf("model GAT: width %d, heads %d, layers %d, edge features %d and feedforward multiplier %d must be at least 1",
			cfg.Width, cfg.Heads, cfg.Layers, cfg.Edge, cfg.FeedMul)
	case cfg.Width%cfg.Heads != 0:
		return nil, fmt.Errorf("model GAT: gat_hidden_dim %d is not divisible by num_heads %d", cfg.Width, cfg.Heads)
	}
	return newNetwork(PointerConfig{Heads: cfg.Heads, Near: cfg.Near, Pairs: cfg.Pairs, Views: cfg.Views, Rules: cfg.Rules}, Dropout{cfg.Dropout, cfg.DropoutKey},
		func(l *kernel.Layout) Encoder { return newGAT(parameters{l}, cfg) }), nil
}

func newGAT(l parameters, cfg GATConfig) *gat {
	m := &gat{cfg: cfg}
	d, f := cfg.Width, cfg.FeedMul*cfg.Width
	m.embW, m.embB = l.linear("embed", len(cfg.Rules.Features()), d)
	for i := range cfg.Layers {
		var y gatLayer
		at := fmt.Sprintf("layers.%d.", i)
		y.normG, y.normB = l.norm(at+"norm", d)
		y.value = l.Add(at+"value.weight", kernel.InitUniform, d, d, d)
		y.scoreW, y.scoreB = l.linear(at+"score", d, 2*cfg.Heads)
		y.edgeW, y.edgeB = l.linear(at+"edge", d, cfg.Edge)
		y.far = l.Add(at+"far.weight", kernel.InitUniform, cfg.Edge, cfg.Heads, cfg.Edge)
		y.gateW, y.gateB = l.linear(at+"gate", d, 2*f)
		y.outW, y.outB = l.linear(at+"out", f, d)
		m.layers = append(m.layers, y)
	}
	m.normG, m.normB = l.norm("norm", d)
	return m
}

func (m *gat) Width() int { return m.cfg.Width }

func (m *gat) Encode(r *Pass, in Instances) *kernel.Tensor {
	w := r.weight
	x := r.Linear(r.name("embed"), in.Feature, w(m.embW), w(m.embB), nil)
	for i, l := range m.layers {
		at := func(s string) string { return r.name(fmt.Sprintf("layers.%d.%s", i, s)) }
		h := r.Norm(at("norm"), x, w(l.normG), w(l.normB))
		v := r.Linear(at("value"), h, w(l.value), nil, nil)
		score := r.Linear(at("score"), v, w(l.scoreW), w(l.scoreB), nil)
		far := r.Linear(at("far"), r.Linear(at("edge"), h, w(l.edgeW), w(l.edgeB), nil), w(l.far), nil, nil)
		y := r.GraphAttention(at("attention"), v, score, far, in.PosX, in.PosY, m.cfg.Leak)
		u := r.GLU(at("glu"), r.Linear(at("gate"), y, w(l.gateW), w(l.gateB), nil))
		x = r.residual(at("out"), u, w(l.outW), w(l.outB), x)
	}
	return r.Norm(r.name("norm"), x, w(m.normG), w(m.normB))
}

func (m *gat) FLOPs(n int) int64 {
	d, f, nn := int64(m.cfg.Width), int64(m.cfg.FeedMul*m.cfg.Width), int64(n)
	h, e := int64(m.cfg.Heads), int64(m.cfg.Edge)
	layer := 2*d*d + 2*d*2*h + 2*d*e + 2*e*h + 2*nn*d + 2*d*2*f + 2*f*d
	return nn * (2*int64(len(m.cfg.Rules.Features()))*d + int64(m.cfg.Layers)*layer)
}
