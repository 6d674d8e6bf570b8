package ptx

import "math"

// fromF16 converts fp16 to a float.
func fromF16(h uint32) float32 {
	sign := h & 0x8000 << 16
	v := math.Float32frombits(h&0x7fff<<13) * 0x1p112
	b := math.Float32bits(v)
	if h&0x7c00 == 0x7c00 { // infinity and NaN
		b = 0x7f800000 | h&0x3ff<<13
	}
	return math.Float32frombits(b | sign)
}

// toF16 rounds to the nearest fp16 number, ties to even.
func toF16(v float64) uint32 {
	sign := uint32(math.Float64bits(v)>>48) & 0x8000
	if v != v {
		return 0x7fff
	}
	v = math.Abs(v)
	switch {
	case v >= 65520:
		return sign | 0x7c00
	case v < 0x1p-14: // denormal numbers are multiples of 2^-24
		return sign | uint32(math.RoundToEven(v*0x1p24))
	}
	b := math.Float64bits(v)
	b += 1<<41 - 1 + b>>42&1
	return sign | (uint32(b>>42) - (1023-15)<<10)
}

func fromBF16(h uint32) float32 { return math.Float32frombits(h << 16) }

// toBF16 rounds to the nearest bf16 number, ties to even.
func toBF16(v float32) uint32 {
	b := math.Float32bits(v)
	if v != v {
		return 0x7fff
	}
	return (b + 0x7fff + b>>16&1) >> 16
}

// toTF32 rounds to ten bits of mantissa, ties away from zero.
func toTF32(v float32) uint32 {
	b := math.Float32bits(v)
	switch {
	case v != v:
		return 0x7fffffff
	case b&0x7f800000 == 0x7f800000:
		return b
	}
	return (b + 0x1000) &^ 0x1fff
}

func packF16(w *warp, in *inst) {
	a, b, d := reg[float32](w, in.a), reg[float32](w, in.b), result[uint32](w, in)
	for i := range d {
		d[i] = toF16(float64(a[i]))<<16 | toF16(float64(b[i]))
	}
}

func packBF16(w *warp, in *inst) {
	a, b, d := reg[float32](w, in.a), reg[float32](w, in.b), result[uint32](w, in)
	for i := range d {
		d[i] = toBF16(a[i])<<16 | toBF16(b[i])
	}
}

func roundTF32(w *warp, in *inst) {
	a, d := reg[float32](w, in.a), result[uint32](w, in)
	for i := range d {
		d[i] = toTF32(a[i])
	}
}

// fmaF16x2 rounds each half once: a float64 holds the product exactly, and the sum after odd.
func fmaF16x2(w *warp, in *inst) {
	a, b, c, d := reg[uint32](w, in.a), reg[uint32](w, in.b), reg[uint32](w, in.c), result[uint32](w, in)
	one := func(x, y, z uint32) uint32 {
		p, q := float64(fromF16(x))*float64(fromF16(y)), float64(fromF16(z))
		return toF16(odd(p, q, p+q))
	}
	for i := range d {
		d[i] = one(a[i]>>16, b[i]>>16, c[i]>>16)<<16 | one(a[i]&0xffff, b[i]&0xffff, c[i]&0xffff)
	}
}

func fusedBF16(x, y, z uint32) uint32 {
	p, q := float64(fromBF16(x))*float64(fromBF16(y)), float64(fromBF16(z))
	s := odd(p, q, p+q)
	if v := math.Abs(s); v < 0x1p-126 || v > math.MaxFloat32 {
		return toBF16(float32(s))
	}
	b := math.Float64bits(s) // truncated to float32, with the last bit set if the sum is not exact
	if b&(1<<29-1) != 0 {
		b = b&^(1<<29-1) | 1<<29
	}
	return toBF16(float32(math.Float64frombits(b)))
}

func fmaBF16x2(w *warp, in *inst) {
	a, b, c, d := reg[uint32](w, in.a), reg[uint32](w, in.b), reg[uint32](w, in.c), result[uint32](w, in)
	for i := range d {
		d[i] = fusedBF16(a[i]>>16, b[i]>>16, c[i]>>16)<<16 | fusedBF16(a[i]&0xffff, b[i]&0xffff, c[i]&0xffff)
	}
}

// fmaReluBF16x2 replaces negative results by zero.
func fmaReluBF16x2(w *warp, in *inst) {
	a, b, c, d := reg[uint32](w, in.a), reg[uint32](w, in.b), reg[uint32](w, in.c), result[uint32](w, in)
	relu := func(h uint32) uint32 {
		if h&0x8000 != 0 {
			return 0
		}
		return h
	}
	for i := range d {
		d[i] = relu(fusedBF16(a[i]>>16, b[i]>>16, c[i]>>16))<<16 | relu(fusedBF16(a[i]&0xffff, b[i]&0xffff, c[i]&0xffff))
	}
}

func maxF16x2(w *warp, in *inst) {
	a, b, d := reg[uint32](w, in.a), reg[uint32](w, in.b), result[uint32](w, in)
	one := func(x, y uint32) uint32 {
		u, v := fromF16(x), fromF16(y)
		switch {
		case u != u && v != v:
			return 0x7fff
		case u > v || v != v:
			return x
		case v > u || u != u:
			return y
		}
		return x & y // the greater of 0 and -0
	}
	for i := range d {
		d[i] = one(a[i]>>16, b[i]>>16)<<16 | one(a[i]&0xffff, b[i]&0xffff)
	}
}
