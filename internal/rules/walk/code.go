// Package walk draws instances and walks routes as package rules states them, without allocating
// memory: the form in which a CPU trains and decodes.
//
// A Machine runs the methods of one problem on one file of registers. What an instance, a vehicle
// and the nodes at hand are lies in fixed registers, so that a method reads them in place. Fits
// runs over blocks of 64 nodes (package vec).
package walk

import (
	"math"

	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
)

// op is an operation on registers.
type op struct {
	op         ir.Op
	d, a, b, c uint16
}

// code is a function whose values have registers.
type code struct {
	ops     []op
	outputs []uint16
	random  []int32 // random words that it reads
}

// registers assigns registers: the words of each source, then constants, then the values of
// whatever function runs.
type registers struct {
	base      [ir.Sources + 1]int // the last is behind all sources
	constants map[uint32]uint16
	fixed     []uint32 // what registers hold at first: zeros, then constants
	most      int      // registers in all
}

// newRegisters reserves the words of the sources.
func newRegisters(sizes [ir.Sources]int) *registers {
	r := &registers{constants: map[uint32]uint16{}}
	total := 0
	for s, n := range sizes {
		r.base[s] = total
		total += n
	}
	r.base[ir.Sources] = total
	r.fixed = make([]uint32, total)
	return r
}

// constant returns the register of a constant.
func (r *registers) constant(word uint32) uint16 {
	at, ok := r.constants[word]
	if !ok {
		at = uint16(len(r.fixed))
		r.constants[word] = at
		r.fixed = append(r.fixed, word)
	}
	return at
}

// reserve makes registers of a function's constants. All functions must have theirs before the
// first is compiled.
func (r *registers) reserve(f *ir.Func) {
	if f == nil {
		return
	}
	for i := range f.Values {
		if v := &f.Values[i]; v.Op == ir.Const {
			r.constant(v.Imm)
		}
	}
}

// compile gives the values of a function registers.
func (r *registers) compile(f *ir.Func) *code {
	if f == nil {
		return nil
	}
	c := &code{random: f.Reads(ir.Random)}
	at := make([]uint16, len(f.Values))
	next := len(r.fixed)
	for i := range f.Values {
		v := &f.Values[i]
		switch v.Op {
		case ir.Const:
			at[i] = r.constant(v.Imm)
		case ir.Input:
			w := f.Inputs[v.Imm]
			at[i] = uint16(r.base[w.Source] + int(w.Index))
		default:
			at[i] = uint16(next)
			next++
			c.ops = append(c.ops, op{v.Op, at[i], at[v.A], at[v.B], at[v.C]})
		}
	}
	for _, o := range f.Outputs {
		c.outputs = append(c.outputs, at[o])
	}
	r.most = max(r.most, next)
	return c
}

// part returns a function that has the outputs from `from` to `to` alone.
func part(f *ir.Func, from, to int) *ir.Func {
	if f == nil {
		return nil
	}
	own := *f
	own.Outputs = f.Outputs[from:to]
	return own.Bind(ir.Prepared, nil) // leaves out what no output needs
}

// run runs a function. The operations that routes are made of have a case; ir.Apply is the others,
// and defines them all.
func (m *Machine) run(c *code) {
	reg := m.reg
	for i := range c.ops {
		o := &c.ops[i]
		a, b := reg[o.a], reg[o.b]
		var d uint32
		switch o.op {
		case ir.Add:
			d = a + b
		case ir.Sub:
			d = a - b
		case ir.And:
			d = a & b
		case ir.Or:
			d = a | b
		case ir.Xor:
			d = a ^ b
		case ir.Le:
			if int32(a) <= int32(b) {
				d = 1
			}
		case ir.Eq:
			if a == b {
				d = 1
			}
		case ir.FAdd:
			d = math.Float32bits(math.Float32frombits(a) + math.Float32frombits(b))
		case ir.FSub:
			d = math.Float32bits(math.Float32frombits(a) - math.Float32frombits(b))
		case ir.FMul:
			d = math.Float32bits(math.Float32frombits(a) * math.Float32frombits(b))
		case ir.FDiv:
			d = math.Float32bits(math.Float32frombits(a) / math.Float32frombits(b))
		case ir.Float:
			d = math.Float32bits(float32(int32(a)))
		case ir.Select:
			if d = reg[o.c]; a != 0 {
				d = b
			}
		default:
			d = ir.Apply(o.op, a, b, reg[o.c])
		}
		reg[o.d] = d
	}
}

// result returns the first output of a function that has run.
func (m *Machine) result(c *code) uint32 { return m.reg[c.outputs[0]] }

// keep writes the outputs from `from` on of a function that has run. An output may be a register
// that another one replaces.
func (m *Machine) keep(to []uint32, c *code, from int) {
	for i, at := range c.outputs[from:] {
		m.out[i] = m.reg[at]
	}
	copy(to, m.out[:len(c.outputs)-from])
}

// methods are those that a Machine calls one at a time.
var methods = []parse.Method{parse.Before, parse.DrawInstance, parse.DrawNode, parse.Derive, parse.After, parse.Start,
	parse.Returns, parse.Move, parse.Stays, parse.Ended, parse.Stuck, parse.Features, parse.Context}
