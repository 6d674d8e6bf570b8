package ptx

import "math"

var conversions = map[string]func(x *decoder) error{
	"cvt": func(x *decoder) error {
		switch {
		case x.is("rna.tf32.f32"):
			return x.simple(roundTF32, 4, 4)
		case x.is("rn.f16x2.f32"):
			return x.simple(packF16, 4, 4, 4)
		case x.is("rn.bf16x2.f32"):
			return x.simple(packBF16, 4, 4, 4)
		case x.is("u64.u32"):
			return x.simple(convert[uint32, uint64], 8, 4)
		case x.is("s64.s32"): // the source may be the low half of a register
			if _, k, ok := x.c.reg(x.s.args[len(x.s.args)-1].name); ok && k == double {
				return x.simple(extendLow, 8, 8)
			}
			return x.simple(convert[int32, int64], 8, 4)
		case x.is("u32.u64"), x.is("s32.s64"), x.is("u32.s64"), x.is("s32.u64"):
			return x.simple(convert[uint64, uint32], 4, 8)
		case x.is("rn.f32.s32"):
			return x.simple(convert[int32, float32], 4, 4)
		case x.is("rn.f32.u32"):
			return x.simple(convert[uint32, float32], 4, 4)
		case x.is("rn.f64.s32"):
			return x.simple(convert[int32, float64], 8, 4)
		case x.is("rn.f64.u32"):
			return x.simple(convert[uint32, float64], 8, 4)
		case x.is("rn.f64.u64"):
			return x.simple(convert[uint64, float64], 8, 8)
		case x.is("rn.f64.s64"):
			return x.simple(convert[int64, float64], 8, 8)
		case x.is("f64.f32"):
			return x.simple(convert[float32, float64], 8, 4)
		case x.is("rn.f32.f64"):
			return x.simple(convert[float64, float32], 4, 8)
		case x.is("rzi.s32.f32"):
			return x.simple(truncate, 4, 4)
		case x.is("f32.f16"):
			return x.simple(widenF16, 4, 2)
		case x.is("rn.f16.f32"):
			return x.simple(narrowF16, 2, 4)
		}
		if len(x.words) != 2 || integerType[x.words[0]] == 0 || integerType[x.words[1]] == 0 {
			return x.unknown()
		}
		to, from := x.words[0], x.words[1]
		x.words = nil
		return x.simple(resize(to, from), max(bytesOf[to], 2), max(bytesOf[from], 2))
	},
	"cvta": func(x *decoder) error {
		to := x.has("to")
		sp := x.any("global", "shared", "local")
		if sp == "" || x.typed() != "u64" {
			return x.unknown()
		}
		window := map[string]uint64{"global": 0, "shared": sharedWindow, "local": localWindow}[sp]
		if to {
			window = -window
		}
		if err := x.simple(add[uint64], 8, 8); err != nil {
			return err
		}
		x.in.b = x.c.constantOf(window, 8)
		return nil
	},
}

// integerType is the number of bits of an integer type, negated for signed types.
var integerType = map[string]int{"u8": 8, "u16": 16, "u32": 32, "u64": 64, "s8": -8, "s16": -16, "s32": -32, "s64": -64}

func convert[T, U numberLike](w *warp, in *inst) {
	a, d := reg[T](w, in.a), result[U](w, in)
	for i := range d {
		d[i] = U(a[i])
	}
}

func extendLow(w *warp, in *inst) {
	a, d := reg[uint64](w, in.a), result[int64](w, in)
	for i := range d {
		d[i] = int64(int32(a[i]))
	}
}

// resize converts between integers: the source is sign-extended or truncated.
func resize(to, from string) func(w *warp, in *inst) {
	extend := func(v uint64, bits int) uint64 {
		if bits < 0 {
			return uint64(int64(v<<(64+bits)) >> (64 + bits))
		}
		return v << (64 - bits) >> (64 - bits)
	}
	width, source := integerType[to], integerType[from]
	register := max(bytesOf[to], 2) * 8
	return func(w *warp, in *inst) {
		for i := range lanes {
			var v uint64
			if source == 64 || source == -64 {
				v = reg[uint64](w, in.a)[i]
			} else {
				v = uint64(reg[uint32](w, in.a)[i])
			}
			v = extend(extend(extend(v, source), width), register)
			if register == 64 {
				result[uint64](w, in)[i] = v
			} else {
				result[uint32](w, in)[i] = uint32(v)
			}
		}
	}
}

// truncate rounds towards zero. Values out of range become the nearest one in range, NaN becomes
// zero.
func truncate(w *warp, in *inst) {
	a, d := reg[float32](w, in.a), result[int32](w, in)
	for i := range d {
		switch v := float64(a[i]); {
		case v != v:
			d[i] = 0
		case v >= math.MaxInt32:
			d[i] = math.MaxInt32
		case v <= math.MinInt32:
			d[i] = math.MinInt32
		default:
			d[i] = int32(v)
		}
	}
}

func widenF16(w *warp, in *inst) {
	a, d := reg[uint32](w, in.a), result[float32](w, in)
	for i := range d {
		d[i] = fromF16(a[i])
	}
}

func narrowF16(w *warp, in *inst) {
	a, d := reg[float32](w, in.a), result[uint32](w, in)
	for i := range d {
		d[i] = toF16(float64(a[i]))
	}
}
