package ptx

import "haul/internal/rules/ir"

// single are the operations that are one instruction on numbers.
var single = map[ir.Op]string{
	ir.Add: "add.s32", ir.Sub: "sub.s32", ir.Mul: "mul.lo.s32", ir.And: "and.b32", ir.Or: "or.b32", ir.Xor: "xor.b32",
	ir.Shl: "shl.b32", ir.Shr: "shr.s32", ir.Min: "min.s32", ir.Max: "max.s32",
	ir.FAdd: "add.rn.f32", ir.FSub: "sub.rn.f32", ir.FMul: "mul.rn.f32", ir.FDiv: "div.rn.f32",
	ir.FMin: "min.NaN.f32", ir.FMax: "max.NaN.f32",
	ir.FNeg: "neg.f32", ir.FAbs: "abs.f32", ir.FSqrt: "sqrt.rn.f32", ir.Float: "cvt.rn.f32.s32", ir.Int: "cvt.rzi.s32.f32",
}

// compare are the operations that are one instruction and give a bool.
var compare = map[ir.Op]string{
	ir.Eq: "setp.eq.s32", ir.Lt: "setp.lt.s32", ir.Le: "setp.le.s32", ir.FEq: "setp.eq.f32", ir.FLt: "setp.lt.f32", ir.FLe: "setp.le.f32",
}

// logic are the operations on two bools that give a bool.
var logic = map[ir.Op]string{ir.And: "and.pred", ir.Or: "or.pred", ir.Xor: "xor.pred"}

// value writes operation i.
func (w *writer) value(i int, v *ir.Value) {
	if name, ok := compare[v.Op]; ok {
		w.preds[i] = w.pred(name+" %s, %s, %s;", w.asWord(v.A), w.asWord(v.B))
		return
	}
	if name, ok := logic[v.Op]; ok && w.isBool(v.A) && w.isBool(v.B) {
		w.preds[i] = w.pred(name+" %s, %s, %s;", w.asPred(v.A), w.asPred(v.B))
		return
	}
	if name, ok := single[v.Op]; ok {
		if len(v.Operands()) == 1 {
			w.words[i] = w.word(name+" %s, %s;", w.asWord(v.A))
		} else {
			w.words[i] = w.word(name+" %s, %s, %s;", w.asWord(v.A), w.asWord(v.B))
		}
		return
	}
	switch v.Op {
	case ir.Select:
		w.choose(i, v)
	case ir.Div:
		a, p, q := w.quotient(v, "div")
		w.words[i] = w.word("selp.b32 %s, %s, %s, %s;", w.word("mul.lo.s32 %s, %s, %s;", a, w.asWord(v.B)), q, p)
	case ir.Rem:
		_, p, q := w.quotient(v, "rem")
		w.words[i] = w.word("selp.b32 %s, 0, %s, %s;", q, p)
	case ir.MulDiv:
		w.words[i] = w.mulDiv(v)
	case ir.Below:
		w.words[i] = w.word("mul.hi.u32 %s, %s, %s;", w.asWord(v.A), w.word("max.s32 %s, %s, 0;", w.asWord(v.B)))
	case ir.Unit:
		whole := w.word("cvt.rn.f32.u32 %s, %s;", w.word("shr.u32 %s, %s, 8;", w.asWord(v.A)))
		w.words[i] = w.word("mul.rn.f32 %s, %s, 0f33800000;", whole)
	default:
		panic("ptx: an operation without text")
	}
}

// isBool reports whether a value has a predicate, or is a word that is known to be 0 or 1.
func (w *writer) isBool(v int32) bool {
	value := &w.f.Values[v]
	return w.preds[v] != "" || value.Op == ir.Const && value.Imm <= 1 || value.Op == ir.Input && w.f.Inputs[value.Imm].Kind == ir.Bool
}

// choose writes a select: of numbers, or of bools, whose predicates have no such instruction.
func (w *writer) choose(i int, v *ir.Value) {
	if !w.isBool(v.B) || !w.isBool(v.C) {
		w.words[i] = w.word("selp.b32 %s, %s, %s, %s;", w.asWord(v.B), w.asWord(v.C), w.asPred(v.A))
		return
	}
	yes := w.pred("and.pred %s, %s, %s;", w.asPred(v.A), w.asPred(v.B))
	no := w.pred("and.pred %s, %s, %s;", w.pred("not.pred %s, %s;", w.asPred(v.A)), w.asPred(v.C))
	w.preds[i] = w.pred("or.pred %s, %s, %s;", yes, no)
}

// quotient writes a division whose divisor is 1 where it is 0 or -1, which PTX leaves open. p is
// true there: then a/b is a·b, and the remainder 0.
func (w *writer) quotient(v *ir.Value, name string) (a, p, q string) {
	a = w.asWord(v.A)
	b := w.asWord(v.B)
	p = w.pred("setp.lt.u32 %s, %s, 2;", w.word("add.s32 %s, %s, 1;", b))
	q = w.word(name+".s32 %s, %s, %s;", a, w.word("selp.b32 %s, 1, %s, %s;", b, p))
	return a, p, q
}

func (w *writer) mulDiv(v *ir.Value) string {
	c := w.asWord(v.C)
	zero := w.pred("setp.eq.s32 %s, %s, 0;", c)
	by := w.long("cvt.s64.s32 %s, %s;", w.word("selp.b32 %s, 1, %s, %s;", c, zero))
	product := w.long("mul.wide.s32 %s, %s, %s;", w.asWord(v.A), w.asWord(v.B))
	q := w.word("cvt.u32.u64 %s, %s;", w.long("div.s64 %s, %s, %s;", product, by))
	return w.word("selp.b32 %s, 0, %s, %s;", q, zero)
}
