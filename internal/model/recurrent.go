package model

import (
	"haul/internal/kernel"
	"haul/internal/plan"
)

// Recurrent is an actor-critic with memory: an embedding per input, concatenated; a layer with
// GELU; gated recurrent units; then the logits of the actions and a value. Measured (real-valued)
// inputs pass through a separate layer with GELU. The last layer is initialized to zero, so that
// the initial policy is uniform.
type Recurrent struct {
	layout kernel.Layout
	inputs int
	table  int
	w1, b1 int
	wm, bm int // layer of the measured inputs, and the units' weight of its output
	wn     int
	wx, bx int
	wh, bh int
	wo, bo int
	Hidden int // number of units
}

// NewRecurrent returns the network for `inputs` inputs, each an index of a table of `rows` rows and
// `embed` columns, and `measured` real-valued inputs.
func NewRecurrent(inputs, rows, embed, measured, hidden, actions int) *Recurrent {
	m := &Recurrent{inputs: inputs, Hidden: hidden}
	add := m.layout.Add
	m.table = add("embed.weight", kernel.InitUniform, embed, rows, embed)
	m.w1, m.b1 = add("input.weight", kernel.InitUniform, inputs*embed, hidden, inputs*embed), add("input.bias", kernel.InitUniform, inputs*embed, hidden)
	if measured > 0 {
		m.wm, m.bm = add("measured.weight", kernel.InitUniform, measured, hidden, measured), add("measured.bias", kernel.InitUniform, measured, hidden)
		m.wn = add("gru.weight_mh", kernel.InitUniform, hidden, 3*hidden, hidden)
	}
	m.wx, m.bx = add("gru.weight_ih", kernel.InitUniform, hidden, 3*hidden, hidden), add("gru.bias_ih", kernel.InitUniform, hidden, 3*hidden)
	m.wh, m.bh = add("gru.weight_hh", kernel.InitUniform, hidden, 3*hidden, hidden), add("gru.bias_hh", kernel.InitUniform, hidden, 3*hidden)
	m.wo, m.bo = add("out.weight", kernel.InitZero, hidden, actions+1, hidden), add("out.bias", kernel.InitZero, hidden, actions+1)
	return m
}

// Layout returns the layout of the parameters.
func (m *Recurrent) Layout() *kernel.Layout { return &m.layout }

// Record records the network over index [B,T·inputs,1] and measured [B,T,numbers], nil without
// measured inputs, with initial units state [B,hidden], and returns [B,T,actions+1]. If carry is
// true, state holds the units after the last step.
func (m *Recurrent) Record(p *plan.Plan, index, measured, state *kernel.Tensor, carry bool) *kernel.Tensor {
	w := func(i int) *kernel.Tensor { return p.Weight(0, i) }
	x := p.Wide(p.Embed("embed", index, w(m.table)), m.inputs)
	x = p.LinearGELU("input", x, w(m.w1), w(m.b1))
	var numbers *kernel.Tensor
	if measured != nil {
		numbers = p.LinearGELU("measured", measured, w(m.wm), w(m.bm))
		numbers = p.Linear("gru.measured", numbers, w(m.wn), nil, nil)
	}
	x = p.Linear("gru.in", x, w(m.wx), w(m.bx), numbers)
	x = p.GRU("gru", x, w(m.wh), w(m.bh), state, carry)
	return p.Linear("out", x, w(m.wo), w(m.bo), nil)
}
