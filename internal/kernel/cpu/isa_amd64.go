package cpu

import "golang.org/x/sys/cpu"

// avx512 and avx2 take every primitive from assembly; checked stands between a caller's shapes and
// it.
var avx512 = checked(primitives{
	name: "avx512", gemm: gemmAVX512, peak: peakAVX512,
	norm: normAVX512, normGrad: normGradAVX512, glu: gluAVX512, gluGrad: gluGradAVX512,
	gelu: geluAVX512, geluGrad: geluGradAVX512, exp: expAVX512,
	distances: distancesAVX512, softmaxBias: softmaxBiasAVX512, softmaxBiasGrad: softmaxBiasGradAVX512,
	softmaxMask: softmaxMaskAVX512, softmaxGrad: softmaxGradAVX512,
	softmaxCausal: softmaxCausalAVX512, softmaxCausalGrad: softmaxCausalGradAVX512, rowDots: rowDotsAVX512, keep: keepAVX512, drop: dropAVX512,
	pointer: pointerAVX512, pointerGrad: pointerGradAVX512,
	query: queryAVX512, transpose: transposeAVX2, colSum: colSumAVX512, add: addAVX512, add4: add4AVX512,
	sumSquares: sumSquaresAVX512, adamw: spread(adamwAVX512), scale: scaleAVX512, momentum: momentumAVX512, descend: descendAVX512,
})

var avx2 = checked(primitives{
	name: "avx2", gemm: gemmAVX2, peak: peakAVX2,
	norm: normAVX2, normGrad: normGradAVX2, glu: gluAVX2, gluGrad: gluGradAVX2,
	gelu: geluAVX2, geluGrad: geluGradAVX2, exp: expAVX2,
	distances: distancesAVX2, softmaxBias: softmaxBiasAVX2, softmaxBiasGrad: softmaxBiasGradAVX2,
	softmaxMask: softmaxMaskAVX2, softmaxGrad: softmaxGradAVX2,
	softmaxCausal: softmaxCausalAVX2, softmaxCausalGrad: softmaxCausalGradAVX2, rowDots: rowDotsAVX2, keep: keepAVX2, drop: dropAVX2,
	pointer: pointerAVX2, pointerGrad: pointerGradAVX2,
	query: queryAVX2, transpose: transposeAVX2, colSum: colSumAVX2, add: addAVX2, add4: add4AVX2,
	sumSquares: sumSquaresAVX2, adamw: spread(adamwAVX2), scale: scaleAVX2, momentum: momentumAVX2, descend: descendAVX2,
})

// sse takes products from assembly and the rest from plain Go: in tiny_1's step products were 94 %
// of plain Go's time.
var sse = func() primitives {
	p := plain
	p.name, p.gemm, p.peak = "sse", gemmSSE, peakSSE
	return checked(p)
}()

// vectorSets returns the tables this processor and its operating system support.
func vectorSets() []*primitives {
	var out []*primitives
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasFMA {
		out = append(out, &avx512)
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		out = append(out, &avx2)
	}
	return append(out, &sse)
}
