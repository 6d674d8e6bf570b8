package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A set is one instruction set: its vector registers and how it moves a vector whose columns end
// before the register does.
type set struct {
	name  string
	bytes int           // in a vector
	regs  []VecPhysical // all of them
	most  []int         // most[v] is the most rows of a tile v vectors wide
	load  func(m Mem, to VecPhysical)
	store func(from VecPhysical, m Mem)
	// mask readies the column mask; maskLoad and maskStore touch only the columns it names.
	mask      func()
	maskLoad  func(m Mem, to VecPhysical)
	maskStore func(from VecPhysical, m Mem)
	zero      func(to VecPhysical)
}

var wide = set{
	name:  "512",
	bytes: 64,
	regs: []VecPhysical{Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15,
		Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27, Z28, Z29, Z30, Z31},
	most:      []int{0, 12, 12, 8, 6},
	load:      func(m Mem, to VecPhysical) { VMOVUPS(m, to) },
	store:     func(from VecPhysical, m Mem) { VMOVUPS(from, m) },
	mask:      func() { KMOVW(field(offMask), K1) },
	maskLoad:  func(m Mem, to VecPhysical) { VMOVUPS_Z(m, K1, to) },
	maskStore: func(from VecPhysical, m Mem) { VMOVUPS(from, K1, m) },
	zero:      func(to VecPhysical) { VPXORD(to, to, to) },
}

var narrow = set{
	name:      "256",
	bytes:     32,
	regs:      []VecPhysical{Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15},
	most:      []int{0, 6, 6},
	load:      func(m Mem, to VecPhysical) { VMOVUPS(m, to) },
	store:     func(from VecPhysical, m Mem) { VMOVUPS(from, m) },
	mask:      func() { VPMOVSXBD(field(offMask), Y15) },
	maskLoad:  func(m Mem, to VecPhysical) { VMASKMOVPS(m, Y15, to) },
	maskStore: func(from VecPhysical, m Mem) { VMASKMOVPS(from, Y15, m) },
	zero:      func(to VecPhysical) { VXORPS(to, to, to) },
}

// A block is the register plan of one tile: rows × v accumulators, v vectors of B, then
// temporaries.
type block struct {
	set
	rows, v int
	masked  bool
}

func (t block) acc(i, j int) VecPhysical { return t.regs[i*t.v+j] }
func (t block) b(j int) VecPhysical      { return t.regs[t.rows*t.v+j] }

// broadcast rotates over the registers left, so that a load need not wait for the row before it.
// The last one is kept for the mask, which the narrow set holds in a vector.
func (t block) broadcast(i int) VecPhysical {
	first := t.rows*t.v + t.v
	left := len(t.regs) - first
	if t.masked {
		left--
	}
	return t.regs[first+i%left]
}

// loadCols moves vector j of the block's columns to register to, under the mask where it is the
// last.
func (t block) loadCols(m Mem, j int, to VecPhysical) {
	m = m.Offset(j * t.bytes)
	if t.masked && j == t.v-1 {
		t.maskLoad(m, to)
	} else {
		t.load(m, to)
	}
}

func (t block) storeCols(from VecPhysical, j int, m Mem) {
	m = m.Offset(j * t.bytes)
	if t.masked && j == t.v-1 {
		t.maskStore(from, m)
	} else {
		t.store(from, m)
	}
}

// fn is the Go name of a function of this set for v vectors.
func (s set) fn(kind string, v int, masked bool) string {
	n := fmt.Sprintf("%s%sx%d", kind, s.name, v)
	if masked {
		n += "Masked"
	}
	return n
}
