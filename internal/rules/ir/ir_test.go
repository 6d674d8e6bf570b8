package ir

import (
	"math"
	"math/rand/v2"
	"testing"
)

// corners are words at the edges of the types.
var corners = []uint32{0, 1, 2, 31, 32, 33, 64, 1 << 31, 1<<31 - 1, math.MaxUint32, math.MaxUint32 - 1,
	math.Float32bits(1), math.Float32bits(-1), 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 1, 0x007fffff, 0x00800000,
	math.Float32bits(1 << 31), math.Float32bits(-1 << 31), math.Float32bits(2147483520), math.Float32bits(0.5), math.Float32bits(-2.5)}

// random writes n random operations on 6 inputs, two of them bools, and returns the last values.
// The plain builder makes a value of every call.
func random(r *rand.Rand, n int) (plain, built *Func) {
	b := NewBuilder("random")
	p := &Func{Name: "random"}
	var of []int32           // value in b of each value of p
	var by [Bool + 1][]int32 // values of each kind: no integer operation reads the bits of a NaN
	add := func(v Value, in int32, kind Kind) {
		p.Values = append(p.Values, v)
		of = append(of, in)
		by[kind] = append(by[kind], int32(len(of)-1))
		if kind == Bool {
			by[Int32] = append(by[Int32], int32(len(of)-1))
		}
	}
	for i := range 6 {
		w := Word{Source: []Source{Vehicle, At, To}[i%3], Index: int32(i), Kind: []Kind{Int32, Float32, Bool}[i/2]}
		p.Inputs = append(p.Inputs, w)
		add(Value{Op: Input, Imm: uint32(i)}, b.Input(w), w.Kind)
	}
	for range n {
		if r.IntN(4) == 0 {
			w := corners[r.IntN(len(corners))]
			kind := Kind(r.IntN(2))
			if w <= 1 {
				kind = Bool
			}
			add(Value{Op: Const, Imm: w}, b.Const(w), kind)
			continue
		}
		o := Ops()[r.IntN(len(Ops()))]
		if r.IntN(2) == 0 {
			o = []Op{And, Or, Xor, Select, Eq, Lt}[r.IntN(6)]
		}
		args := []int32{0, 0, 0}
		ofBools := r.IntN(2) == 0
		spec := o.Spec()
		result := spec.Result
		if o == Select && r.IntN(2) == 0 {
			result = Float32
		}
		for k, kind := range spec.Args {
			switch {
			case o == Select && k > 0 && result == Float32:
				kind = Float32
			case ofBools && kind == Int32:
				kind = Bool
			}
			args[k] = by[kind][r.IntN(len(by[kind]))]
		}
		if ofBools && result == Int32 && (o == And || o == Or || o == Xor || o == Select) {
			result = Bool
		}
		v := Value{Op: o}
		for k, to := range []*int32{&v.A, &v.B, &v.C}[:len(spec.Args)] {
			*to = args[k]
		}
		in := make([]int32, len(spec.Args))
		for k := range in {
			in[k] = of[args[k]]
		}
		add(v, b.Do(o, in...), result)
	}
	var outputs []int32
	for i := max(0, len(of)-8); i < len(of); i++ {
		p.Outputs = append(p.Outputs, int32(i))
		outputs = append(outputs, of[i])
	}
	return p, b.Finish(outputs)
}

// run runs a function as Apply defines it.
func run(f *Func, input func(Word) uint32) (out []uint32) {
	values := make([]uint32, len(f.Values))
	for i, v := range f.Values {
		switch v.Op {
		case Const:
			values[i] = v.Imm
		case Input:
			values[i] = input(f.Inputs[v.Imm])
		default:
			values[i] = Apply(v.Op, values[v.A], values[v.B], values[v.C])
		}
	}
	for _, o := range f.Outputs {
		out = append(out, values[o])
	}
	return out
}

func inputs(r *rand.Rand) func(Word) uint32 {
	words := map[Word]uint32{}
	return func(w Word) uint32 {
		if _, ok := words[w]; !ok {
			words[w] = corners[r.IntN(len(corners))]
			if w.Kind == Bool {
				words[w] &= 1
			}
		}
		return words[w]
	}
}

// same compares words of two functions that differ in the order of operands alone: a NaN may come
// from either operand.
func same(a, b uint32) bool {
	nan := func(w uint32) bool { return w&0x7f800000 == 0x7f800000 && w&0x7fffff != 0 }
	return a == b || nan(a) && nan(b)
}

