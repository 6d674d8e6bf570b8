package ptx

import "math/bits"

// 16-bit registers are stored in 32 bits, the high ones zero. Signed operations extend the sign
// first.

type anyInteger interface{ ~uint32 | ~int32 | anyDouble }

type anyDouble interface{ ~uint64 | ~int64 }

// numberLike has the types whose operators in Go compute the same as on a GPU.
type numberLike interface {
	anyInteger | ~float32 | ~float64
}

var integers = map[string]func(x *decoder) error{
	"add": func(x *decoder) error {
		return x.byType(map[string]func(*warp, *inst){"s16": add16, "u16": add16, "s32": add[uint32], "u32": add[uint32], "s64": add[uint64], "u64": add[uint64],
			"f32": add[float32], "rn.f32": add[float32], "f64": add[float64], "rn.f64": add[float64]}, 2)
	},
	"sub": func(x *decoder) error {
		return x.byType(map[string]func(*warp, *inst){"s16": sub16, "u16": sub16, "s32": sub[uint32], "u32": sub[uint32], "s64": sub[uint64], "u64": sub[uint64],
			"f32": sub[float32], "rn.f32": sub[float32], "f64": sub[float64], "rn.f64": sub[float64]}, 2)
	},
	"mul": func(x *decoder) error {
		if x.any("wide") != "" {
			switch x.typed() {
			case "u16":
				return x.simple(mul[uint32], 4, 2, 2)
			case "s16":
				return x.simple(wide16, 4, 2, 2)
			case "u32":
				return x.simple(wide[uint32, uint64], 8, 4, 4)
			case "s32":
				return x.simple(wide[int32, int64], 8, 4, 4)
			}
			return x.unknown()
		}
		return x.byType(map[string]func(*warp, *inst){"lo.s16": mul16, "lo.u16": mul16, "lo.s32": mul[uint32], "lo.u32": mul[uint32], "lo.s64": mul[uint64], "lo.u64": mul[uint64],
			"hi.u16": high16, "hi.u32": high[uint32, uint64], "hi.s32": high[int32, int64], "hi.u64": high64,
			"f32": mul[float32], "rn.f32": mul[float32], "f64": mul[float64], "rn.f64": mul[float64]}, 2)
	},
	"mad": func(x *decoder) error {
		switch {
		case x.is("wide.u32"):
			return x.simple(madWide[uint32, uint64], 8, 4, 4, 8)
		case x.is("wide.s32"):
			return x.simple(madWide[int32, int64], 8, 4, 4, 8)
		}
		return x.byType(map[string]func(*warp, *inst){"lo.s32": mad[uint32], "lo.u32": mad[uint32], "lo.s64": mad[uint64], "lo.u64": mad[uint64]}, 3)
	},
	"div": func(x *decoder) error {
		return x.byType(map[string]func(*warp, *inst){"s16": quotient16, "u16": quotient[uint32], "s32": quotient[int32], "u32": quotient[uint32], "s64": quotient[int64], "u64": quotient[uint64],
			"rn.f32": divide[float32], "rn.f64": divide[float64]}, 2)
	},
	"rem": func(x *decoder) error {
		return x.byType(map[string]func(*warp, *inst){"u16": remainder[uint32], "s32": remainder[int32], "u32": remainder[uint32], "s64": remainder[int64], "u64": remainder[uint64]}, 2)
	},
	"min": func(x *decoder) error {
		return x.byType(map[string]func(*warp, *inst){"u16": least[uint32], "s32": least[int32], "u32": least[uint32], "s64": least[int64], "u64": least[uint64],
			"f32": floatMin[float32], "NaN.f32": nanMin, "f64": floatMin[float64]}, 2)
	},
	"max": func(x *decoder) error {
		return x.byType(map[string]func(*warp, *inst){"u16": most[uint32], "s32": most[int32], "u32": most[uint32], "s64": most[int64], "u64": most[uint64],
			"f32": floatMax[float32], "NaN.f32": nanMax, "f64": floatMax[float64], "f16x2": maxF16x2}, 2)
	},
	"neg": func(x *decoder) error {
		return x.byType(map[string]func(*warp, *inst){"s32": negate[uint32], "s64": negate[uint64], "f32": flip[uint32], "f64": flip[uint64]}, 1)
	},
	"abs": func(x *decoder) error {
		return x.byType(map[string]func(*warp, *inst){"s32": magnitude[int32], "s64": magnitude[int64], "f32": unsign[uint32], "f64": unsign[uint64]}, 1)
	},
}

var bytesOf = map[string]int{"pred": 0, "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "b32": 4, "u32": 4, "s32": 4, "f32": 4,
	"f16x2": 4, "bf16x2": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8}

// byType selects the function of an instruction by the rest of its name. The last word is the type
// of its result and of its n operands.
func (x *decoder) byType(all map[string]func(*warp, *inst), n int) error {
	name := ""
	for i, w := range x.words {
		if i > 0 {
			name += "."
		}
		name += w
	}
	f := all[name]
	if f == nil {
		return x.unknown()
	}
	bytes := bytesOf[x.typed()]
	x.words = nil
	return x.simple(f, bytes, []int{bytes, bytes, bytes}[:n]...)
}

