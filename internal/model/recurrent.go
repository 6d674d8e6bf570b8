package model

import (
	"haul/internal/kernel"
	"haul/internal/plan"
)

// Recurrent is an actor-critic with a memory: rows of one table, a row for each input, side by
// side; a layer with GELU; gated recurrent units; then the logits of the actions and a value. What
// is measured, numbers that no table has rows for, goes through a layer with GELU of its own. The
// last layer starts at zero, so that the first policy is uniform.
type Recurrent struct {
	layout kernel.Layout
	inputs int
	table  int
	w1, b1 int
	wm, bm int // of what is measured, and what the units take of it
	wn     int
	wx, bx int
	wh, bh int
	wo, bo int
	Hidden int // units
}

// NewRecurrent lays out the parameters for so many inputs, each a row of `rows`, of `embed` columns
// each, and so many numbers measured beside them.
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

// Layout is where each parameter lies in the flat buffer.
func (m *Recurrent) Layout() *kernel.Layout { return &m.layout }

// Record records the network over index [B,T·inputs,1] and measured [B,T,numbers], nil where
// nothing is, from the units in state [B,hidden] on, and returns [B,T,actions+1]. With carry state
// holds the units after the last step.
func (m *Recurrent) Record(p *plan.Plan, index, measured, state *kernel.Tensor, carry bool) *kernel.Tensor {
	w := func(i int) *kernel.Tensor { return p.Weight(0, i) }
	x := p.Wide(p.Embed("embed", index, w(m.table)), m.inputs)
	x = p.LinearGELU("input", x, w(m.w1), w(m.b1))
	var beside *kernel.Tensor
	if measured != nil {
		beside = p.LinearGELU("measured", measured, w(m.wm), w(m.bm))
		beside = p.Linear("gru.measured", beside, w(m.wn), nil, nil)
	}
	x = p.Linear("gru.in", x, w(m.wx), w(m.bx), beside)
	x = p.GRU("gru", x, w(m.wh), w(m.bh), state, carry)
	return p.Linear("out", x, w(m.wo), w(m.bo), nil)
}
