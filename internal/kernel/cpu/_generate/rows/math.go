package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The elementary functions. Each keeps a NaN a NaN, so that one in a weight reaches the loss.
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

// reduce returns r and 2^k for x in [lowest, 88], and the polynomial's tail c2 + ... + c6·r⁴.
func (m *isa) reduce(x VecVirtual) (r, power, tail VecVirtual) {
	t, shift := m.move(x), m.constant(shifter)
	m.with(VFMADD132PS, VFMADD132PS_BCST, float(log2e), shift, t)
	k := m.vec()
	VSUBPS(shift, t, k)
	r = m.move(x)
	m.with(VFNMADD231PS, VFNMADD231PS_BCST, float(ln2Hi), k, r)
	m.with(VFNMADD231PS, VFNMADD231PS_BCST, float(ln2Lo), k, r)
	power = m.vec()
	VPSLLD(U8(23), t, power)
	tail = m.constant(expTail[0])
	for _, c := range expTail[1:] {
		m.hornerC(c, r, tail)
	}
	return r, power, tail
}

// exp returns e^x for x <= 88, zero below lowest.
func (m *isa) exp(x VecVirtual) VecVirtual {
	r, power, p := m.reduce(x)
	m.hornerC(1, r, p)
	m.hornerC(1, r, p)
	const notLess = 5 // true for NaN
	if m.wide() {
		k := K()
		VCMPPS_BCST(U8(notLess), float(lowest), x, k)
		VMULPS_Z(power, p, k, p)
		return p
	}
	ok := m.vec()
	VCMPPS(U8(notLess), float(lowest), x, ok)
	VMULPS(power, p, p)
	VANDPS(ok, p, p)
	return p
}

const signBit = 0x80000000

func (m *isa) minusAbs(x VecVirtual) VecVirtual {
	v := m.vec()
	m.with(VORPS, VORPS_BCST, bits(signBit), x, v)
	return v
}

// invert returns 1/x of the first lane in every lane: a scalar division takes a quarter of the time
// of a whole vector's.
func (m *isa) invert(x VecVirtual) VecVirtual {
	one := XMM()
	VMOVSS(float(1), one)
	VDIVSS(x.AsX(), one, one)
	return m.broadcast(one)
}

// sigmoid returns e = e^-|x|, 1+e, and top, which is 1 or e by the sign of x: sigmoid(x) is top/(1+e)
// and its derivative e/(1+e)². Nothing overflows and neither end loses digits. The one division hides
// behind the arithmetic of the exponential; a reciprocal by Newton steps takes longer.
func (m *isa) sigmoid(x VecVirtual) (e, below, top VecVirtual) {
	e = m.exp(m.minusAbs(x))
	below = m.vec()
	m.addC(1, e, below)
	top = m.constant(1)
	if m.wide() {
		k := K()
		VPMOVD2M(x, k)
		VMOVAPS(e, k, top)
	} else {
		VBLENDVPS(x, e, top, top)
	}
	return e, below, top
}

// tanh: with q = e^(-2|x|) - 1, tanh|x| = -q/(2+q); q keeps its digits near zero.
func (m *isa) tanh(x VecVirtual) VecVirtual {
	a := m.minusAbs(x)
	VADDPS(a, a, a)
	// Beyond 20 the result is 1 in float32. A maximum returns its first operand when one is NaN.
	VMAXPS(a, m.constant(-20), a)
	r, power, q := m.reduce(a)
	VMULPS(r, q, q)
	VFMADD213PS(r, r, q)
	rest := m.vec()
	m.addC(-1, power, rest)
	VFMADD213PS(rest, power, q)
	m.addC(2, q, rest)
	VDIVPS(rest, q, q)
	sign := m.vec()
	m.with(VANDPS, VANDPS_BCST, bits(signBit), x, sign)
	m.with(VANDPS, VANDPS_BCST, bits(^uint32(signBit)), q, q)
	VORPS(sign, q, q)
	return q
}

// log returns ln x for normal x > 0. x = 2^k·f with f in [√½, √2); s = (f-1)/(f+1), |s| < 0.172, and
// ln f = 2s(1 + s²/3 + s⁴/5 + s⁶/7 + s⁸/9), where the next term would add 2e-9 of the sum. All lanes of x
// are one number, so 256 bits of them do.
func (m *isa) log(x VecVirtual) VecVirtual {
	if m.wide() {
		return m.broadcast((&isa{w: 8}).log(x.AsY().(VecVirtual)).AsX())
	}
	const rootHalf = 0x3f3504f3
	k, f := m.vec(), m.vec()
	VPSUBD(bits(rootHalf), x, k)
	VPAND(bits(0x007fffff), k, f)
	VPSRAD(U8(23), k, k)
	VCVTDQ2PS(k, k)
	VPADDD(bits(rootHalf), f, f)
	s, t := m.vec(), m.vec()
	m.addC(-1, f, s)
	m.addC(1, f, t)
	VDIVPS(t, s, s)
	z, p := m.vec(), m.constant(1.0/9)
	VMULPS(s, s, z)
	for _, c := range []float32{1.0 / 7, 1.0 / 5, 1.0 / 3} {
		m.hornerC(c, z, p)
	}
	VADDPS(s, s, s)
	VMULPS(s, z, z)
	VFMADD213PS(s, z, p)
	VFMADD231PS(float(math.Ln2), k, p)
	// x - x is zero, or NaN where x is not finite.
	VSUBPS(x, x, t)
	VADDPS(t, p, p)
	return p
}
