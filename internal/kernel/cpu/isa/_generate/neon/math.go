package main

import "math"

// The elementary functions, with the polynomials of the AVX generator (../rows/math.go says why).
// Each keeps a NaN a NaN, so that one in a weight reaches the loss: NEON's fmax and fmin do.

var expTail = []float64{0.00138144649, 0.00836878084, 0.0416683927, 0.166665196, 0.49999994}

const (
	ln2Hi   = 0.693359375 // few enough bits that k·ln2Hi is exact
	ln2Lo   = math.Ln2 - ln2Hi
	shifter = 12582912 + 127 // 1.5·2^23 + 127: adding it rounds, and leaves k+127 in the low bits
	lowest  = -87.3          // where e^x leaves the normal range; results below are zero
	signBit = 0x80000000
)

// needExp, needTanh and needLog load what the functions use before a loop.
func (f *fn) needExp() {
	f.need(math.Log2E, shifter, ln2Hi, ln2Lo, 1, lowest)
	f.need(expTail...)
}

func (f *fn) needTanh() {
	f.needExp()
	f.need(-20, 2, -1)
	f.bits(signBit)
}

// reduce returns r, 2^k and the polynomial's tail for x in [lowest, 88]. x stays.
func (f *fn) reduce(x V) (r, power, tail V) {
	power, r, tail = f.v(), f.v(), f.v()
	k := f.v()
	f.move(power, f.float(shifter))
	f.fmla(power, x, f.float(math.Log2E))
	f.fsub(k, power, f.float(shifter))
	f.move(r, x)
	f.fmls(r, k, f.float(ln2Hi))
	f.fmls(r, k, f.float(ln2Lo))
	f.free(k)
	f.shl(power, power, 23)
	f.horner(tail, r, expTail...)
	return r, power, tail
}

// horner: p = (...(c0·x + c1)·x + ...) + cn. It takes one register more while it runs.
func (f *fn) horner(p, x V, cs ...float64) {
	t := f.v()
	f.move(p, f.float(cs[0]))
	for _, c := range cs[1:] {
		f.move(t, f.float(c))
		f.fmla(t, p, x)
		f.move(p, t)
	}
	f.free(t)
}

// exp makes e^x of x <= 88 in place, zero below lowest.
func (f *fn) exp(x V) {
	r, power, p := f.reduce(x)
	for range 2 {
		t := f.v()
		f.move(t, f.float(1))
		f.fmla(t, p, r)
		f.move(p, t)
		f.free(t)
	}
	f.fmul(p, p, power)
	f.fcmgt(power, f.float(lowest), x) // false for NaN
	f.bic(x, p, power)
	f.free(r, power, p)
}

// sigmoid returns e = e^-|x|, 1+e, and top, which is 1 or e by the sign of x: sigmoid(x) is
// top/(1+e) and its derivative e/(1+e)². x is used up.
func (f *fn) sigmoid(x V) (e, below, top V) {
	e, below, top = f.v(), f.v(), f.v()
	f.orr(e, x, f.bits(signBit))
	f.exp(e)
	f.fadd(below, e, f.float(1))
	f.sshr(top, x, 31) // all ones where x is negative
	f.bsl(top, e, f.float(1))
	f.free(x)
	return e, below, top
}

// tanh in place: with q = e^(-2|x|) - 1, tanh|x| = -q/(2+q); q keeps its digits near zero.
func (f *fn) tanh(x V) {
	a, sign := f.v(), f.v()
	f.and(sign, x, f.bits(signBit))
	f.orr(a, x, f.bits(signBit))
	f.fadd(a, a, a)
	f.fmax(a, a, f.float(-20))
	r, power, q := f.reduce(a)
	f.fmul(q, q, r)
	t := f.v()
	f.move(t, r)
	f.fmla(t, q, r) // e^r - 1
	f.fadd(a, power, f.float(-1))
	f.fmla(a, t, power) // q = power·(e^r - 1) + power - 1
	f.fadd(t, a, f.float(2))
	f.fdiv(a, a, t)
	f.fabs(a, a)
	f.orr(x, a, sign)
	f.free(a, sign, r, power, q, t)
}

const rootHalf = 0x3f3504f3

// fresh loads a constant that is used once and given back.
func (f *fn) fresh(v V, u uint32) {
	r := f.r()
	f.line("MOVD $0x%08x, %s", u, r)
	f.splatWord(v, r)
	f.freeR(r)
}

// log in place, of normal x > 0: x = 2^k·f with f in [√½, √2), s = (f-1)/(f+1), and ln f = 2s(1 +
// s²/3 + s⁴/5 + s⁶/7 + s⁸/9). It runs once per row, so its constants are loaded where they are
// used.
func (f *fn) log(x V) {
	bits := func(c float64) uint32 { return math.Float32bits(float32(c)) }
	k, m, s, t, p := f.v(), f.v(), f.v(), f.v(), f.v()
	f.fresh(t, rootHalf)
	f.sub(k, x, t)
	f.fresh(p, 0x007fffff)
	f.and(m, k, p)
	f.sshr(k, k, 23)
	f.scvtf(k, k)
	f.add(m, m, t)
	f.fresh(p, bits(1))
	f.fsub(s, m, p)
	f.fadd(t, m, p)
	f.fdiv(s, s, t)
	f.fmul(m, s, s)
	f.fresh(p, bits(1.0/9))
	for _, c := range []float64{1.0 / 7, 1.0 / 5, 1.0 / 3} {
		f.fresh(t, bits(c))
		f.fmla(t, p, m)
		f.move(p, t)
	}
	f.fadd(s, s, s)
	f.fmul(m, m, s)
	f.fmla(s, p, m)
	f.fresh(t, bits(math.Ln2))
	f.fmla(s, k, t)
	f.fsub(t, x, x) // zero, or NaN where x is not finite
	f.fadd(x, s, t)
	f.free(k, m, s, t, p)
}
