package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// GELU where its result is an operand in bf16. Its sigmoid less a half is odd in x, and so is its
// slope less a half: both are pieces of straight lines in |x|, an eighth long each, whose two
// numbers are looked up in registers. Past the last piece, at 3.8, they are a half.

const (
	nearPieces = 32
	nearScale  = 8 // pieces per unit of |x|
	nearFar    = 3.9
	// nearShift rounds |x|·nearScale to an integer, in the low bits of the sum.
	nearShift = 12582912.0 / nearScale
)

// geluSigmoid and geluSlopeAt are gelu(x)/x and gelu's slope.
func geluSigmoid(x float64) float64 { return 1 / (1 + math.Exp(-geluSlope*(x+geluCube*x*x*x))) }

func geluSlopeAt(x float64) float64 {
	s := geluSigmoid(x)
	return s + x*s*(1-s)*geluSlope*(1+3*geluCube*x*x)
}

// pieces are the lines that stay nearest to f - ½ on each piece: its chord, moved to the middle of
// what lies about it.
func pieces(f func(x float64) float64) (a, b [nearPieces]uint32) {
	for p := range nearPieces {
		from, to := max(0, (float64(p)-0.5)/nearScale), (float64(p)+0.5)/nearScale
		slope, low, high := (f(to)-f(from))/(to-from), math.Inf(1), math.Inf(-1)
		for i := range 65 {
			x := from + (to-from)*float64(i)/64
			low, high = min(low, f(x)-0.5-slope*x), max(high, f(x)-0.5-slope*x)
		}
		start := (low + high) / 2
		switch p {
		case 0:
			start = 0 // zero stays zero
		case nearPieces - 1:
			start, slope = 0.5, 0
		}
		a[p], b[p] = math.Float32bits(float32(start)), math.Float32bits(float32(slope))
	}
	return a, b
}

// lookup holds 32 numbers in two registers.
type lookup struct{ low, high VecVirtual }

func (m *isa) lookup(name string, of [nearPieces]uint32) lookup {
	half := func(part string, from int) VecVirtual {
		return m.move(table(name+part, 4, func(i int) uint32 { return of[from+i] }))
	}
	return lookup{half("low", 0), half("high", 16)}
}

// nearLine returns |x| and f(|x|) - ½.
func (m *isa) nearLine(x vecs, a, b lookup) (size, h vecs) {
	size, h = m.some(len(x)), m.some(len(x))
	clipped, start := m.some(len(x)), m.some(len(x))
	far, shift := m.constant(nearFar), m.constant(nearShift)
	x.all(func(i int) { VPANDD_BCST(bits(^uint32(signBit)), x[i], size[i]) })
	// a minimum returns its first operand when one is NaN
	x.all(func(i int) { VMINPS(size[i], far, clipped[i]) })
	x.all(func(i int) { VADDPS(shift, clipped[i], h[i]) })
	x.all(func(i int) { VMOVAPS(h[i], start[i]) })
	x.all(func(i int) { VPERMI2PS(b.high, b.low, h[i]) })
	x.all(func(i int) { VPERMI2PS(a.high, a.low, start[i]) })
	x.all(func(i int) { VFMADD213PS(start[i], clipped[i], h[i]) })
	return size, h
}

func (m *isa) geluNear() {
	m.text("geluNear", "func(y, x []float32)", "")
	Doc("geluNearAVX512: y = gelu(x), off by at most 3e-4. y may be x.")
	y, x, c := ptr("y"), ptr("x"), m.columns(length("x"))
	starts, slopes := pieces(geluSigmoid)
	a, b, half := m.lookup("geluStart", starts), m.lookup("geluSlope", slopes), m.constant(0.5)
	c.groups(m.abreast(), func(group []at) {
		v := loads(group, x)
		size, h := m.nearLine(v, a, b)
		v.all(func(i int) { VMULPS(half, v[i], v[i]) })
		v.all(func(i int) {
			VFMADD231PS(size[i], h[i], v[i])
			group[i].store(v[i], y)
		})
	})
	ret()
}

func (m *isa) geluGradNear() {
	m.text("geluGradNear", "func(dx, dy, x []float32)", "")
	Doc("geluGradNearAVX512: dx = dy·gelu'(x), the slope off by at most 8e-4. dx may be dy.")
	dx, dy, x, c := ptr("dx"), ptr("dy"), ptr("x"), m.columns(length("x"))
	starts, slopes := pieces(geluSlopeAt)
	a, b, half := m.lookup("geluGradStart", starts), m.lookup("geluGradSlope", slopes), m.constant(0.5)
	const signOfSecond = 0xd8
	c.groups(m.abreast(), func(group []at) {
		v := loads(group, x)
		_, h := m.nearLine(v, a, b)
		v.all(func(i int) { VPTERNLOGD_BCST(U8(signOfSecond), bits(signBit), v[i], h[i]) })
		v.all(func(i int) { VADDPS(half, h[i], h[i]) })
		v.all(func(i int) {
			VMULPS(group[i].load(dy), h[i], h[i])
			group[i].store(h[i], dx)
		})
	})
	ret()
}
