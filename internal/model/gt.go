// Package model holds the networks, each written once on plan and run on any device.
//
// What a reader could break: parameter names and the order in which a model adds them are the
// checkpoint format, and the order also picks each parameter's stream of initial values.
package model

import (
	"fmt"
	"math"

	"haul/internal/kernel"
	"haul/internal/plan"
	"haul/internal/rng"
)

// GTConfig is the shape of the graph transformer.
type GTConfig struct {
	Width   int // hidden_dim, D
	Heads   int
	Layers  int
	FeedMul int     // the gated unit is FeedMul·D wide
	Near    float32 // kernel.Decoder's
	Pairs   bool    // the decoder scores pairs of nodes
	// a start's customer is where its first step is seen from, and not where it begins by force
	Views      bool
	Dropout    float32
	DropoutKey uint64 // seed of the dropout masks
}

// GT is the routing policy, a graph transformer: a pre-norm transformer over the nodes with one
// learned distance bias per head, and a pointer decoder (Kool et al. 2019) whose projections are
// applied once per node. docs/models.md has the formulas.
type GT struct {
	cfg                        GTConfig
	layout                     kernel.Layout
	embW, embB                 int
	layers                     []gtLayer
	normG, normB               int
	proj, graph, load, pointer int
	pairLoad                   int // with Pairs
}

type gtLayer struct {
	norm1G, norm1B, qkv, slope, outW, outB     int
	norm2G, norm2B, gateW, gateB, downW, downB int
}

// Features is how many numbers a network reads of a node: x, y, demand/capacity, depot flag.
const Features = 4

// Views: see GTConfig.
func (m *GT) Views() bool { return m.cfg.Views }

// NewGT lays out the parameters.
func NewGT(cfg GTConfig) (*GT, error) {
	switch {
	case cfg.Width < 1 || cfg.Heads < 1 || cfg.Layers < 1 || cfg.FeedMul < 1:
		return nil, fmt.Errorf("model GT: width %d, heads %d, layers %d and feedforward multiplier %d must be at least 1", cfg.Width, cfg.Heads, cfg.Layers, cfg.FeedMul)
	case cfg.Width%cfg.Heads != 0:
		return nil, fmt.Errorf("model GT: hidden_dim %d is not divisible by num_heads %d", cfg.Width, cfg.Heads)
	}
	m := &GT{cfg: cfg}
	d, f := cfg.Width, cfg.FeedMul*cfg.Width
	add := m.layout.Add
	linear := func(name string, in, out int) (w, b int) {
		return add(name+".weight", kernel.InitUniform, in, out, in), add(name+".bias", kernel.InitUniform, in, out)
	}
	norm := func(name string) (g, b int) {
		return add(name+".weight", kernel.InitOne, d, d), add(name+".bias", kernel.InitZero, d, d)
	}
	m.embW, m.embB = linear("embed", Features, d)
	for i := range cfg.Layers {
		var l gtLayer
		at := fmt.Sprintf("layers.%d.", i)
		l.norm1G, l.norm1B = norm(at + "norm1")
		l.qkv = add(at+"qkv.weight", kernel.InitUniform, d, 3*d, d)
		l.slope = add(at+"slope", kernel.InitZero, d, cfg.Heads)
		l.outW, l.outB = linear(at+"out", d, d)
		l.norm2G, l.norm2B = norm(at + "norm2")
		l.gateW, l.gateB = linear(at+"gate", d, 2*f)
		l.downW, l.downB = linear(at+"down", f, d)
		m.layers = append(m.layers, l)
	}
	m.normG, m.normB = norm("norm")
	m.proj = add("decoder.proj.weight", kernel.InitUniform, d, m.projected(), d)
	m.graph = add("decoder.graph.weight", kernel.InitUniform, d, d, d)
	m.load = add("decoder.load.weight", kernel.InitUniform, 1, d)
	m.pointer = add("decoder.pointer.weight", kernel.InitUniform, d, d, d)
	if cfg.Pairs {
		m.pairLoad = add("decoder.pair_load.weight", kernel.InitUniform, 1, d)
	}
	return m, nil
}

// projected is the columns of a node's projections: Node | Key | Value | the pointer's source, and
// with Pairs PairQuery | PairKey.
func (m *GT) projected() int {
	if m.cfg.Pairs {
		return 6 * m.cfg.Width
	}
	return 4 * m.cfg.Width
}

// Layout is where each parameter lies in the flat buffer.
func (m *GT) Layout() *kernel.Layout { return &m.layout }

// Instances are the tensors a policy reads.
type Instances struct {
	PosX, PosY, Demand, Feature *kernel.Tensor
	Capacity                    int32
}

