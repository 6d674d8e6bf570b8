package main

import (
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// mask reads a row's set of allowed columns.
type mask struct {
	m    *isa
	row  Register
	bits VecVirtual // AVX2: bit i in lane i
}

func (m *isa) maskOf(name string) *mask {
	k := &mask{m: m, row: ptr(name)}
	if !m.wide() {
		k.bits = m.move(laneBits())
	}
	return k
}

var laneBitsData *Mem

func laneBits() Mem {
	if laneBitsData == nil {
		t := GLOBL("rows_lanebits", attr.RODATA|attr.NOPTR)
		for i := range 8 {
			DATA(4*i, U32(1<<i))
		}
		laneBitsData = &t
	}
	return *laneBitsData
}

// allowed returns the lanes of vector a that lie in the row and are allowed.
func (k *mask) allowed(a at) lanes {
	piece := a.word
	if piece == nil {
		piece = GP64()
		MOVQ(a.j, piece)
		SHRQ(U8(3), piece)
	}
	from := Mem{Base: k.row, Index: piece, Scale: 1, Disp: a.disp / 8}
	if k.m.wide() {
		l := K()
		KMOVW(from, l)
		if !a.all() {
			KANDW(a.lanes.reg, l, l)
		}
		return lanes{l}
	}
	v, b := YMM(), GP32()
	MOVBLZX(from, b)
	VMOVD(b, v.AsX())
	VPBROADCASTD(v.AsX(), v)
	VPAND(k.bits, v, v)
	VPCMPEQD(k.bits, v, v)
	if !a.all() {
		VPAND(a.lanes.reg, v, v)
	}
	return lanes{v}
}

// softmax emits what both forward primitives share: score gives a vector of scores, and which
// selects the lanes that take part.
func (m *isa) softmax(rows, p, words Register, c *columns, which func(a at) lanes, score func(a at, l lanes) VecVirtual, steps []stride) {
	long := m.label("long")
	CMPQ(c.ld, U8(shortest))
	JGT(LabelRef(long))
	group := c.short(words, 4)
	m.rowsBy(rows, len(group), func(k int) {
		rows := group[:k]
		var kept [][]lanes
		var v, top, sum vecs
		for _, row := range rows {
			most := m.constant(float32(math.Inf(-1)))
			var l []lanes
			for _, a := range row {
				l = append(l, which(a))
				v = append(v, score(a, l[len(l)-1]))
				m.maxInto(most, v[len(v)-1], l[len(l)-1])
			}
			kept, top = append(kept, l), append(top, most)
		}
		m.fold(VMAXPS, top...)
		width := len(rows[0])
		v.all(func(i int) { VSUBPS(top[i/width], v[i], v[i]) })
		e := m.exp(v)
		for r := range rows {
			s := m.zero()
			for i, l := range kept[r] {
				m.keep(e[r*width+i], l)
				VADDPS(e[r*width+i], s, s)
			}
			sum = append(sum, s)
		}
		m.fold(VADDPS, sum...)
		q := m.invert(sum)
		e.all(func(i int) {
			a := rows[i/width][i%width]
			VMULPS(q[i/width], e[i], e[i])
			m.keepRest(e[i], a)
			a.storePadded(e[i], p)
		})
	}, steps...)
	ret()

	Label(long)
	m.rows(rows, func() {
		top := m.constant(float32(math.Inf(-1)))
		c.each(1, func(a at) {
			l := which(a)
			v := score(a, l)
			a.storePadded(v, p)
			m.maxInto(top, v, l)
		})
		m.fold(VMAXPS, top)
		sum := m.zero()
		c.groups(m.abreast(), func(group []at) {
			var kept []lanes
			var v vecs
			for i, a := range group {
				kept = append(kept, which(a))
				v = append(v, m.load(a.mem(p), kept[i]))
				VSUBPS(top, v[i], v[i])
			}
			e := m.exp(v)
			e.all(func(i int) {
				m.keep(e[i], kept[i])
				VADDPS(e[i], sum, sum)
				group[i].storePadded(e[i], p)
			})
		})
		m.fold(VADDPS, sum)
		q := m.invert(vecs{sum})[0]
		c.each(1, func(a at) {
			v := a.load(p)
			VMULPS(q, v, v)
			m.keepRest(v, a)
			a.storePadded(v, p)
		})
		c.clear(p)
	}, steps...)
	ret()
}

func (m *isa) softmaxBias() {
	m.text("softmaxBias", "func(p, dist []float32, rows, n, ld int, scale, slope float32)", ".")
	p, dist, rows, n, ld := ptr("p"), ptr("dist"), integer("rows"), integer("n"), integer("ld")
	scale, slope, c, bytes := m.splat("scale"), m.splat("slope"), m.padded(n, ld), bytesOf(ld)
	m.softmax(rows, p, nil, c, func(a at) lanes { return a.lanes }, func(a at, l lanes) VecVirtual {
		v := a.load(p)
		VMULPS(scale, v, v)
		VFNMADD231PS(a.load(dist), slope, v)
		return v
	}, by(bytes, p, dist))
}

func (m *isa) softmaxMask() {
	m.text("softmaxMask", "func(p []float32, mask []uint64, rows, n, ld, words int, scale float32)", ".")
	p, k, rows, n, ld, words := ptr("p"), m.maskOf("mask"), integer("rows"), integer("n"), integer("ld"), integer("words")
	scale, c, bytes := m.splat("scale"), m.padded(n, ld), bytesOf(ld)
	SHLQ(U8(3), words)
	m.softmax(rows, p, words, c, k.allowed, func(a at, l lanes) VecVirtual {
		v := m.load(a.mem(p), l)
		VMULPS(scale, v, v)
		return v
	}, append(by(bytes, p), by(words, k.row)...))
}

// centred returns p·(dp - dot), the gradient of a softmax before its scale.
func (m *isa) centred(a at, dp, p Register, dot VecVirtual) VecVirtual {
	v := a.load(dp)
	VSUBPS(dot, v, v)
	VMULPS(a.load(p), v, v)
	return v
}

// softmaxBack emits the loop both gradients share; use sees the gradient of the scores of a vector.
func (m *isa) softmaxBack(rows, dp, p Register, c *columns, scale VecVirtual, use func(a at, ds VecVirtual), steps []stride) {
	m.rows(rows, func() {
		dot := m.zero()
		c.each(1, func(a at) { VFMADD231PS(a.load(dp), a.load(p), dot) })
		m.fold(VADDPS, dot)
		c.each(1, func(a at) {
			v := m.centred(a, dp, p, dot)
			use(a, v)
			VMULPS(scale, v, v)
			m.keepRest(v, a)
			a.storePadded(v, dp)
		})
		c.clear(dp)
	}, steps...)
}

func (m *isa) softmaxBiasGrad() {
	m.text("softmaxBiasGrad", "func(dp, p, dist []float32, rows, n, ld int, scale float32) (dslope float32)",
		"; dslope is summed by lanes over all rows, and joined once.")
	dp, p, dist, rows, n, ld := ptr("dp"), ptr("p"), ptr("dist"), integer("rows"), integer("n"), integer("ld")
	scale, c, bytes, slope := m.splat("scale"), m.padded(n, ld), bytesOf(ld), m.zero()
	m.softmaxBack(rows, dp, p, c, scale, func(a at, ds VecVirtual) {
		VFNMADD231PS(a.load(dist), ds, slope)
	}, by(bytes, dp, p, dist))
	m.fold(VADDPS, slope)
	Store(slope.AsX(), Return("dslope"))
	ret()
}

func (m *isa) softmaxGrad() {
	m.text("softmaxGrad", "func(dp, p []float32, rows, n, ld int, scale float32)", ".")
	dp, p, rows, n, ld := ptr("dp"), ptr("p"), integer("rows"), integer("n"), integer("ld")
	scale, c, bytes := m.splat("scale"), m.padded(n, ld), bytesOf(ld)
	m.softmaxBack(rows, dp, p, c, scale, func(at, VecVirtual) {}, by(bytes, dp, p))
	ret()
}

func (m *isa) distances() {
	m.text("distances", "func(dist, x, y []float32, n, ld int)", ".")
	dist, x, y, n, ld := ptr("dist"), ptr("x"), ptr("y"), integer("n"), integer("ld")
	c, bytes, rows, px, py := m.padded(n, ld), bytesOf(ld), GP64(), GP64(), GP64()
	MOVQ(n, rows)
	MOVQ(x, px)
	MOVQ(y, py)
	m.rows(rows, func() {
		xi, yi := m.broadcast(Mem{Base: px}), m.broadcast(Mem{Base: py})
		c.each(1, func(a at) {
			dx, dy := m.vec(), m.vec()
			VSUBPS(a.load(x), xi, dx)
			VSUBPS(a.load(y), yi, dy)
			VMULPS(dx, dx, dx)
			VFMADD231PS(dy, dy, dx)
			VSQRTPS(dx, dx)
			m.keepRest(dx, a)
			a.storePadded(dx, dist)
		})
		c.clear(dist)
	}, append(by(bytes, dist), by(U8(4), px, py)...)...)
	ret()
}
