package cpu

// neon takes every primitive from assembly. Every arm64 processor that Go runs on has it, so
// nothing is asked of the processor.
var neon = checked(primitives{
	name: "neon", gemm: gemmNEON, peak: peakNEON,
	norm: normNEON, normGrad: normGradNEON, glu: gluNEON, gluGrad: gluGradNEON,
	gelu: geluNEON, geluGrad: geluGradNEON, exp: expNEON,
	distances: distancesNEON, softmaxBias: softmaxBiasNEON, softmaxBiasGrad: softmaxBiasGradNEON,
	softmaxMask: softmaxMaskNEON, softmaxGrad: softmaxGradNEON,
	softmaxCausal: softmaxCausalNEON, softmaxCausalGrad: softmaxCausalGradNEON, rowDots: rowDotsNEON, keep: keepNEON, drop: dropNEON,
	pointer: pointerNEON, pointerGrad: pointerGradNEON,
	query: queryNEON, transpose: transposeNEON, colSum: colSumNEON, add: addNEON, add4: add4NEON,
	sumSquares: sumSquaresNEON, adamw: spread(adamwNEON), scale: scaleNEON, momentum: momentumNEON, descend: descendNEON,
})

func vectorSets() []*primitives { return []*primitives{&neon} }

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
