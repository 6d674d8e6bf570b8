package main

import (
	"math"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The elementary functions. Each keeps a NaN a NaN, so that one in a weight reaches the loss.
//
// They take several vectors and interleave them step by step: a processor looks about a hundred
// instructions ahead, which one after another would be two chains of dependent ones.
//
// e^x = 2^k · e^r with k = round(x/ln 2) and |r| <= ln(2)/2. The minimax polynomial
// 1 + r + r²·(c2 + ... + c6·r⁴) is within 4.4e-9 of e^r there, in float32 coefficients; leading
// coefficients of exactly 1 make e^r - 1 exact to its own last bits near zero.

var expTail = []float32{0.00138144649, 0.00836878084, 0.0416683927, 0.166665196, 0.49999994}

const (
	log2e = math.Log2E
	ln2Hi = 0.693359375 // few enough bits that k·ln2Hi is exact
	ln2Lo = math.Ln2 - ln2Hi
	// shifter is 1.5·2^23 + 127. Adding it rounds to an integer, whose bits, biased for an
	// exponent, are then the low bits of the sum.
	shifter = 12582912 + 127
	// lowest is where e^x leaves the normal range; results below it are zero.
	lowest = -87.3
)

// vecs are vectors that go through the same steps.
type vecs []VecVirtual

// each returns f of every vector.
func (x vecs) each(f func(v VecVirtual) VecVirtual) vecs {
	var out vecs
	for _, v := range x {
		out = append(out, f(v))
	}
	return out
}

// all emits one step for the index of every vector.
func (x vecs) all(f func(i int)) {
	for i := range x {
		f(i)
	}
}

// abreast is how many vectors go through a function at a time: what the registers hold.
func (m *isa) abreast() int {
	if m.wide() {
		return 4
	}
	return 2
}

// some returns n fresh registers.
func (m *isa) some(n int) vecs {
	var out vecs
	for range n {
		out = append(out, m.vec())
	}
	return out
}

func (m *isa) copies(x vecs) vecs { return x.each(func(v VecVirtual) VecVirtual { return m.move(v) }) }

// reduce returns r and 2^k for x in [lowest, 88], and the polynomial's tail c2 + ... + c6·r⁴.
func (m *isa) reduce(x vecs) (r, power, tail vecs) {
	power, r = m.copies(x), m.copies(x)
	k, shift := m.some(len(x)), m.constant(shifter)
	x.all(func(i int) { m.with(VFMADD132PS, VFMADD132PS_BCST, float(log2e), shift, power[i]) })
	x.all(func(i int) { VSUBPS(shift, power[i], k[i]) })
	for _, part := range []float32{ln2Hi, ln2Lo} {
		x.all(func(i int) { m.with(VFNMADD231PS, VFNMADD231PS_BCST, float(part), k[i], r[i]) })
	}
	x.all(func(i int) { VPSLLD(U8(23), power[i], power[i]) })
	tail = x.each(func(VecVirtual) VecVirtual { return m.constant(expTail[0]) })
	m.horner(tail, r, expTail[1:]...)
	return r, power, tail
}

// exp2 returns p and power, whose product is 2^z for |z| <= 126: the polynomial of e^r with r =
// f·ln 2, f the part of z behind the point.
func (m *isa) exp2(z vecs) (p, power vecs) {
	power, f := m.some(len(z)), m.some(len(z))
	shift := m.constant(shifter)
	z.all(func(i int) { VADDPS(shift, z[i], power[i]) })
	z.all(func(i int) { VSUBPS(shift, power[i], f[i]) })
	z.all(func(i int) { VSUBPS(f[i], z[i], f[i]) })
	z.all(func(i int) { VPSLLD(U8(23), power[i], power[i]) })
	var cs []float32
	for i, c := range append(slices.Clone(expTail), 1, 1) {
		cs = append(cs, float32(float64(c)*math.Pow(math.Ln2, float64(len(expTail)+1-i))))
	}
	p = z.each(func(VecVirtual) VecVirtual { return m.constant(cs[0]) })
	m.horner(p, f, cs[1:]...)
	return p, power
}

// horner: p = p·x + c for each c in turn.
func (m *isa) horner(p, x vecs, cs ...float32) {
	for _, c := range cs {
		p.all(func(i int) { m.with(VFMADD213PS, VFMADD213PS_BCST, float(c), x[i], p[i]) })
	}
}

// exp returns e^x for x <= 88, zero below lowest.
func (m *isa) exp(x vecs) vecs {
	r, power, p := m.reduce(x)
	m.horner(p, r, 1, 1)
	const notLess = 5 // true for NaN
	x.all(func(i int) {
		if m.wide() {
			k := K()
			VCMPPS_BCST(U8(notLess), float(lowest), x[i], k)
			VMULPS_Z(power[i], p[i], k, p[i])
			return
		}
		ok := m.vec()
		VCMPPS(U8(notLess), float(lowest), x[i], ok)
		VMULPS(power[i], p[i], p[i])
		VANDPS(ok, p[i], p[i])
	})
	return p
}

// invert returns 1/x of the first lane in every lane: a scalar division takes a quarter of the time
// of a whole vector's.
func (m *isa) invert(x vecs) vecs {
	return x.each(func(v VecVirtual) VecVirtual {
		one := XMM()
		VMOVSS(float(1), one)
		VDIVSS(v.AsX(), one, one)
		return m.broadcast(one)
	})
}

const signBit = 0x80000000

func (m *isa) minusAbs(x vecs) vecs {
	out := m.some(len(x))
	x.all(func(i int) { m.with(VORPS, VORPS_BCST, bits(signBit), x[i], out[i]) })
	return out
}

// sigmoid returns e = e^-|x|, 1+e, and top, which is 1 or e by the sign of x: sigmoid(x) is
// top/(1+e) and its derivative e/(1+e)². Nothing overflows and neither end loses digits. The one
// division hides behind the arithmetic of the exponential; a reciprocal by Newton steps takes
// longer.
func (m *isa) sigmoid(x vecs) (e, below, top vecs) {
	e = m.exp(m.minusAbs(x))
	below = m.some(len(x))
	x.all(func(i int) { m.addC(1, e[i], below[i]) })
	top = x.each(func(VecVirtual) VecVirtual { return m.constant(1) })
	x.all(func(i int) {
		if m.wide() {
			k := K()
			VPMOVD2M(x[i], k)
			VMOVAPS(e[i], k, top[i])
		} else {
			VBLENDVPS(x[i], e[i], top[i], top[i])
		}
	})
	return e, below, top
}

// tanh: with q = e^(-2|x|) - 1, tanh|x| = -q/(2+q); q keeps its digits near zero.
func (m *isa) tanh(x vecs) vecs {
	a := m.minusAbs(x)
	x.all(func(i int) { VADDPS(a[i], a[i], a[i]) })
	// Beyond 20 the result is 1 in float32. A maximum returns its first operand when one is NaN.
	floor := m.constant(-20)
	x.all(func(i int) { VMAXPS(a[i], floor, a[i]) })
	r, power, q := m.reduce(a)
	x.all(func(i int) { VMULPS(r[i], q[i], q[i]) })
	x.all(func(i int) { VFMADD213PS(r[i], r[i], q[i]) })
	rest := m.some(len(x))
	x.all(func(i int) { m.addC(-1, power[i], rest[i]) })
	x.all(func(i int) { VFMADD213PS(rest[i], power[i], q[i]) })
	x.all(func(i int) { m.addC(2, q[i], rest[i]) })
	x.all(func(i int) { VDIVPS(rest[i], q[i], q[i]) })
	x.all(func(i int) {
		sign := m.vec()
		m.with(VANDPS, VANDPS_BCST, bits(signBit), x[i], sign)
		m.with(VANDPS, VANDPS_BCST, bits(^uint32(signBit)), q[i], q[i])
		VORPS(sign, q[i], q[i])
	})
	return q
}

// log returns ln x for normal x > 0. x = 2^k·f with f in [√½, √2); s = (f-1)/(f+1), |s| < 0.172,
// and ln f = 2s(1 + s²/3 + s⁴/5 + s⁶/7 + s⁸/9), where the next term would add 2e-9 of the sum. All
// lanes of x are one number, so 256 bits of them do.
func (m *isa) log(x vecs) vecs {
	if m.wide() {
		half := x.each(func(v VecVirtual) VecVirtual { return v.AsY().(VecVirtual) })
		return (&isa{w: 8}).log(half).each(func(v VecVirtual) VecVirtual { return m.broadcast(v.AsX()) })
	}
	const rootHalf = 0x3f3504f3
	n := len(x)
	k, f, s, t, z := m.some(n), m.some(n), m.some(n), m.some(n), m.some(n)
	x.all(func(i int) {
		VPSUBD(bits(rootHalf), x[i], k[i])
		VPAND(bits(0x007fffff), k[i], f[i])
		VPSRAD(U8(23), k[i], k[i])
		VCVTDQ2PS(k[i], k[i])
		VPADDD(bits(rootHalf), f[i], f[i])
		m.addC(-1, f[i], s[i])
		m.addC(1, f[i], t[i])
	})
	x.all(func(i int) { VDIVPS(t[i], s[i], s[i]) })
	x.all(func(i int) { VMULPS(s[i], s[i], z[i]) })
	p := x.each(func(VecVirtual) VecVirtual { return m.constant(1.0 / 9) })
	m.horner(p, z, 1.0/7, 1.0/5, 1.0/3)
	x.all(func(i int) {
		VADDPS(s[i], s[i], s[i])
		VMULPS(s[i], z[i], z[i])
		VFMADD213PS(s[i], z[i], p[i])
		VFMADD231PS(float(math.Ln2), k[i], p[i])
		// x - x is zero, or NaN where x is not finite.
		VSUBPS(x[i], x[i], t[i])
		VADDPS(t[i], p[i], p[i])
	})
	return p
}
