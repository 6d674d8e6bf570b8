package vec

import "haul/internal/rules/ir"

// step is one operation on registers: of masks if the operands are bools, else of blocks.
type step struct {
	op      ir.Op
	bools   bool // And, Or, Xor, Eq and Select on masks alone
	d       int32
	a, b, c int32
}

// translate makes steps of the part of Fits that depends on the candidate. Every value has a
// register: a mask if it is a bool, else a block.
func (f *Form) translate(rest *ir.Func) {
	isMask, register := make([]bool, len(rest.Values)), make([]int32, len(rest.Values))
	var blocks, masks int32
	for i := range rest.Values {
		v := &rest.Values[i]
		isMask[i] = f.isMask(rest, v, isMask)
		if isMask[i] {
			register[i] = masks
			masks++
		} else {
			register[i] = blocks
			blocks++
		}
	}
	// An operand of the other kind is converted into another register.
	asMask := func(a int32) int32 {
		if isMask[a] {
			return register[a]
		}
		masks++
		if v := &rest.Values[a]; v.Op == ir.Const {
			f.constants = append(f.constants, word{bits: v.Imm, to: masks - 1, mask: true})
			return masks - 1
		}
		f.steps = append(f.steps, step{op: toMask, d: masks - 1, a: register[a]})
		return masks - 1
	}
	asBlock := func(a int32) int32 {
		if !isMask[a] {
			return register[a]
		}
		blocks++
		f.steps = append(f.steps, step{op: toBlock, d: blocks - 1, a: register[a]})
		return blocks - 1
	}
	for i := range rest.Values {
		v, d := &rest.Values[i], register[i]
		switch v.Op {
		case ir.Const:
			f.constants = append(f.constants, word{bits: v.Imm, to: d, mask: isMask[i]})
			continue
		case ir.Input:
			w := rest.Inputs[v.Imm]
			if w.Source == ir.Prepared {
				f.prepared = append(f.prepared, word{from: w.Index, to: d, mask: isMask[i]})
			} else {
				f.columns = append(f.columns, column{w.Index, d, isMask[i]})
			}
			continue
		}
		s := step{op: v.Op, d: d}
		operands := v.Operands()
		s.bools = isMask[i] && (v.Op == ir.And || v.Op == ir.Or || v.Op == ir.Xor || v.Op == ir.Select)
		if v.Op == ir.Eq && isMask[v.A] && isMask[v.B] {
			s.bools = true
		}
		for k, to := range []*int32{&s.a, &s.b, &s.c}[:len(operands)] {
			if s.bools || v.Op == ir.Select && k == 0 {
				*to = asMask(operands[k])
			} else {
				*to = asBlock(operands[k])
			}
		}
		f.steps = append(f.steps, s)
	}
	f.result = asMask(rest.Outputs[0])
	f.uniform = len(f.columns) == 0
	f.masks, f.blocks = make([]uint64, masks), make([]*Block, blocks)
	for i := range f.blocks {
		f.blocks[i] = new(Block)
	}
}

// isMask reports whether a value is a bool. A constant is none: where a bool is needed, asMask
// gives it a mask.
func (f *Form) isMask(rest *ir.Func, v *ir.Value, isMask []bool) bool {
	switch v.Op {
	case ir.Const:
		return false
	case ir.Input:
		w := rest.Inputs[v.Imm]
		return w.Kind == ir.Bool
	case ir.And, ir.Or:
		return isMask[v.A] && isMask[v.B]
	case ir.Xor:
		return isMask[v.A] && (isMask[v.B] || one(rest, v.B)) || isMask[v.B] && one(rest, v.A)
	case ir.Select:
		return (isMask[v.B] || zeroOne(rest, v.B)) && (isMask[v.C] || zeroOne(rest, v.C))
	}
	return v.Op.Spec().Result == ir.Bool
}

func one(f *ir.Func, v int32) bool { return f.Values[v].Op == ir.Const && f.Values[v].Imm == 1 }

func zeroOne(f *ir.Func, v int32) bool { return f.Values[v].Op == ir.Const && f.Values[v].Imm <= 1 }

// Steps that convert between masks and blocks.
const (
	toMask  = ir.Op(200 + iota) // bit i is bit 0 of word i
	toBlock                     // word i is bit i
)
