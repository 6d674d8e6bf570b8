package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// columns walks the n elements of a row by vectors. What depends only on n is worked out once,
// before the loop over rows.
type columns struct {
	m       *isa
	n, full Register // full: n rounded down to whole vectors
	rest    lanes    // the lanes of the last, partial vector
	pad     lanes    // the lanes of that vector which lie in a padded row
	ld      Register
}

// columns prepares a walk over n elements.
func (m *isa) columns(n Register) *columns {
	full, rest := GP64(), GP64()
	MOVQ(n, full)
	ANDQ(I32(-m.w), full)
	MOVQ(n, rest)
	SUBQ(full, rest)
	return &columns{m: m, n: n, full: full, rest: m.below(rest)}
}

// padded prepares a walk over n elements of rows of ld.
func (m *isa) padded(n, ld Register) *columns {
	c := m.columns(n)
	c.ld = ld
	room := GP64()
	MOVQ(ld, room)
	SUBQ(c.full, room)
	c.pad = m.below(m.atMost(room))
	return c
}

// at is one vector of a row: its place and the lanes that exist there.
type at struct {
	c    *columns
	j    Register // element index
	disp int      // elements after j
	slot int      // which of the unrolled steps this is
	lanes
	pad  lanes    // those of the vector that lie in the padded row
	word Register // bytes to the row's mask; nil: the mask pointer is at the row
}

func (a at) mem(row Register) Mem {
	return Mem{Base: row, Index: a.j, Scale: 4, Disp: 4 * a.disp}
}

func (a at) load(row Register) VecVirtual     { return a.c.m.load(a.mem(row), a.lanes) }
func (a at) store(v VecVirtual, row Register) { a.c.m.store(v, a.mem(row), a.lanes) }

// storePadded writes v, whose lanes from n on are zero, over all of the vector that lies in the
// row. It also serves for what is read back soon: only a store whose mask is full can be forwarded
// to a load.
func (a at) storePadded(v VecVirtual, row Register) { a.c.m.store(v, a.mem(row), a.pad) }

// keepRest clears the lanes past the end of a row. They are zero after a load, but need not be
// after arithmetic: a mean may have been taken off them, or a NaN of the row multiplied in.
func (m *isa) keepRest(v VecVirtual, a at) {
	m.keep(v, a.lanes)
}

// each emits step for every vector of the row: unroll vectors at a time, then one, then the partial
// one.
func (c *columns) each(unroll int, step func(a at)) {
	c.groups(unroll, func(group []at) {
		for _, a := range group {
			step(a)
		}
	})
}

// groups is each with the vectors that are taken at a time handed over together.
func (c *columns) groups(unroll int, step func(group []at)) {
	m, j := c.m, GP64()
	XORQ(j, j)
	whole := func(loop, end string, count int) {
		next, group := GP64(), []at(nil)
		for u := range count {
			group = append(group, at{c: c, j: j, disp: u * m.w, slot: u})
		}
		Label(loop)
		LEAQ(Mem{Base: j, Disp: count * m.w}, next)
		CMPQ(next, c.full)
		JGT(LabelRef(end))
		step(group)
		ADDQ(I32(count*m.w), j)
		JMP(LabelRef(loop))
		Label(end)
	}
	if unroll > 1 {
		whole(m.label("group"), m.label("endgroup"), unroll)
	}
	whole(m.label("vector"), m.label("endvector"), 1)
	done := m.label("done")
	CMPQ(j, c.n)
	JGE(LabelRef(done))
	step([]at{{c: c, j: j, lanes: c.rest, pad: c.pad}})
	Label(done)
}

// shortest is the padded length up to which a row is kept in registers from load to store.
const shortest = 16

// short returns the vectors of count rows of at most shortest floats each; one row for AVX2, whose
// rows are two vectors. Lanes past the end of a row are masked, up to whole vectors of them. A
// mask's row is words bytes long; nil where there is none.
func (c *columns) short(words Register, count int) [][]at {
	m, zero := c.m, GP64()
	XORQ(zero, zero)
	if !m.wide() {
		count = 1
	}
	clip := func(n Register, from int) lanes {
		left := GP64()
		LEAQ(Mem{Base: n, Disp: -from}, left)
		CMPQ(left, zero)
		CMOVQLT(zero, left)
		return m.below(m.atMost(left))
	}
	var first []at
	for i := 0; i < shortest; i += m.w {
		first = append(first, at{c: c, j: zero, disp: i, word: zero, lanes: clip(c.n, i), pad: clip(c.ld, i)})
	}
	rows := [][]at{first}
	for len(rows) < count {
		above := rows[len(rows)-1]
		j, word := GP64(), GP64()
		LEAQ(Mem{Base: above[0].j, Index: c.ld, Scale: 1}, j)
		if words != nil {
			LEAQ(Mem{Base: above[0].word, Index: words, Scale: 1}, word)
		}
		var row []at
		for _, a := range first {
			a.j, a.word = j, word
			row = append(row, a)
		}
		rows = append(rows, row)
	}
	return rows
}

// clear writes zero to what storePadded leaves of the padding of each row.
func (c *columns) clear(rows ...Register) {
	m, j, next := c.m, GP64(), GP64()
	vector, one, done := m.label("pad"), m.label("padone"), m.label("paddone")
	LEAQ(Mem{Base: c.n, Disp: m.w - 1}, j)
	ANDQ(I32(-m.w), j)
	CMPQ(j, c.ld)
	JGE(LabelRef(done))
	zero := m.zero()
	Label(vector)
	LEAQ(Mem{Base: j, Disp: m.w}, next)
	CMPQ(next, c.ld)
	JGT(LabelRef(one))
	for _, r := range rows {
		VMOVUPS(zero, Mem{Base: r, Index: j, Scale: 4})
	}
	MOVQ(next, j)
	JMP(LabelRef(vector))
	Label(one)
	CMPQ(j, c.ld)
	JGE(LabelRef(done))
	for _, r := range rows {
		MOVL(U32(0), Mem{Base: r, Index: j, Scale: 4})
	}
	INCQ(j)
	JMP(LabelRef(one))
	Label(done)
}

// rows emits body once for each row, then moves every pointer of step on by its bytes. It counts
// the register count down.
func (m *isa) rows(count Register, body func(), steps ...stride) {
	loop, done := m.label("row"), m.label("end")
	TESTQ(count, count)
	JLE(LabelRef(done))
	Label(loop)
	body()
	for _, s := range steps {
		ADDQ(s.bytes, s.p)
	}
	DECQ(count)
	JNZ(LabelRef(loop))
	Label(done)
}

// rowsBy emits body for k rows at a time, then for one.
func (m *isa) rowsBy(count Register, k int, body func(k int), steps ...stride) {
	if k > 1 {
		loop, end := m.label("rows"), m.label("endrows")
		Label(loop)
		CMPQ(count, U8(k))
		JLT(LabelRef(end))
		body(k)
		for _, s := range steps {
			for range k {
				ADDQ(s.bytes, s.p)
			}
		}
		SUBQ(U8(k), count)
		JMP(LabelRef(loop))
		Label(end)
	}
	m.rows(count, func() { body(1) }, steps...)
}

// stride moves pointer p by bytes at the end of a row.
type stride struct {
	p     Register
	bytes Op
}

// by pairs pointers with the one stride they share.
func by(bytes Op, ps ...Register) []stride {
	var out []stride
	for _, p := range ps {
		out = append(out, stride{p, bytes})
	}
	return out
}

// bytesOf returns n·4.
func bytesOf(n Register) Register {
	b := GP64()
	MOVQ(n, b)
	SHLQ(U8(2), b)
	return b
}
