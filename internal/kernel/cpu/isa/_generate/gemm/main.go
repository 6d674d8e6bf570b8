// Command gemm writes the assembly of the matrix product: tile loops for AVX-512, AVX2 and SSE2,
// the one-row loops, the copy of a panel, and the loops that measure the peak.
//
// What a reader could break: every tile variant must keep one FMA chain an element, in the order of
// l, starting from bias + R. That makes the bits of an element independent of the tile that
// computed it, of blocking over k, and of the instruction set, SSE2 apart (sse.go). The one-row
// loops use four chains instead, l mod 4, joined as (0+1)+(2+3).
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Byte offsets into the Go type tile; gemm_amd64.go holds the two to each other at compile time.
const (
	offC     = 0
	offA     = 8
	offB     = 16
	offBias  = 24
	offR     = 32
	offRows  = 40
	offTiles = 48
	offK     = 56
	offLdc   = 64
	offArs   = 72
	offAks   = 80
	offBks   = 88
	offLdr   = 96
	offMask  = 104
)

// The registers every loop shares. A tile's rows are reached from four pointers, three rows each.
var (
	args  = RDI
	pa    = []GPPhysical{R8, R9, R10, R11}
	ars   = R12
	aks   = R13
	pb    = RBX
	bks   = RDX
	count = RCX
	pc    = RSI
	ldc   = RAX
	tiles = R15
	tmp   = R14
)

func main() {
	for v := 1; v <= 4; v++ {
		wide.tileFunc(v, false)
		wide.tileFunc(v, true)
	}
	for v := 1; v <= 2; v++ {
		narrow.tileFunc(v, false)
		narrow.tileFunc(v, true)
	}
	for v := 1; v <= 4; v++ {
		wide.rowFunc(v)
	}
	for v := 1; v <= 2; v++ {
		narrow.rowFunc(v)
	}
	wide.copyFunc()
	narrow.copyFunc()
	wide.peakFunc()
	narrow.peakFunc()
	for v := 0; v <= 2; v++ {
		sseFunc(v)
	}
	ssePeak()
	Generate()
}

// field is the operand of a tile's field.
func field(off int) Mem { return Mem{Base: args, Disp: off} }

// row is the address of A at the tile's row i and the current l.
func row(i int) Mem {
	m := Mem{Base: pa[i/3]}
	if i%3 > 0 {
		m.Index, m.Scale = ars, uint8(i%3)
	}
	return m
}

// declare opens a function of one argument, a tile seen as words: the type itself cannot be loaded
// from its package, which does not compile until this assembly exists.
func declare(name string) {
	TEXT(name, NOSPLIT, "func(t *[14]uintptr)")
	Pragma("noescape")
}
