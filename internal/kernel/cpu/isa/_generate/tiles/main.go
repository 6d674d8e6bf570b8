// Command tiles writes the assembly of products in bf16: tile loops for AMX, dot-product loops for
// AVX512_BF16, the packing of fp32 matrices to bf16 tiles that both read, and the tile loop that
// measures the peak.
//
// What a reader could break: Go's assembler knows none of these instructions, so encode.go spells
// them as bytes, and neither vet nor the assembler sees what they touch. Tiles are configured at
// the start of a function and released before it returns: no tile outlives a call, where a switch
// of threads could meet it.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Byte offsets into the Go type tileGrid; tiles_amd64.go holds the two to each other at compile
// time.
const (
	offConfig = 0
	offC      = 8
	offA      = 16
	offB      = 24
	offStart  = 32
	offRows   = 40
	offCols   = 48
	offK      = 56
	offLdc    = 64
	offLds    = 72
	offMask   = 80
	offDepth  = 88
	offStrip  = 96
	offShape  = 104
	gridBytes = 112
)

// tileBytes is a packed tile: sixteen rows of 64 bytes.
const tileBytes = 1024

var args = RDI

// field is the operand of a grid's field.
func field(off int) Mem { return Mem{Base: args, Disp: off} }

// declare opens a function of one argument, a grid seen as words: the type itself cannot be loaded
// from its package, which does not compile until this assembly exists.
func declare(name string) {
	TEXT(name, NOSPLIT, "func(t *[14]uintptr)")
	Pragma("noescape")
	Load(Param("t"), args)
}

func main() {
	gridsFunc()
	peakFunc()
	for _, v := range [][2]int{{8, 2}, {8, 1}, {4, 2}, {4, 1}, {1, 2}, {1, 1}} {
		dotsFunc(v[0], v[1])
	}
	for _, pairs := range []bool{false, true} {
		for _, turned := range []bool{false, true} {
			packFunc(pairs, turned)
		}
	}
	weaveFunc()
	biasFunc()
	headFunc()
	headGradFunc()
	Generate()
}
