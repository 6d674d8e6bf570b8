package model

import (
	"haul/internal/kernel"
	"haul/internal/plan"
)

// PointerConfig configures how the decoder scores nodes.
type PointerConfig struct {
	Heads int     // heads of the glimpse
	Near  float32 // see kernel.Decoder
	Pairs bool    // pairs of nodes have a learned score
	// a start views its customer: its first action is chosen as if the vehicle were at that
	// customer
	Views bool
	Rules kernel.RuleSet // rules whose features the network reads
}

// pointer is the decoder of Kool et al. 2019, https://arxiv.org/abs/1803.08475, with projections
// that are computed once per node. It reads one embedding per node and does not depend on the
// encoder.
type pointer struct {
	cfg                              PointerConfig
	width                            int
	wProj, wGraph, context, wPointer int
	pairContext                      int // if Pairs
}

func newPointer(l *kernel.Layout, cfg PointerConfig, width int) *pointer {
	m := &pointer{cfg: cfg, width: width}
	m.wProj = l.Add("decoder.proj.weight", kernel.InitUniform, width, m.projected(), width)
	m.wGraph = l.Add("decoder.graph.weight", kernel.InitUniform, width, width, width)
	m.context = l.Add(contextName("decoder.", cfg.Rules), kernel.InitUniform, len(cfg.Rules.Context()), m.contextShape()...)
	m.wPointer = l.Add("decoder.pointer.weight", kernel.InitUniform, width, width, width)
	if cfg.Pairs {
		m.pairContext = l.Add(contextName("decoder.pair_", cfg.Rules), kernel.InitUniform, len(cfg.Rules.Context()), m.contextShape()...)
	}
	return m
}

// contextName names the weights of a rule set's context features. A single feature has its own
// name.
func contextName(at string, rules kernel.RuleSet) string {
	if c := rules.Context(); len(c) == 1 {
		return at + c[0] + ".weight"
	}
	return at + "context.weight"
}

// contextShape returns [D], or [C,D] for C context features.
func (m *pointer) contextShape() []int {
	if c := len(m.cfg.Rules.Context()); c > 1 {
		return []int{c, m.width}
	}
	return []int{m.width}
}

// projected returns the columns of a node's projections: Node | Key | Value | the pointer's source,
// and with Pairs PairQuery | PairKey.
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
	return m.decoder(r.Plan, r.set, kernel.Decoder{Instances: in, Proj: proj, Pointer: source, Graph: graph})
}

// decoder adds the weights and options that do not depend on the instance.
func (m *pointer) decoder(p *plan.Plan, set int, dec kernel.Decoder) kernel.Decoder {
	dec.Context, dec.Heads, dec.Near = p.Weight(set, m.context), m.cfg.Heads, m.cfg.Near
	if m.cfg.Pairs {
		dec.Pair, dec.PairContext = p.Columns(dec.Proj, 4*m.width, 6*m.width), p.Weight(set, m.pairContext)
	}
	return dec
}

// flops returns the operations of projecting n nodes.
func (m *pointer) flops(n int) int64 {
	d, nn := int64(m.width), int64(n)
	flops := nn*(2*d*int64(m.projected())+2*d*d) + 2*d*d
	if m.cfg.Pairs { // every pair, and the context with every node: decode steps add nothing
		flops += 2 * nn * (nn + int64(len(m.cfg.Rules.Context()))) * d
	}
	return flops
}

// GrownWeights returns the weights that have a column or a row for each feature of a node and of
// the context, with the axis of the features.
func GrownWeights() map[string]int {
	return map[string]int{"embed.weight": 1, "decoder.context.weight": 0, "decoder.pair_context.weight": 0}
}
