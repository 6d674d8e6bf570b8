package isa

// neon takes every primitive from assembly. Every arm64 processor that Go runs on has it, so
// nothing is asked of the processor.
var neon = checked(Primitives{
	Name: "neon", Gemm: gemmNEON, Peak: peakNEON,
	Norm: normNEON, NormGrad: normGradNEON, GLU: gluNEON, GLUGrad: gluGradNEON,
	GELU: geluNEON, GELUGrad: geluGradNEON, Exp: expNEON,
	Distances: distancesNEON, SoftmaxBias: softmaxBiasNEON, SoftmaxBiasGrad: softmaxBiasGradNEON,
	SoftmaxMask: softmaxMaskNEON, SoftmaxGrad: softmaxGradNEON,
	SoftmaxCausal: softmaxCausalNEON, SoftmaxCausalGrad: softmaxCausalGradNEON, RowDots: rowDotsNEON, Keep: keepNEON, Drop: dropNEON,
	Pointer: pointerNEON, PointerGrad: pointerGradNEON,
	Query: queryNEON, Transpose: transposeNEON, ColSum: colSumNEON, Add: addNEON, Add4: add4NEON,
	SumSquares: sumSquaresNEON, AdamW: spread(adamwNEON), Scale: scaleNEON, Momentum: momentumNEON, Descend: descendNEON,
})

func vectorSets() []*Primitives { return []*Primitives{&neon} }

// transposeNEON turns whole blocks of four by four by assembly and the edges here.
func transposeNEON(dst []float32, ldd int, src []float32, lds, rows, cols int) {
	r4, c4 := rows&^3, cols&^3
	if r4 > 0 && c4 > 0 {
		transposeBlocksNEON(dst, ldd, src, lds, r4, c4)
	} else {
		r4 = 0
	}
	for c := range cols {
		row := dst[c*ldd:][:ldd]
		from := r4
		if c >= c4 {
			from = 0
		}
		for r := from; r < rows; r++ {
			row[r] = src[r*lds+c]
		}
		clear(row[rows:])
	}
}
