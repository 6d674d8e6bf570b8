// Package eval runs compiled rules plainly: one operation after another, each as ir.Apply defines
// it. It is the form that the others are compared with.
package eval

import (
	"haul/internal/rules"
	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
)

// Form is the plain form of a problem's rules.
type Form struct {
	p      *rules.Problem
	values []uint32
	out    []uint32
	row    []uint32
}

// New returns the plain form of a problem.
func New(p *rules.Problem) *Form {
	return &Form{p: p, row: make([]uint32, len(p.Node))}
}

// Call is rules.Form.
func (e *Form) Call(m parse.Method, f *rules.Frame) []uint32 {
	e.out = e.Run(e.p.Func(m), f, e.out[:0])
	return e.out
}

// Run appends a function's outputs to out.
func (e *Form) Run(fn *ir.Func, f *rules.Frame, out []uint32) []uint32 {
	if cap(e.values) < len(fn.Values) {
		e.values = make([]uint32, 2*len(fn.Values))
	}
	values := e.values[:len(fn.Values)]
	for i := range fn.Values {
		switch v := &fn.Values[i]; v.Op {
		case ir.Const:
			values[i] = v.Imm
		case ir.Input:
			w := fn.Inputs[v.Imm]
			values[i] = f[w.Source][w.Index]
		default:
			values[i] = ir.Apply(v.Op, values[v.A], values[v.B], values[v.C])
		}
	}
	for _, o := range fn.Outputs {
		out = append(out, values[o])
	}
	return out
}

// Fits is rules.Form.
func (e *Form) Fits(f *rules.Frame, in *rules.Instance, amounts []uint32, mask []uint64) {
	fn := e.p.Func(parse.Fits)
	clear(mask)
	own := *f
	own[ir.To] = e.row
	for j := range e.p.Nodes(in.Customers) {
		in.Row(e.row, j)
		if amounts != nil {
			e.row[e.p.Amount] = amounts[j]
		}
		e.out = e.Run(fn, &own, e.out[:0])
		mask[j/64] |= uint64(e.out[0]&1) << (j % 64)
	}
}
