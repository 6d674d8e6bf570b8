package isa

import (
	"golang.org/x/sys/cpu"
)

// avx512 and avx2 take every primitive from assembly; checked stands between a caller's shapes and
// it.
var avx512 = checked(Primitives{
	Name: "avx512", Gemm: gemmAVX512, Peak: peakAVX512,
	Norm: normAVX512, NormGrad: normGradAVX512, GLU: gluAVX512, GLUGrad: gluGradAVX512,
	GELU: geluAVX512, GELUGrad: geluGradAVX512, Exp: expAVX512,
	Distances: distancesAVX512, SoftmaxBias: softmaxBiasAVX512, SoftmaxBiasGrad: softmaxBiasGradAVX512,
	SoftmaxMask: softmaxMaskAVX512, SoftmaxGrad: softmaxGradAVX512,
	SoftmaxCausal: softmaxCausalAVX512, SoftmaxCausalGrad: softmaxCausalGradAVX512, RowDots: rowDotsAVX512, Keep: keepAVX512, Drop: dropAVX512,
	Pointer: pointerAVX512, PointerGrad: pointerGradAVX512,
	Query: queryAVX512, Transpose: transposeAVX2, ColSum: colSumAVX512, Add: addAVX512, Add4: add4AVX512,
	SumSquares: sumSquaresAVX512, AdamW: spread(adamwAVX512), Scale: scaleAVX512, Momentum: momentumAVX512, Descend: descendAVX512,
})

var avx2 = checked(Primitives{
	Name: "avx2", Gemm: gemmAVX2, Peak: peakAVX2,
	Norm: normAVX2, NormGrad: normGradAVX2, GLU: gluAVX2, GLUGrad: gluGradAVX2,
	GELU: geluAVX2, GELUGrad: geluGradAVX2, Exp: expAVX2,
	Distances: distancesAVX2, SoftmaxBias: softmaxBiasAVX2, SoftmaxBiasGrad: softmaxBiasGradAVX2,
	SoftmaxMask: softmaxMaskAVX2, SoftmaxGrad: softmaxGradAVX2,
	SoftmaxCausal: softmaxCausalAVX2, SoftmaxCausalGrad: softmaxCausalGradAVX2, RowDots: rowDotsAVX2, Keep: keepAVX2, Drop: dropAVX2,
	Pointer: pointerAVX2, PointerGrad: pointerGradAVX2,
	Query: queryAVX2, Transpose: transposeAVX2, ColSum: colSumAVX2, Add: addAVX2, Add4: add4AVX2,
	SumSquares: sumSquaresAVX2, AdamW: spread(adamwAVX2), Scale: scaleAVX2, Momentum: momentumAVX2, Descend: descendAVX2,
})

// sse takes products from assembly and the rest from plain Go: in tiny_1's step products were 94 %
// of plain Go's time.
var sse = func() Primitives {
	p := Plain
	p.Name, p.Gemm, p.Peak = "sse", gemmSSE, peakSSE
	return checked(p)
}()

// vectorSets returns the tables this processor and its operating system support.
func vectorSets() []*Primitives {
	var out []*Primitives
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasFMA {
		out = append(out, &avx512)
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		out = append(out, &avx2)
	}
	return append(out, &sse)
}
