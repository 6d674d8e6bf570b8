package model

import (
	"haul/internal/kernel"
	"haul/internal/plan"
)

// PointerConfig is how the decoder scores nodes.
type PointerConfig struct {
	Heads int     // of the glimpse
	Near  float32 // kernel.Decoder's
	Pairs bool    // pairs of nodes have a learned score
	// a start's customer is where its first step is seen from, and not where it begins by force
	Views bool
}

// pointer is the decoder of Kool et al. 2019, https://arxiv.org/abs/1803.08475, with projections
// that are applied once per node. It knows no encoder: it reads one embedding per node.
type pointer struct {
	cfg                           PointerConfig
	width                         int
	wProj, wGraph, load, wPointer int
	pairLoad                      int // with Pairs
}

func newPointer(l *kernel.Layout, cfg PointerConfig, width int) *pointer {
	m := &pointer{cfg: cfg, width: width}
	m.wProj = l.Add("decoder.proj.weight", kernel.InitUniform, width, m.projected(), width)
	m.wGraph = l.Add("decoder.graph.weight", kernel.InitUniform, width, width, width)
	m.load = l.Add("decoder.load.weight", kernel.InitUniform, 1, width)
	m.wPointer = l.Add("decoder.pointer.weight", kernel.InitUniform, width, width, width)
	if cfg.Pairs {
		m.pairLoad = l.Add("decoder.pair_load.weight", kernel.InitUniform, 1, width)
	}
	return m
}

// projected is the columns of a node's projections: Node | Key | Value | the pointer's source, and
// with Pairs PairQuery | PairKey.
func (m *pointer) projected() int {
	if m.cfg.Pairs {
		return 6 * m.width
	}
	return 4 * m.width
}

// project records the projections of the nodes' embeddings h.
func (m *pointer) project(r *Pass, h *kernel.Tensor, in Instances) kernel.Decoder {
	proj := r.Linear(r.name("decoder.proj"), h, r.weight(m.wProj), nil, nil)
	graph := r.Linear(r.name("decoder.graph"), r.MeanNodes(r.name("mean"), h), r.weight(m.wGraph), nil, nil)
	source := r.Linear(r.name("decoder.pointer"), r.Columns(proj, 3*m.width, 4*m.width), r.weight(m.wPointer), nil, nil)
	return m.decoder(r.Plan, r.set, kernel.Decoder{Proj: proj, Pointer: source, Graph: graph, PosX: in.PosX, PosY: in.PosY, Demand: in.Demand,
		Capacity: in.Capacity})
}

// decoder adds what no instance has a part in.
func (m *pointer) decoder(p *plan.Plan, set int, dec kernel.Decoder) kernel.Decoder {
	dec.Load, dec.Heads, dec.Near = p.Weight(set, m.load), m.cfg.Heads, m.cfg.Near
	if m.cfg.Pairs {
		dec.Pair, dec.PairLoad = p.Columns(dec.Proj, 4*m.width, 6*m.width), p.Weight(set, m.pairLoad)
	}
	return dec
}

// flops is the work of projecting n nodes.
func (m *pointer) flops(n int) int64 {
	d, nn := int64(m.width), int64(n)
	flops := nn*(2*d*int64(m.projected())+2*d*d) + 2*d*d
	if m.cfg.Pairs { // every pair, and the load with every node: no decode step adds to it
		flops += 2 * nn * (nn + 1) * d
	}
	return flops
}