// TestBuilderKeepsBits: what Builder folds, merges and leaves out changes no output, nor do Bind
// and Split.
func TestBuilderKeepsBits(t *testing.T) {
	fewer := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		plain, built := random(r, 3+r.IntN(40))
		if len(built.Values) < len(plain.Values) {
			fewer++
		}
		for range 8 {
			in := inputs(r)
			want := run(plain, in)
			bound := built.Bind(Vehicle, []uint32{in(Word{Vehicle, 0, Int32}), 0, 0, in(Word{Vehicle, 3, Float32})})
			early, rest := built.Split(To)
			prepared := run(early, in)
			split := func(w Word) uint32 {
				if w.Source == Prepared {
					return prepared[w.Index]
				}
				if w.Source != To {
					t.Fatalf("the second part reads %v\n%v", w, rest)
				}
				return in(w)
			}
			for k, got := range [][]uint32{run(built, in), run(bound, in), run(rest, split)} {
				for i := range want {
					if !same(got[i], want[i]) {
						t.Fatalf("seed %d: output %d of form %d is %#x, want %#x\n%v\n%v", seed, i, k, got[i], want[i], plain, built)
					}
				}
			}
			for _, w := range early.Inputs {
				if w.Source == To {
					t.Fatalf("the first part reads %v", w)
				}
			}
			for _, w := range bound.Inputs {
				if w.Source == Vehicle {
					t.Fatalf("the bound function reads %v", w)
				}
			}
		}
	}
	if fewer < 2500 {
		t.Errorf("%d of 3000 functions became shorter", fewer)
	}
}

// TestApplyAtTheEdges: results where int32 and float32 end, and where Go leaves a result open.
func TestApplyAtTheEdges(t *testing.T) {
	f := math.Float32bits
	least, most := uint32(1<<31), uint32(math.MaxInt32)
	minus := func(n int32) uint32 { return uint32(-n) }
	inf, nan, zero := f(float32(math.Inf(1))), f(float32(math.NaN())), uint32(1<<31) // -0
	for _, c := range []struct {
		op         Op
		a, b, c, w uint32
	}{
		{Div, 7, 0, 0, 0}, {Div, least, minus(1), 0, least}, {Div, minus(7), 2, 0, minus(3)}, {Rem, 7, 0, 0, 0}, {Rem, least, minus(1), 0, 0}, {Rem, minus(7), 2, 0, minus(1)},
		{Shl, 1, 31, 0, least}, {Shl, 1, 32, 0, 0}, {Shl, 1, minus(1), 0, 0}, {Shr, least, 31, 0, minus(1)}, {Shr, least, 32, 0, minus(1)}, {Shr, 1, 32, 0, 0}, {Shr, minus(8), 1, 0, minus(4)},
		{Add, most, 1, 0, least}, {Min, minus(1), 0, 0, minus(1)}, {Max, minus(1), 0, 0, 0}, {Lt, minus(1), 0, 0, 1}, {Le, 0, 0, 0, 1},
		{FMin, 0, zero, 0, zero}, {FMax, zero, 0, 0, 0}, {FEq, nan, nan, 0, 0}, {FLt, nan, 0, 0, 0}, {FLe, 0, nan, 0, 0}, {FEq, 0, zero, 0, 1}, {FNeg, 0, 0, 0, zero}, {FAbs, zero, 0, 0, 0},
		{FDiv, f(1), 0, 0, inf}, {FSqrt, zero, 0, 0, zero},
		{Int, nan, 0, 0, 0}, {Int, inf, 0, 0, most}, {Int, f(-1e20), 0, 0, least}, {Int, f(2147483520), 0, 0, 2147483520}, {Int, f(1 << 31), 0, 0, most}, {Int, f(-1 << 31), 0, 0, least}, {Int, f(-2.9), 0, 0, minus(2)},
		{Float, 16777217, 0, 0, f(16777216)}, {Float, least, 0, 0, f(-1 << 31)},
		{MulDiv, 5, 0, 0, 0}, {MulDiv, 1 << 20, 30, 7, 4493897}, {MulDiv, minus(7), 3, 2, minus(10)}, {MulDiv, least, least, minus(1), 0},
		{Below, math.MaxUint32, 10, 0, 9}, {Below, math.MaxUint32, minus(1), 0, 0}, {Below, 1 << 31, 10, 0, 5},
		{Unit, math.MaxUint32, 0, 0, f(1 - 1.0/(1<<24))}, {Unit, 255, 0, 0, 0}, {Select, 1, 5, 6, 5}, {Select, 0, 5, 6, 6},
	} {
		if got := Apply(c.op, c.a, c.b, c.c); got != c.w {
			t.Errorf("%v of %#x, %#x, %#x is %#x, want %#x", c.op, c.a, c.b, c.c, got, c.w)
		}
	}
	if got := Apply(FMin, nan, 0, 0); got&0x7fffff == 0 {
		t.Errorf("the least of NaN and 0 is %#x", got)
	}
}
