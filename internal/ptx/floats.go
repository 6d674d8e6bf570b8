package ptx

import "math"

type anyFloat interface{ ~float32 | ~float64 }

var floats = map[string]func(x *decoder) error{
	"fma": func(x *decoder) error {
		return x.byType(map[string]func(*warp, *inst){"rn.f32": fma32, "rn.f64": fma64, "rn.f16x2": fmaF16x2, "rn.bf16x2": fmaBF16x2, "rn.relu.bf16x2": fmaReluBF16x2}, 3)
	},
	"rcp": func(x *decoder) error {
		return x.byType(map[string]func(*warp, *inst){"rn.f32": reciprocal[float32], "rn.f64": reciprocal[float64], "approx.ftz.f32": approximate(func(v float64) float64 { return 1 / v })}, 1)
	},
	"sqrt": func(x *decoder) error {
		return x.byType(map[string]func(*warp, *inst){"rn.f32": root[float32], "rn.f64": root[float64], "approx.ftz.f32": approximate(math.Sqrt)}, 1)
	},
	"rsqrt": func(x *decoder) error {
		return x.byType(map[string]func(*warp, *inst){"approx.ftz.f32": approximate(func(v float64) float64 { return 1 / math.Sqrt(v) })}, 1)
	},
	"lg2": func(x *decoder) error {
		return x.byType(map[string]func(*warp, *inst){"approx.ftz.f32": approximate(math.Log2)}, 1)
	},
	"ex2":  func(x *decoder) error { return x.byType(map[string]func(*warp, *inst){"approx.ftz.f32": exp2}, 1) },
	"tanh": func(x *decoder) error { return x.byType(map[string]func(*warp, *inst){"approx.f32": tanh}, 1) },
}

func flip[T uint32 | uint64](w *warp, in *inst) {
	a, d := reg[T](w, in.a), result[T](w, in)
	sign := ^(^T(0) >> 1)
	for i := range d {
		d[i] = a[i] ^ sign
	}
}

func unsign[T uint32 | uint64](w *warp, in *inst) {
	a, d := reg[T](w, in.a), result[T](w, in)
	rest := ^T(0) >> 1
	for i := range d {
		d[i] = a[i] & rest
	}
}

// If one operand is NaN, the result of min and max is the other one. -0 is less than 0.
func floatMin[T anyFloat](w *warp, in *inst) {
	a, b, d := reg[T](w, in.a), reg[T](w, in.b), result[T](w, in)
	for i := range d {
		x, y := a[i], b[i]
		switch {
		case x < y:
			d[i] = x
		case y < x:
			d[i] = y
		default:
			d[i] = tied(x, y, min(x, y))
		}
	}
}

func floatMax[T anyFloat](w *warp, in *inst) {
	a, b, d := reg[T](w, in.a), reg[T](w, in.b), result[T](w, in)
	for i := range d {
		x, y := a[i], b[i]
		switch {
		case x > y:
			d[i] = x
		case y > x:
			d[i] = y
		default:
			d[i] = tied(x, y, max(x, y))
		}
	}
}

// nanMin and nanMax are the forms .NaN: the result is NaN if either operand is.
func nanMin(w *warp, in *inst) {
	a, b, d := reg[float32](w, in.a), reg[float32](w, in.b), result[float32](w, in)
	for i := range d {
		d[i] = min(a[i], b[i])
	}
}

func nanMax(w *warp, in *inst) {
	a, b, d := reg[float32](w, in.a), reg[float32](w, in.b), result[float32](w, in)
	for i := range d {
		d[i] = max(a[i], b[i])
	}
}

func tied[T anyFloat](x, y, both T) T {
	switch {
	case x != x:
		return y
	case y != y:
		return x
	}
	return both
}

func divide[T anyFloat](w *warp, in *inst) {
	a, b, d := reg[T](w, in.a), reg[T](w, in.b), result[T](w, in)
	for i := range d {
		d[i] = a[i] / b[i]
	}
}

