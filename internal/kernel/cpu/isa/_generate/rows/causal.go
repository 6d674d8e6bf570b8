package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// reach is the stretch of columns that a row of causal attention looks at: after `before`, short of
// `end`.
type reach struct {
	m            *isa
	first        Register // the row's first column, counted as the sequence counts
	from         Mem      // the block's first column, likewise
	end          Register // the row's end in the block
	before, stop VecVirtual
}

func (m *isa) reach() *reach {
	from, err := Param("from").Resolve()
	if err != nil {
		panic(err)
	}
	return &reach{m: m, first: ptr("first"), from: from.Addr, end: integer("end")}
}

// row is the stretch of the i-th row from where first and end stand.
func (r *reach) row(i int) *reach {
	out, low := *r, GP64()
	MOVLQSX(Mem{Base: r.first, Disp: 4 * i}, low)
	SUBQ(r.from, low)
	DECQ(low)
	out.before = r.m.spreadInt(low.As32())
	end := GP64()
	LEAQ(Mem{Base: r.end, Disp: i}, end)
	out.stop = r.m.spreadInt(end.As32())
	return &out
}

// steps move on to the next row.
func (r *reach) steps() []stride { return append(by(U8(4), r.first), by(U8(1), r.end)...) }

// spreadInt puts an integer in every lane.
func (m *isa) spreadInt(n Register) VecVirtual {
	v := m.vec()
	if m.wide() {
		VPBROADCASTD(n, v)
	} else {
		VMOVD(n, v.AsX())
		VPBROADCASTD(v.AsX(), v)
	}
	return v
}

// column is the columns of vector a.
func (m *isa) column(a at) VecVirtual {
	j := GP64()
	LEAQ(Mem{Base: a.j, Disp: a.disp}, j)
	column := m.spreadInt(j.As32())
	VPADDD(table("count", 4, func(i int) uint32 { return uint32(i) }), column, column)
	return column
}

// lanes selects those of a vector of columns that the row looks at.
func (r *reach) lanes(column VecVirtual) lanes {
	m := r.m
	if m.wide() {
		const less, more = 1, 6
		short, in := K(), K()
		VPCMPD(U8(less), r.stop, column, short)
		VPCMPD(U8(more), r.before, column, short, in)
		return lanes{in}
	}
	in, past := m.vec(), m.vec()
	VPCMPGTD(column, r.stop, in)
	VPCMPGTD(r.before, column, past)
	VPAND(past, in, in)
	return lanes{in}
}

