package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const (
	philoxMul0  = 0xD2511F53
	philoxMul1  = 0xCD9E8D57
	shortRounds = 7 // rng.ShortRounds
)

var tables = map[string]Mem{}

// table is 64 bytes of constants, an element of size bytes for each index.
func table(name string, size int, element func(i int) uint32) Mem {
	t, ok := tables[name]
	if !ok {
		t = GLOBL("rows_"+name, attr.RODATA|attr.NOPTR)
		for i := range 64 / size {
			if size == 1 {
				DATA(i, U8(element(i)))
			} else {
				DATA(4*i, U32(element(i)))
			}
		}
		tables[name] = t
	}
	return t
}

// philox takes two streams of counters, in the low halves of 64-bit lanes, through the rounds.
func (m *isa) philox(streams *[2]vecs, count int, mul0, mul1 VecVirtual, rounds Register) {
	for r := range count {
		for s, c := range streams {
			p0, p1 := m.vec(), m.vec()
			VPMULUDQ(mul0, c[0], p0)
			VPMULUDQ(mul1, c[2], p1)
			c0, c2 := m.vec(), m.vec()
			VPSRLQ(U8(32), p1, c0)
			VPSRLQ(U8(32), p0, c2)
			m.xor3(Mem{Base: rounds, Disp: 8 * r}, c[1], c0)
			m.xor3(Mem{Base: rounds, Disp: 8*r + 4}, c[3], c2)
			streams[s] = vecs{c0, p1, c2, p0}
		}
	}
}

// keepMask emits keep, w groups at a time: the calls of even groups are one stream, in
// the low halves of its 64-bit lanes, those of odd groups the other.
func (m *isa) keepMask() {
	m.text("keep", "func(dst, draws, rounds []uint32, low, high, purpose, threshold uint32)", fmt.Sprintf(", for whole multiples of %d groups.", m.w))
	dst, draws, rounds, left := ptr("dst"), ptr("draws"), ptr("rounds"), length("draws")
	mul0, mul1 := m.broadcast(bits(philoxMul0)), m.broadcast(bits(philoxMul1))
	var odd Register
	if m.wide() {
		odd = K()
		ones := GP32()
		MOVL(U32(0xaaaa), ones)
		KMOVW(ones, odd)
	}
	loop, done := m.label("groups"), m.label("end")
	Label(loop)
	CMPQ(left, U8(m.w))
	JLT(LabelRef(done))
	even, second := m.move(Mem{Base: draws}), m.vec()
	VPSRLQ(U8(32), even, second)
	var streams [2]vecs
	for s, c2 := range []VecVirtual{even, second} {
		streams[s] = vecs{m.splat("low"), m.splat("high"), c2, m.splat("purpose")}
	}
	m.philox(&streams, shortRounds, mul0, mul1, rounds)
	words := streams[0]
	for k, high := range streams[1] {
		VPSLLQ(U8(32), high, high)
		if m.wide() {
			VPBLENDMD(high, words[k], odd, words[k])
		} else {
			VPBLENDD(U8(0xaa), high, words[k], words[k])
		}
	}
	threshold, keep := m.splat("threshold"), m.vec()
	VPCMPEQD(threshold.AsY(), threshold.AsY(), keep.AsY())
	if m.wide() {
		VPTERNLOGD(U8(0xff), keep, keep, keep)
	}
	for b := range 16 {
		r := words[b%4]
		switch b / 4 {
		case 0:
			r = m.rotated(r, 2)
		case 1:
			r = m.rotated(r, 3)
		case 2:
			r = m.rotated(r, 1)
			if other := m.rotated(words[(b+1)%4], 2); m.wide() {
				VPXORD(other, r, r)
			} else {
				VPXOR(other, r, r)
			}
		}
		bit := m.vec()
		VPSLLD(U8(31-b), threshold, bit) // on top
		if m.wide() {
			const either, both = 0xfc, 0xc0 // of keep and r, where the third is clear and where it is set
			VPSRAD(U8(31), bit, bit)
			VPTERNLOGD(U8(both&0xaa|either&0x55), bit, r, keep)
			continue
		}
		any := m.vec()
		VPOR(r, keep, any)
		VPAND(r, keep, keep)
		VBLENDVPS(bit, keep, any, keep)
	}
	VMOVUPS(keep, Mem{Base: dst})
	ADDQ(U8(4*m.w), draws)
	ADDQ(U8(4*m.w), dst)
	SUBQ(U8(m.w), left)
	JMP(LabelRef(loop))
	Label(done)
	ret()
}

