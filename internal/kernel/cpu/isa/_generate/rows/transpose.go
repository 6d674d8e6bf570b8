package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// grid is a matrix seen through a block of eight rows: row i is reached by one address.
type grid struct{ at, ld, ld3 Register }

func newGrid(at, ld Register) *grid {
	g := &grid{GP64(), bytesOf(ld), GP64()}
	MOVQ(at, g.at)
	LEAQ(Mem{Base: g.ld, Index: g.ld, Scale: 2}, g.ld3)
	return g
}

// rows returns the addresses of the block's rows.
func (g *grid) rows() []Mem {
	low := g.at
	high := GP64()
	LEAQ(Mem{Base: low, Index: g.ld, Scale: 4}, high)
	var out []Mem
	for _, base := range []Register{low, high} {
		out = append(out, Mem{Base: base}, Mem{Base: base, Index: g.ld, Scale: 1},
			Mem{Base: base, Index: g.ld, Scale: 2}, Mem{Base: base, Index: g.ld3, Scale: 1})
	}
	return out
}

// turn returns the transpose of an 8×8 block held by rows.
func (m *isa) turn(r []VecVirtual) []VecVirtual {
	pair := func(op func(a, b, dst Op), a, b VecVirtual) VecVirtual {
		dst := m.vec()
		op(b, a, dst)
		return dst
	}
	unpackLow := func(b, a, dst Op) { VUNPCKLPS(b, a, dst) }
	unpackHigh := func(b, a, dst Op) { VUNPCKHPS(b, a, dst) }
	low := func(b, a, dst Op) { VSHUFPS(U8(0x44), b, a, dst) }
	high := func(b, a, dst Op) { VSHUFPS(U8(0xee), b, a, dst) }
	front := func(b, a, dst Op) { VPERM2F128(U8(0x20), b, a, dst) }
	back := func(b, a, dst Op) { VPERM2F128(U8(0x31), b, a, dst) }
	var t, u, out []VecVirtual
	for i := 0; i < 8; i += 2 {
		t = append(t, pair(unpackLow, r[i], r[i+1]), pair(unpackHigh, r[i], r[i+1]))
	}
	for i := 0; i < 8; i += 4 {
		for k := range 2 {
			u = append(u, pair(low, t[i+k], t[i+k+2]), pair(high, t[i+k], t[i+k+2]))
		}
	}
	for i := range 8 {
		op := front
		if i >= 4 {
			op = back
		}
		out = append(out, pair(op, u[i%4], u[i%4+4]))
	}
	return out
}

// transpose moves 8×8 blocks through registers. It exists for AVX2 alone: the loop is bound by
// loads, stores and one shuffle port, which wider vectors do not relieve.
func (m *isa) transpose() {
	m.text("transpose", "func(dst []float32, ldd int, src []float32, lds, rows, cols int)", ", by blocks of 8×8.")
	to, from := newGrid(ptr("dst"), integer("ldd")), newGrid(ptr("src"), integer("lds"))
	room, rows := integer("ldd"), integer("rows") // what is left of dst's columns, src's rows
	cols, err := Param("cols").Resolve()
	if err != nil {
		panic(err)
	}
	band, bandEnd := m.label("band"), m.label("bandend")
	Label(band)
	TESTQ(room, room)
	JLE(LabelRef(bandEnd))
	src, dst := GP64(), GP64()
	MOVQ(from.at, src)
	MOVQ(to.at, dst)
	left := GP64()
	MOVQ(cols.Addr, left)

	block, edge, stored, blockEnd := m.label("block"), m.label("edge"), m.label("stored"), m.label("blockend")
	Label(block)
	TESTQ(left, left)
	JLE(LabelRef(blockEnd))
	CMPQ(left, U8(8))
	JLT(LabelRef(edge))
	CMPQ(rows, U8(8))
	JLT(LabelRef(edge))
	var r []VecVirtual
	for _, at := range from.rows() {
		r = append(r, m.move(at))
	}
	r = m.turn(r)
	for i, at := range to.rows() {
		VMOVUPS(r[i], at)
	}
	JMP(LabelRef(stored))

	Label(edge)
	loaded := m.label("loaded")
	there := m.below(m.atMost(left))
	r = nil
	for range 8 {
		r = append(r, m.zero())
	}
	for i, at := range from.rows() {
		CMPQ(rows, U8(i))
		JLE(LabelRef(loaded))
		VMASKMOVPS(at, there.reg, r[i])
	}
	Label(loaded)
	r = m.turn(r)
	fits := m.below(m.atMost(room))
	for i, at := range to.rows() {
		CMPQ(left, U8(i))
		JLE(LabelRef(stored))
		m.store(r[i], at, fits)
	}

	Label(stored)
	ADDQ(U8(32), from.at)
	LEAQ(Mem{Base: to.at, Index: to.ld, Scale: 8}, to.at)
	SUBQ(U8(8), left)
	JMP(LabelRef(block))
	Label(blockEnd)
	LEAQ(Mem{Base: src, Index: from.ld, Scale: 8}, from.at)
	LEAQ(Mem{Base: dst, Disp: 32}, to.at)
	SUBQ(U8(8), rows)
	SUBQ(U8(8), room)
	JMP(LabelRef(band))
	Label(bandEnd)
	ret()
}

// atMost returns n, or the number of lanes where that is less.
func (m *isa) atMost(n Register) Register {
	room, most := GP64(), GP64()
	MOVQ(n, room)
	MOVQ(U32(uint32(m.w)), most)
	CMPQ(room, most)
	CMOVQGT(most, room)
	return room
}
