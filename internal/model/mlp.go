package model

import (
	"haul/internal/kernel"
	"haul/internal/plan"
)

// MLP is a small actor-critic: two hidden layers with GELU, then the logits of the actions and a
// value. The last layer is initialized to zero, so that the initial policy is uniform.
type MLP struct {
	layout                 kernel.Layout
	w1, b1, w2, b2, wo, bo int
}

// NewMLP returns an MLP for `inputs` numbers, `hidden` units per layer and `actions` actions.
func NewMLP(inputs, hidden, actions int) *MLP {
	m := &MLP{}
	add := m.layout.Add
	m.w1, m.b1 = add("hidden1.weight", kernel.InitUniform, inputs, hidden, inputs), add("hidden1.bias", kernel.InitUniform, inputs, hidden)
	m.w2, m.b2 = add("hidden2.weight", kernel.InitUniform, hidden, hidden, hidden), add("hidden2.bias", kernel.InitUniform, hidden, hidden)
	m.wo, m.bo = add("out.weight", kernel.InitZero, hidden, actions+1, hidden), add("out.bias", kernel.InitZero, hidden, actions+1)
	return m
}

// Layout returns the layout of the parameters.
func (m *MLP) Layout() *kernel.Layout { return &m.layout }

// Record records the network over x [B,inputs] and returns [B,actions+1].
func (m *MLP) Record(p *plan.Plan, x *kernel.Tensor) *kernel.Tensor {
	h := p.LinearGELU("hidden1", x, p.Weight(0, m.w1), p.Weight(0, m.b1))
	h = p.LinearGELU("hidden2", h, p.Weight(0, m.w2), p.Weight(0, m.b2))
	return p.Linear("out", h, p.Weight(0, m.wo), p.Weight(0, m.bo), nil)
}
