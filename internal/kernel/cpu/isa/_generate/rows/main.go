// Command rows writes the assembly of every primitive but the matrix product, for AVX-512 and AVX2.
//
// What a reader could break: one emitter serves both sets, so a line of a family file must not know
// the vector's width but through *isa. A primitive reads and writes only the elements its plain-Go
// loop touches: the last, partial vector of a row goes through a lane mask, never past the slice.
// No instruction depends on alignment, and reductions join lanes in one fixed order, so that the
// same arguments give the same bits.
package main

import (
	. "github.com/mmcloughlin/avo/build"
)

func main() {
	avx512, avx2 := &isa{suffix: "AVX512", w: 16}, &isa{suffix: "AVX2", w: 8}
	for _, m := range []*isa{avx512, avx2} {
		m.norm()
		m.normGrad()
		m.glu()
		m.gluGrad()
		m.gelu()
		m.geluGrad()
		m.expFlat()
		m.distances()
		m.softmaxBias()
		m.softmaxMask()
		m.softmaxBiasGrad()
		m.softmaxGrad()
		m.softmaxCausal()
		m.softmaxCausalGrad()
		m.rowDots()
		m.keepMask()
		m.drop()
		m.pointer()
		m.pointerGrad()
		m.query()
		m.colSum()
		m.add()
		m.add4()
		m.sumSquares()
		m.adamw()
		m.scale()
		m.momentum()
		m.descend()
	}
	avx512.geluNear()
	avx512.geluGradNear()
	avx2.transpose()
	Generate()
}