func reciprocal[T anyFloat](w *warp, in *inst) {
	a, d := reg[T](w, in.a), result[T](w, in)
	for i := range d {
		d[i] = 1 / a[i]
	}
}

func root[T anyFloat](w *warp, in *inst) {
	a, d := reg[T](w, in.a), result[T](w, in)
	for i := range d {
		d[i] = T(math.Sqrt(float64(a[i])))
	}
}

// fused returns x·y+z with a single rounding. The product is exact in 53 bits. The rounding of the
// float64 sum matters only if the sum is halfway between two results.
func fused(x, y, z float32) float32 {
	p := float64(x) * float64(y)
	s := p + float64(z)
	b := math.Float64bits(s)
	if b&(1<<29-1) != 1<<28 && b>>52&0x7ff > 1023-126 || s == 0 {
		return float32(s)
	}
	return float32(odd(p, float64(z), s))
}

// odd replaces the rounding of s = p+z by rounding to odd: it truncates, and sets the last bit if
// the sum is not exact. A second rounding then has the result of a single one.
func odd(p, z, s float64) float64 {
	back := s - p
	lost := (p - (s - back)) + (z - back)
	b := math.Float64bits(s)
	if lost == 0 || math.IsNaN(lost) || math.IsInf(s, 0) || b&1 != 0 {
		return s
	}
	if lost > 0 == (s > 0) {
		return math.Float64frombits(b + 1)
	}
	return math.Float64frombits(b - 1)
}

func fma32(w *warp, in *inst) {
	a, b, c, d := reg[float32](w, in.a), reg[float32](w, in.b), reg[float32](w, in.c), result[float32](w, in)
	if fast {
		fmaLanes(d, a, b, c)
		return
	}
	for i := range d {
		s := float64(a[i])*float64(b[i]) + float64(c[i])
		x := math.Float64bits(s)
		if x&(1<<29-1) != 1<<28 && x>>52&0x7ff > 1023-126 || s == 0 {
			d[i] = float32(s)
		} else {
			d[i] = fused(a[i], b[i], c[i])
		}
	}
}

func fma64(w *warp, in *inst) {
	a, b, c, d := reg[float64](w, in.a), reg[float64](w, in.b), reg[float64](w, in.c), result[float64](w, in)
	for i := range d {
		d[i] = math.FMA(a[i], b[i], c[i])
	}
}

// flush is .ftz: it replaces denormal numbers by zeros with their sign.
func flush(v float32) float32 {
	if b := math.Float32bits(v); b&0x7f800000 == 0 {
		return math.Float32frombits(b & 0x80000000)
	}
	return v
}

// approximate implements a function that a GPU approximates within bounds that PTX states. It
// returns the float nearest to the float64 result.
func approximate(f func(float64) float64) func(w *warp, in *inst) {
	return func(w *warp, in *inst) {
		a, d := reg[float32](w, in.a), result[float32](w, in)
		for i := range d {
			d[i] = flush(float32(f(float64(flush(a[i])))))
		}
	}
}

func exp2(w *warp, in *inst) {
	a, d := reg[float32](w, in.a), result[float32](w, in)
	for i := range d {
		d[i] = power(a[i])
	}
}

// power returns 2^x by the integer part of x and a polynomial of the rest, with an error of 1e-9.
func power(x float32) float32 {
	switch {
	case x != x:
		return x
	case x < -126: // denormal results are flushed
		return 0
	case x >= 128:
		return float32(math.Inf(1))
	}
	n := math.Floor(float64(x) + 0.5)
	r := (float64(x) - n) * math.Ln2
	p := 1 + r*(1+r*(1./2+r*(1./6+r*(1./24+r*(1./120+r*(1./720+r*(1./5040+r/40320)))))))
	return flush(float32(p * math.Float64frombits(uint64(int64(n)+1023)<<52)))
}

func tanh(w *warp, in *inst) {
	a, d := reg[float32](w, in.a), result[float32](w, in)
	for i := range d {
		d[i] = float32(math.Tanh(float64(a[i])))
	}
}
