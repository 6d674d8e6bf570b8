package model

import (
	"fmt"
	"math"

	"haul/internal/kernel"
	"haul/internal/plan"
	"haul/internal/rng"
)

// Network is a routing policy: an encoder that reads an instance, and the pointer decoder that
// builds routes from the embeddings of the nodes. docs/models.md has the formulas.
//
// In the layout the encoder's parameters precede the decoder's.
type Network struct {
	layout  kernel.Layout
	encoder Encoder
	pointer *pointer
	dropout Dropout
}

// Encoder is a network from the features of an instance's nodes to one embedding per node. A new
// encoder needs a file with a type of this interface, its config and its constructor, and a line in
// the list of internal/policy.
type Encoder interface {
	// Width returns D, the width of an embedding.
	Width() int
	// Encode records the network and returns the embeddings, [B,N,D].
	Encode(r *Pass, in Instances) *kernel.Tensor
	// FLOPs returns the operations of encoding an instance of n nodes, by formula (a multiply-add
	// is two).
	FLOPs(n int) int64
}

// Dropout configures the dropout of residual branches in training.
type Dropout struct {
	Rate float32
	Key  uint64 // seed of the masks
}

// Instances holds the tensors that a policy reads.
type Instances = kernel.Instances

// newNetwork lays out an encoder's parameters, and after them the decoder's.
func newNetwork(p PointerConfig, d Dropout, encoder func(l *kernel.Layout) Encoder) *Network {
	m := &Network{dropout: d}
	m.encoder = encoder(&m.layout)
	m.pointer = newPointer(&m.layout, p, m.encoder.Width())
	return m
}

// Layout returns the layout of the parameters.
func (m *Network) Layout() *kernel.Layout { return &m.layout }

// Rules returns the rule set whose features the network reads.
func (m *Network) Rules() kernel.RuleSet { return m.pointer.cfg.Rules }

// Views returns PointerConfig.Views.
func (m *Network) Views() bool { return m.pointer.cfg.Views }

// Encode records the network from features to the inputs of the decoder, with weight set `set`.
// train turns dropout on.
func (m *Network) Encode(p *plan.Plan, set int, in Instances, train bool) kernel.Decoder {
	return m.Project(p, set, m.Embed(p, set, in, train), in)
}

// Embed records only the encoder: one embedding per node, [B,N,D].
func (m *Network) Embed(p *plan.Plan, set int, in Instances, train bool) *kernel.Tensor {
	r := &Pass{Plan: p, set: set}
	if train {
		r.drop = m.dropout
	}
	return m.encoder.Encode(r, in)
}

// Project records the rest of Encode: from the embeddings h to the inputs of the decoder.
func (m *Network) Project(p *plan.Plan, set int, h *kernel.Tensor, in Instances) kernel.Decoder {
	return m.pointer.project(&Pass{Plan: p, set: set}, h, in)
}

// Width returns D, the width of an embedding.
func (m *Network) Width() int { return m.encoder.Width() }

// Decoder adds the model's own weights and options to dec, which has projections of instances. It
// is for a plan that decodes without encoding.
func (m *Network) Decoder(p *plan.Plan, set int, dec kernel.Decoder) kernel.Decoder {
	return m.pointer.decoder(p, set, dec)
}

// ContextOf returns the decoder's weights of the context features in a flat buffer of parameters:
// those of the query, and those of pairs, nil without pairs.
func (m *Network) ContextOf(flat []float32) (context, pairs []float32) {
	of := func(i int) []float32 {
		p := m.layout.Params[i]
		return flat[p.Offset:][:p.Len()]
	}
	if m.pointer.cfg.Pairs {
		pairs = of(m.pointer.pairContext)
	}
	return of(m.pointer.context), pairs
}

// EncodeFLOPs returns the operations of encoding an instance of n nodes and projecting it for the
// decoder.
func (m *Network) EncodeFLOPs(n int) int64 { return m.encoder.FLOPs(n) + m.pointer.flops(n) }

// DecodeFLOPs returns the operations of a decode step of one row.
func (m *Network) DecodeFLOPs(n int) int64 { return 6 * int64(n) * int64(m.encoder.Width()) }

// Pass is one recording of a network, with a weight set and with or without dropout.
type Pass struct {
	*plan.Plan
	set  int
	drop Dropout // of rate 0 except in training
	site int     // number of dropouts recorded so far
}

// weight returns a parameter in the pass's weight set.
func (r *Pass) weight(param int) *kernel.Tensor { return r.Weight(r.set, param) }

// name returns s with a suffix for weight sets above 0.
func (r *Pass) name(s string) string {
	if r.set > 0 {
		return fmt.Sprintf("set%d.%s", r.set, s)
	}
	return s
}

// residual records res + dropout(x·weight + bias).
func (r *Pass) residual(name string, x, weight, bias, res *kernel.Tensor) *kernel.Tensor {
	if r.drop.Rate == 0 {
		return r.Linear(name, x, weight, bias, res)
	}
	r.site++
	return r.Dropout(name, r.Linear(name+".dense", x, weight, bias, nil), res, r.drop.Rate, r.site-1, r.drop.Key)
}

// parameters adds parameters to a layout.
type parameters struct{ *kernel.Layout }

// linear adds a layer's weight and bias.
func (l parameters) linear(name string, in, out int) (w, b int) {
	return l.Add(name+".weight", kernel.InitUniform, in, out, in), l.Add(name+".bias", kernel.InitUniform, in, out)
}

// norm adds the scale and the shift of a layer norm.
func (l parameters) norm(name string, width int) (g, b int) {
	return l.Add(name+".weight", kernel.InitOne, width, width), l.Add(name+".bias", kernel.InitZero, width, width)
}

// Initial returns initial weights from the seed: parameter i, element e uses word e%4 of Philox
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