func add[T numberLike](w *warp, in *inst) {
	a, b, d := reg[T](w, in.a), reg[T](w, in.b), result[T](w, in)
	for i := range d {
		d[i] = a[i] + b[i]
	}
}

func sub[T numberLike](w *warp, in *inst) {
	a, b, d := reg[T](w, in.a), reg[T](w, in.b), result[T](w, in)
	for i := range d {
		d[i] = a[i] - b[i]
	}
}

func mul[T numberLike](w *warp, in *inst) {
	a, b, d := reg[T](w, in.a), reg[T](w, in.b), result[T](w, in)
	for i := range d {
		d[i] = a[i] * b[i]
	}
}

func mad[T anyInteger](w *warp, in *inst) {
	a, b, c, d := reg[T](w, in.a), reg[T](w, in.b), reg[T](w, in.c), result[T](w, in)
	for i := range d {
		d[i] = a[i]*b[i] + c[i]
	}
}

func add16(w *warp, in *inst) {
	a, b, d := reg[uint32](w, in.a), reg[uint32](w, in.b), result[uint32](w, in)
	for i := range d {
		d[i] = (a[i] + b[i]) & 0xffff
	}
}

func sub16(w *warp, in *inst) {
	a, b, d := reg[uint32](w, in.a), reg[uint32](w, in.b), result[uint32](w, in)
	for i := range d {
		d[i] = (a[i] - b[i]) & 0xffff
	}
}

func mul16(w *warp, in *inst) {
	a, b, d := reg[uint32](w, in.a), reg[uint32](w, in.b), result[uint32](w, in)
	for i := range d {
		d[i] = a[i] * b[i] & 0xffff
	}
}

func high16(w *warp, in *inst) {
	a, b, d := reg[uint32](w, in.a), reg[uint32](w, in.b), result[uint32](w, in)
	for i := range d {
		d[i] = a[i] * b[i] >> 16
	}
}

func wide16(w *warp, in *inst) {
	a, b, d := reg[uint32](w, in.a), reg[uint32](w, in.b), result[int32](w, in)
	for i := range d {
		d[i] = int32(int16(a[i])) * int32(int16(b[i]))
	}
}

// wide writes 64-bit results from 32-bit operands. It reads a lane before it writes it, because
// registers may share a slot.
func wide[T, U anyInteger](w *warp, in *inst) {
	a, b, d := reg[T](w, in.a), reg[T](w, in.b), result[U](w, in)
	for i := range d {
		d[i] = U(a[i]) * U(b[i])
	}
}

func madWide[T, U anyInteger](w *warp, in *inst) {
	a, b, c, d := reg[T](w, in.a), reg[T](w, in.b), reg[U](w, in.c), result[U](w, in)
	for i := range d {
		d[i] = U(a[i])*U(b[i]) + c[i]
	}
}

func high[T anyInteger, U anyDouble](w *warp, in *inst) {
	a, b, d := reg[T](w, in.a), reg[T](w, in.b), result[T](w, in)
	for i := range d {
		d[i] = T(U(a[i]) * U(b[i]) >> 32)
	}
}

func high64(w *warp, in *inst) {
	a, b, d := reg[uint64](w, in.a), reg[uint64](w, in.b), result[uint64](w, in)
	for i := range d {
		d[i], _ = bits.Mul64(a[i], b[i])
	}
}

// divisible fails if an active lane divides by zero, which is undefined in PTX.
func (w *warp) divisible(in *inst, lane int) {
	if w.mask>>lane&1 != 0 {
		w.failLane(in, lane, "divides by zero")
	}
}

func quotient[T anyInteger](w *warp, in *inst) {
	a, b, d := reg[T](w, in.a), reg[T](w, in.b), result[T](w, in)
	for i := range d {
		if b[i] == 0 {
			w.divisible(in, i)
			continue
		}
		d[i] = a[i] / b[i]
	}
}

func remainder[T anyInteger](w *warp, in *inst) {
	a, b, d := reg[T](w, in.a), reg[T](w, in.b), result[T](w, in)
	for i := range d {
		if b[i] == 0 {
			w.divisible(in, i)
			continue
		}
		d[i] = a[i] % b[i]
	}
}

func quotient16(w *warp, in *inst) {
	a, b, d := reg[uint32](w, in.a), reg[uint32](w, in.b), result[uint32](w, in)
	for i := range d {
		if b[i] == 0 {
			w.divisible(in, i)
			continue
		}
		d[i] = uint32(uint16(int32(int16(a[i])) / int32(int16(b[i]))))
	}
}

func least[T anyInteger](w *warp, in *inst) {
	a, b, d := reg[T](w, in.a), reg[T](w, in.b), result[T](w, in)
	for i := range d {
		d[i] = min(a[i], b[i])
	}
}

func most[T anyInteger](w *warp, in *inst) {
	a, b, d := reg[T](w, in.a), reg[T](w, in.b), result[T](w, in)
	for i := range d {
		d[i] = max(a[i], b[i])
	}
}

func negate[T anyInteger](w *warp, in *inst) {
	a, d := reg[T](w, in.a), result[T](w, in)
	for i := range d {
		d[i] = -a[i]
	}
}

func magnitude[T anyInteger](w *warp, in *inst) {
	a, d := reg[T](w, in.a), result[T](w, in)
	for i := range d {
		d[i] = max(a[i], -a[i])
	}
}