// rotated has in bit c of a word what v has in bit c + 8·by.
func (m *isa) rotated(v VecVirtual, by int) VecVirtual {
	r := m.vec()
	if m.wide() {
		VPROLD(U8(32-8*by), v, r)
	} else {
		VPSHUFB(table(fmt.Sprintf("rotated%d", by), 1, func(i int) uint32 { return uint32(i%16&^3 | (i+by)&3) }), v, r)
	}
	return r
}

// xor3: v = v ^ a ^ the word at key, in every lane.
func (m *isa) xor3(key Mem, a, v VecVirtual) {
	if m.wide() {
		VPTERNLOGD_BCST(U8(0x96), key, a, v)
		return
	}
	k := m.vec()
	VPBROADCASTD(key, k)
	VPXOR(a, v, v)
	VPXOR(k, v, v)
}

// storeKept writes a bit for each 16 bits not below the threshold: bits 8k..8k+7 of a group are its
// eighth of words[k].
func (m *isa) storeKept(words vecs, threshold VecVirtual, dst Register) {
	VPBROADCASTW(threshold.AsX(), threshold) // for both halves of a lane
	if m.wide() {
		var x Register
		for k, w := range words {
			const notLess = 5
			lanes, g := K(), GP32()
			VPCMPUW(U8(notLess), threshold, w, lanes)
			KMOVD(lanes, g)
			if x == nil {
				x = XMM()
				VMOVD(g, x)
			} else {
				VPINSRD(U8(k), g, x, x)
			}
		}
		VPSHUFB(table("bytes4x4", 1, func(i int) uint32 { return uint32(i%16/4 + i%4*4) }), x, x)
		VMOVDQU(x, Mem{Base: dst})
		return
	}
	var halves []Register
	for k, w := range words {
		t := m.vec()
		VPMAXUW(threshold, w, t)
		VPCMPEQW(t, w, w)
		if k%2 == 1 {
			g := GP32()
			VPACKSSWB(w, words[k-1], w)
			VPMOVMSKB(w, g)
			halves = append(halves, g)
		}
	}
	a, b := GP32(), GP32()
	MOVWLZX(halves[0].(GPVirtual).As16(), a)
	MOVL(halves[1], b)
	SHLL(U8(16), b)
	ORL(b, a)
	MOVL(a, Mem{Base: dst})
	SHRL(U8(16), halves[0])
	ANDL(U32(0xffff0000), halves[1])
	ORL(halves[1], halves[0])
	MOVL(halves[0], Mem{Base: dst, Disp: 4})
}

func (m *isa) drop() {
	m.text("drop", "func(y, x, residual []float32, mask []uint32, rows, n, words int, scale float32)", ".")
	y, x, residual, k := ptr("y"), ptr("x"), ptr("residual"), m.maskOf("mask")
	rows, n, words, scale := integer("rows"), integer("n"), integer("words"), m.splat("scale")
	c, bytes := m.columns(n), bytesOf(n)
	SHLQ(U8(2), words)
	alone := m.label("alone")
	TESTQ(residual, residual)
	JZ(LabelRef(alone))
	m.rows(rows, func() {
		c.each(4, func(a at) {
			v := m.kept(k, a, a.load(x), scale)
			VADDPS(a.load(residual), v, v)
			a.store(v, y)
		})
	}, append(by(bytes, y, x, residual), by(words, k.row)...)...)
	ret()
	Label(alone)
	m.rows(rows, func() {
		c.each(4, func(a at) { a.store(m.kept(k, a, a.load(x), scale), y) })
	}, append(by(bytes, y, x), by(words, k.row)...)...)
	ret()
}

// kept returns v·scale where the mask has a bit, else zero.
func (m *isa) kept(k *mask, a at, v, scale VecVirtual) VecVirtual {
	l := k.allowed(a)
	if m.wide() {
		VMULPS_Z(scale, v, l.reg, v)
		return v
	}
	VMULPS(scale, v, v)
	VANDPS(l.reg, v, v)
	return v
}