// Encode records the network from features to what the decoder reads, with weight set `set`. train
// turns dropout on.
func (m *GT) Encode(p *plan.Plan, set int, in Instances, train bool) kernel.Decoder {
	w := func(i int) *kernel.Tensor { return p.Weight(set, i) }
	name := func(s string) string {
		if set > 0 {
			return fmt.Sprintf("set%d.%s", set, s)
		}
		return s
	}
	rate := m.cfg.Dropout
	if !train {
		rate = 0
	}
	site := 0
	residual := func(s string, x, weight, bias, res *kernel.Tensor) *kernel.Tensor {
		if rate == 0 {
			return p.Linear(s, x, weight, bias, res)
		}
		site++
		return p.Dropout(s, p.Linear(s+".dense", x, weight, bias, nil), res, rate, site-1, m.cfg.DropoutKey)
	}
	x := p.Linear(name("embed"), in.Feature, w(m.embW), w(m.embB), nil)
	for i, l := range m.layers {
		at := func(s string) string { return name(fmt.Sprintf("layers.%d.%s", i, s)) }
		h := p.Norm(at("norm1"), x, w(l.norm1G), w(l.norm1B))
		qkv := p.Linear(at("qkv"), h, w(l.qkv), nil, nil)
		y := p.Attention(at("attention"), qkv, in.PosX, in.PosY, w(l.slope), m.cfg.Heads)
		x = residual(at("out"), y, w(l.outW), w(l.outB), x)
		h = p.Norm(at("norm2"), x, w(l.norm2G), w(l.norm2B))
		u := p.GLU(at("glu"), p.Linear(at("gate"), h, w(l.gateW), w(l.gateB), nil))
		x = residual(at("down"), u, w(l.downW), w(l.downB), x)
	}
	h := p.Norm(name("norm"), x, w(m.normG), w(m.normB))
	d := m.cfg.Width
	proj := p.Linear(name("decoder.proj"), h, w(m.proj), nil, nil)
	graph := p.Linear(name("decoder.graph"), p.MeanNodes(name("mean"), h), w(m.graph), nil, nil)
	pointer := p.Linear(name("decoder.pointer"), p.Columns(proj, 3*d, 4*d), w(m.pointer), nil, nil)
	return m.Decoder(p, set, kernel.Decoder{Proj: proj, Pointer: pointer, Graph: graph, PosX: in.PosX, PosY: in.PosY, Demand: in.Demand,
		Capacity: in.Capacity})
}

// Decoder fills in what a decoder of instances, whose projections it has, reads of the model
// itself: for a plan that decodes without encoding.
func (m *GT) Decoder(p *plan.Plan, set int, dec kernel.Decoder) kernel.Decoder {
	dec.Load, dec.Heads, dec.Near = p.Weight(set, m.load), m.cfg.Heads, m.cfg.Near
	if d := m.cfg.Width; m.cfg.Pairs {
		dec.Pair, dec.PairLoad = p.Columns(dec.Proj, 4*d, 6*d), p.Weight(set, m.pairLoad)
	}
	return dec
}

// LoadsOf are the decoder's weights of the load left in a flat buffer of parameters: the query's,
// and the pairs', nil without them.
func (m *GT) LoadsOf(flat []float32) (load, pairLoad []float32) {
	of := func(i int) []float32 {
		p := m.layout.Params[i]
		return flat[p.Offset:][:p.Len()]
	}
	if m.cfg.Pairs {
		pairLoad = of(m.pairLoad)
	}
	return of(m.load), pairLoad
}

// EncodeFLOPs is the work of encoding one instance of n nodes, by formula (a multiply-add is two
// operations).
func (m *GT) EncodeFLOPs(n int) int64 {
	d, f, nn := int64(m.cfg.Width), int64(m.cfg.FeedMul*m.cfg.Width), int64(n)
	layer := 2*d*3*d + 2*d*d + 2*d*2*f + 2*f*d + 4*nn*d
	flops := nn*(2*Features*d+int64(m.cfg.Layers)*layer+2*d*int64(m.projected())+2*d*d) + 2*d*d
	if m.cfg.Pairs { // every pair, and the load with every node: no decode step adds to it
		flops += 2 * nn * (nn + 1) * d
	}
	return flops
}

// DecodeFLOPs is the work of one decode step of one row.
func (m *GT) DecodeFLOPs(n int) int64 { return 6 * int64(n) * int64(m.cfg.Width) }

// Initial fills the flat buffer from the seed: parameter i, element e takes word e%4 of Philox
// block e/4 at index i.
func Initial(l *kernel.Layout, seed uint64) []float32 {
	flat := make([]float32, l.Len)
	for i, p := range l.Params {
		w := flat[p.Offset:][:p.Len()]
		bound := float32(1 / math.Sqrt(float64(max(1, p.FanIn))))
		for e := range w {
			switch p.Init {
			case kernel.InitOne:
				w[e] = 1
			case kernel.InitUniform:
				u := rng.At(seed, uint64(i), uint32(e/4), rng.Weights)[e%4]
				w[e] = (2*rng.Float(u) - 1) * bound
			}
		}
	}
	return flat
}