// softmaxCausal takes two rows at a time where the registers hold them: a row is a few vectors, and
// what follows its largest and its sum waits for them.
func (m *isa) softmaxCausal() {
	m.text("softmaxCausal", "func(p, logSum []float32, first []int32, mask []uint16, rows, from, end, n, ld, words int, scale, keep float32)", ".")
	p, logSum, r, k := ptr("p"), ptr("logSum"), m.reach(), m.maskOf("mask")
	rows, n, ld, words := integer("rows"), integer("n"), integer("ld"), integer("words")
	scale, keep, c, bytes := m.splat("scale"), m.splat("keep"), m.columns(n), bytesOf(ld)
	SHLQ(U8(1), words)
	most := 1
	if m.wide() {
		most = 2
	}
	m.rowsBy(rows, most, func(count int) {
		base, reaches := []Register{p}, []*reach{r.row(0)}
		if count > 1 {
			below := GP64()
			LEAQ(Mem{Base: p, Index: bytes, Scale: 1}, below)
			base, reaches = append(base, below), append(reaches, r.row(1))
		}
		var top, sum vecs
		for range base {
			top, sum = append(top, m.constant(float32(math.Inf(-1)))), append(sum, m.zero())
		}
		// Columns out of reach become minus infinity here, of which the exponential is zero.
		c.each(1, func(a at) {
			column := m.column(a)
			for i, row := range base {
				v, l, none := a.load(row), reaches[i].lanes(column), m.constant(float32(math.Inf(-1)))
				if m.wide() {
					VMULPS(scale, v, l.reg, none)
				} else {
					VMULPS(scale, v, v)
					VBLENDVPS(l.reg, v, none, none)
				}
				a.store(none, row)
				m.maxInto(top[i], none, a.lanes)
			}
		})
		m.fold(VMAXPS, top...)
		c.groups(m.abreast()/count, func(group []at) {
			var v vecs
			for i, row := range base {
				for _, a := range group {
					v = append(v, a.load(row))
					VSUBPS(top[i], v[len(v)-1], v[len(v)-1])
				}
			}
			e := m.exp(v)
			e.all(func(i int) {
				row, a := i/len(group), group[i%len(group)]
				m.keepRest(e[i], a)
				VADDPS(e[i], sum[row], sum[row])
				a.store(e[i], base[row])
			})
		})
		m.fold(VADDPS, sum...)
		q := m.invert(sum)
		q.all(func(i int) { VMULPS(keep, q[i], q[i]) })
		if count == 1 {
			log := m.log(sum)[0]
			VADDSS(top[0].AsX(), log.AsX(), log.AsX())
			VMOVSS(log.AsX(), Mem{Base: logSum})
		} else { // one logarithm of both
			pair := YMM()
			VUNPCKLPS(sum[1].AsX(), sum[0].AsX(), pair.AsX())
			log := (&isa{w: 8}).log(vecs{pair})[0]
			VUNPCKLPS(top[1].AsX(), top[0].AsX(), top[0].AsX())
			VADDPS(top[0].AsX(), log.AsX(), log.AsX())
			VMOVQ(log.AsX(), Mem{Base: logSum})
		}
		c.each(2, func(a at) {
			for i, row := range base {
				if i > 0 {
					below := GP64()
					MOVQ(a.j, below)
					SHRQ(U8(3), below)
					ADDQ(words, below)
					a.word = below
				}
				a.store(m.kept(k, a, a.load(row), q[i]), row)
			}
		})
	}, append(append(by(bytes, p), by(U8(4), logSum)...), append(by(words, k.row), r.steps()...)...)...)
	ret()
}

func (m *isa) softmaxCausalGrad() {
	m.text("softmaxCausalGrad",
		"func(ds, p, logSum, dots []float32, first []int32, mask []uint16, rows, from, end, n, ld, words int, scale, keep float32)", ".")
	ds, p, logSum, dots, r, k := ptr("ds"), ptr("p"), ptr("logSum"), ptr("dots"), m.reach(), m.maskOf("mask")
	rows, n, ld, words := integer("rows"), integer("n"), integer("ld"), integer("words")
	scale, keep, c, bytes := m.splat("scale"), m.splat("keep"), m.columns(n), bytesOf(ld)
	SHLQ(U8(1), words)
	abreast := 1
	if m.wide() {
		abreast = 2
	}
	m.rows(rows, func() {
		r := r.row(0)
		c.groups(abreast, func(group []at) {
			s, l := loads(group, p), m.broadcast(Mem{Base: logSum})
			s.all(func(i int) { VFMSUB132PS(scale, l, s[i]) })
			e := m.exp(s)
			e.all(func(i int) {
				a := group[i]
				m.keep(e[i], r.lanes(m.column(a)))
				g := m.kept(k, a, a.load(ds), keep)
				VSUBPS(m.broadcast(Mem{Base: dots}), g, g)
				VMULPS(scale, g, g)
				VMULPS(e[i], g, g)
				a.store(g, ds)
				a.store(m.kept(k, a, e[i], keep), p)
			})
		})
	}, append(append(by(bytes, ds, p), by(U8(4), logSum, dots)...), append(by(words, k.row), r.steps()...)...)...)
	ret()
}

// rowDots joins each row's products lane by lane, so that a row of one vector is one fold.
func (m *isa) rowDots() {
	m.text("rowDots", "func(out, a, b []float32, rows, n, ld int)", ".")
	out, x, y := ptr("out"), ptr("a"), ptr("b")
	rows, n, ld := integer("rows"), integer("n"), integer("ld")
	c, bytes := m.columns(n), bytesOf(ld)
	m.rows(rows, func() {
		sum := m.zero()
		c.each(1, func(a at) { VFMADD231PS(a.load(x), a.load(y), sum) })
		m.fold(VADDPS, sum)
		VMOVSS(sum.AsX(), Mem{Base: out})
	}, append(by(bytes, x, y), by(U8(4), out)...)...)
	ret()
}
