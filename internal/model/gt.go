// Package model defines the networks. Each is recorded on package plan and runs on every device;
// recipes and internal/policy use them.
//
// The names of parameters and the order in which a model adds them are the checkpoint format. The
// order also determines the random stream of each parameter's initial values.
package model

import (
	"fmt"

	"haul/internal/kernel"
)

// GTConfig holds the sizes of the graph transformer.
type GTConfig struct {
	Width   int // hidden_dim, D
	Heads   int
	Layers  int
	FeedMul int // the gated unit has width FeedMul·D
	// options of the decoder, see PointerConfig
	Near         float32
	Pairs, Views bool
	Rules        kernel.RuleSet
	Dropout      float32
	DropoutKey   uint64
}

// gt is the graph transformer: a pre-norm transformer over the nodes with one learned distance bias
// per head.
type gt struct {
	cfg          GTConfig
	embW, embB   int
	layers       []gtLayer
	normG, normB int
}

type gtLayer struct {
	norm1G, norm1B, qkv, slope, outW, outB     int
	norm2G, norm2B, gateW, gateB, downW, downB int
}

// NewGT returns a routing policy with a graph transformer as its encoder.
func NewGT(cfg GTConfig) (*Network, error) {
	switch {
	case cfg.Width < 1 || cfg.Heads < 1 || cfg.Layers < 1 || cfg.FeedMul < 1:
		return nil, fmt.Errorf("model GT: width %d, heads %d, layers %d and feedforward multiplier %d must be at least 1", cfg.Width, cfg.Heads, cfg.Layers, cfg.FeedMul)
	case cfg.Width%cfg.Heads != 0:
		return nil, fmt.Errorf("model GT: hidden_dim %d is not divisible by num_heads %d", cfg.Width, cfg.Heads)
	}
	return newNetwork(PointerConfig{Heads: cfg.Heads, Near: cfg.Near, Pairs: cfg.Pairs, Views: cfg.Views, Rules: cfg.Rules}, Dropout{cfg.Dropout, cfg.DropoutKey},
		func(l *kernel.Layout) Encoder { return newGT(parameters{l}, cfg) }), nil
}

func newGT(l parameters, cfg GTConfig) *gt {
	m := &gt{cfg: cfg}
	d, f := cfg.Width, cfg.FeedMul*cfg.Width
	m.embW, m.embB = l.linear("embed", len(cfg.Rules.Features()), d)
	for i := range cfg.Layers {
		var y gtLayer
		at := fmt.Sprintf("layers.%d.", i)
		y.norm1G, y.norm1B = l.norm(at+"norm1", d)
		y.qkv = l.Add(at+"qkv.weight", kernel.InitUniform, d, 3*d, d)
		y.slope = l.Add(at+"slope", kernel.InitZero, d, cfg.Heads)
		y.outW, y.outB = l.linear(at+"out", d, d)
		y.norm2G, y.norm2B = l.norm(at+"norm2", d)
		y.gateW, y.gateB = l.linear(at+"gate", d, 2*f)
		y.downW, y.downB = l.linear(at+"down", f, d)
		m.layers = append(m.layers, y)
	}
	m.normG, m.normB = l.norm("norm", d)
	return m
}

func (m *gt) Width() int { return m.cfg.Width }

func (m *gt) Encode(r *Pass, in Instances) *kernel.Tensor {
	w := r.weight
	x := r.Linear(r.name("embed"), in.Feature, w(m.embW), w(m.embB), nil)
	for i, l := range m.layers {
		at := func(s string) string { return r.name(fmt.Sprintf("layers.%d.%s", i, s)) }
		h := r.Norm(at("norm1"), x, w(l.norm1G), w(l.norm1B))
		qkv := r.Linear(at("qkv"), h, w(l.qkv), nil, nil)
		y := r.Attention(at("attention"), qkv, in.PosX, in.PosY, w(l.slope), m.cfg.Heads)
		x = r.residual(at("out"), y, w(l.outW), w(l.outB), x)
		h = r.Norm(at("norm2"), x, w(l.norm2G), w(l.norm2B))
		u := r.GLU(at("glu"), r.Linear(at("gate"), h, w(l.gateW), w(l.gateB), nil))
		x = r.residual(at("down"), u, w(l.downW), w(l.downB), x)
	}
	return r.Norm(r.name("norm"), x, w(m.normG), w(m.normB))
}

func (m *gt) FLOPs(n int) int64 {
	d, f, nn := int64(m.cfg.Width), int64(m.cfg.FeedMul*m.cfg.Width), int64(n)
	layer := 2*d*3*d + 2*d*d + 2*d*2*f + 2*f*d + 4*nn*d
	return nn * (2*int64(len(m.cfg.Rules.Features()))*d + int64(m.cfg.Layers)*layer)
}
