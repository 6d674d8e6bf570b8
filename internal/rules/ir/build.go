package ir

import (
	"cmp"
	"math"
	"slices"
)

// Builder writes a function value by value. Equal values are made once, and an operation on
// constants becomes a constant.
type Builder struct {
	f     Func
	known map[Value]int32
	words map[Word]int32
	bools []bool // per value: known to be 0 or 1
}

// NewBuilder returns an empty builder.
func NewBuilder(name string) *Builder {
	return &Builder{f: Func{Name: name}, known: map[Value]int32{}, words: map[Word]int32{}}
}

// Len returns the number of values written.
func (b *Builder) Len() int { return len(b.f.Values) }

// Const returns the value of a constant word.
func (b *Builder) Const(word uint32) int32 { return b.add(Value{Op: Const, Imm: word}) }

// Float returns the value of a constant float32.
func (b *Builder) Float(x float32) int32 { return b.Const(math.Float32bits(x)) }

// Input returns the value of an input word.
func (b *Builder) Input(w Word) int32 {
	at, ok := b.words[w]
	if !ok {
		at = int32(len(b.f.Inputs))
		b.words[w] = at
		b.f.Inputs = append(b.f.Inputs, w)
	}
	return b.add(Value{Op: Input, Imm: uint32(at)})
}

// IsConst returns the word of a constant value, and whether it is one.
func (b *Builder) IsConst(v int32) (uint32, bool) {
	return b.f.Values[v].Imm, b.f.Values[v].Op == Const
}

// Not returns the negation of a bool.
func (b *Builder) Not(v int32) int32 { return b.Do(Xor, v, b.Const(1)) }

// Select returns yes if the bool c is 1, else no.
func (b *Builder) Select(c, yes, no int32) int32 { return b.Do(Select, c, yes, no) }

// Do returns the value of an operation.
func (b *Builder) Do(o Op, args ...int32) int32 {
	spec := o.Spec()
	if len(args) != len(spec.Args) {
		panic("ir: a wrong number of operands")
	}
	if spec.Commute && args[0] > args[1] {
		args = []int32{args[1], args[0]}
	}
	if v, ok := b.simplify(o, args); ok {
		return v
	}
	v := Value{Op: o}
	for i, to := range []*int32{&v.A, &v.B, &v.C}[:len(args)] {
		*to = args[i]
	}
	return b.add(v)
}

func (b *Builder) add(v Value) int32 {
	if at, ok := b.known[v]; ok {
		return at
	}
	at := int32(len(b.f.Values))
	b.f.Values = append(b.f.Values, v)
	b.bools = append(b.bools, b.truth(v))
	b.known[v] = at
	return at
}

// truth reports whether a value is 0 or 1.
func (b *Builder) truth(v Value) bool {
	switch v.Op {
	case Const:
		return v.Imm <= 1
	case Input:
		return b.f.Inputs[v.Imm].Kind == Bool
	case And, Or, Xor:
		return b.bools[v.A] && b.bools[v.B]
	case Select:
		return b.bools[v.B] && b.bools[v.C]
	}
	return specs[v.Op].Result == Bool
}

// Finish returns the function with these outputs, without what no output needs. Inputs are sorted
// by source and index.
func (b *Builder) Finish(outputs []int32) *Func {
	needed := make([]bool, len(b.f.Values))
	for _, o := range outputs {
		needed[o] = true
	}
	for i := len(needed) - 1; i >= 0; i-- {
		if needed[i] {
			for _, a := range b.f.Values[i].Operands() {
				needed[a] = true
			}
		}
	}
	out := &Func{Name: b.f.Name}
	for i, v := range b.f.Values {
		if needed[i] && v.Op == Input {
			out.Inputs = append(out.Inputs, b.f.Inputs[v.Imm])
		}
	}
	slices.SortFunc(out.Inputs, func(x, y Word) int {
		return cmp.Or(cmp.Compare(x.Source, y.Source), cmp.Compare(x.Index, y.Index))
	})
	moved := make([]int32, len(needed))
	for i, v := range b.f.Values {
		if !needed[i] {
			continue
		}
		if v.Op == Input {
			v.Imm = uint32(slices.Index(out.Inputs, b.f.Inputs[v.Imm]))
		}
		if n := len(specs[v.Op].Args); n > 0 {
			for _, to := range []*int32{&v.A, &v.B, &v.C}[:n] {
				*to = moved[*to]
			}
		}
		moved[i] = int32(len(out.Values))
		out.Values = append(out.Values, v)
	}
	for _, o := range outputs {
		out.Outputs = append(out.Outputs, moved[o])
	}
	return out
}
