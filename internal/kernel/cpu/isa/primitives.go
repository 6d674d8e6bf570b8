// Package isa holds the primitives of every instruction set: tight loops in plain Go and, where the
// processor allows, in assembly generated from _generate/, and products of matrices in fp32 and
// bf16.
//
// What a reader could break: a primitive must give the same bits for the same arguments whatever
// the worker, the shard or the alignment, because runs are bit-identical for any number of
// cores. Padding columns (n <= j < ld) of matrices with padded rows are written as zero by whoever
// produces the matrix and may be read by whoever consumes it.
package isa

import "unsafe"

// Panel is the width, in columns, of a packed panel of weights; every instruction set shares it.
const Panel = 64

// GemmArgs describes one product for the primitive gemm:
//
//	for i < m, j < n:
//	    C[i*ldc+j] = sum over l < k of A[i*ars+l*aks] * B[(j/panel)*bps + l*bks + j%panel]
//	                 + bias[j] (where bias is not nil) + R[i*ldr+j] (where r is not nil)
//
// The strides of A serve row-major (ars=ld, aks=1) and transposed (ars=1, aks=ld) operands; bps and
// bks serve packed weights (bks=panel, bps=k*panel) and plain row-major matrices (bks=ld,
// bps=panel). R may be C itself, to accumulate. Strides count elements. n need not be a multiple of
// anything; columns from n on are neither read nor written.
//
// A caller whose B is row-major may lend scratch, GemmScratch floats: rows a power of two apart
// share few sets of L1, so a product with many rows reads B's panels from a copy there. The bits
// are the same.
type GemmArgs struct {
	C, A, B, Bias, R unsafe.Pointer
	M, N, K          int
	LDC, ARS, AKS    int
	BKS, BPS, LDR    int
	Scratch          unsafe.Pointer
}

// copyDepth is the longest run of k whose panel of B is copied at once: it takes half of L1.
const (
	copyDepth   = 96
	GemmScratch = copyDepth * Panel
)

// AdamArgs holds what one pass of AdamW needs beside its buffers. The gradient is multiplied by
// scale (the clip factor over the number of lanes' mean) before use.
type AdamArgs struct {
	LR, Beta1, Beta2, Eps, Decay float32
	Correct1, Correct2           float32 // 1/(1-β1^t), 1/(1-β2^t)
	Scale                        float32
}

// Primitives is one instruction set's table. Every entry documents its loop in primitives_go.go.
type Primitives struct {
	Name string
	Gemm func(g *GemmArgs)
	// multiply-adds with nothing to wait for: what gemm is measured against
	Peak func(rounds int) (flop float64)

	Norm     func(y, mean, rstd, x, gamma, beta []float32, rows, d int, eps float32)
	NormGrad func(dx, dgamma, dbeta, dy, x, mean, rstd, gamma []float32, rows, d int, accumulate bool)
	GLU      func(y, g []float32, rows, w int)
	GLUGrad  func(dg, dy, g []float32, rows, w int)
	GELU     func(y, x []float32)
	GELUGrad func(dx, dy, x []float32)
	Exp      func(y, x []float32)

	Distances       func(dist, x, y []float32, n, ld int)
	SoftmaxBias     func(p, dist []float32, rows, n, ld int, scale, slope float32)
	SoftmaxBiasGrad func(dp, p, dist []float32, rows, n, ld int, scale float32) (dslope float32)
	SoftmaxMask     func(p []float32, mask []uint64, rows, n, ld, words int, scale float32)
	SoftmaxGrad     func(dp, p []float32, rows, n, ld int, scale float32)
	Pointer         func(p, lp, th, ent, u []float32, mask []uint64, rows, n, ld, words int, scale, mult float32)
	PointerGrad     func(du, p, lp, th, ent, wa, we []float32, act []int32, rows, n, ld int, scale, mult float32)

	SoftmaxCausal     func(p, logSum []float32, first []int32, mask []uint16, rows, from, end, n, ld, words int, scale, keep float32)
	SoftmaxCausalGrad func(ds, p, logSum, dots []float32, first []int32, mask []uint16, rows, from, end, n, ld, words int, scale, keep float32)
	RowDots           func(out, a, b []float32, rows, n, ld int)
	Keep              func(dst, draws, rounds []uint32, low, high, purpose, threshold uint32)
	Drop              func(y, x, residual []float32, mask []uint32, rows, n, words int, scale float32)

	Query      func(q, node, graph, load []float32, capacity float32)
	Transpose  func(dst []float32, ldd int, src []float32, lds, rows, cols int)
	ColSum     func(out, x []float32, rows, n, ld int, accumulate bool)
	Add        func(y, x []float32)
	Add4       func(y, a, b, c []float32)
	SumSquares func(x []float32) float64
	AdamW      func(w, m, v, g []float32, a *AdamArgs)
	Scale      func(y []float32, by float32)
	Momentum   func(x, m, g []float32, beta, scale float32)
	Descend    func(w, x []float32, lr, step, decay float32)
}

// Ptr is where a slice begins.
func Ptr(f []float32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(f)) }

// Unsigned views integers as bits.
func Unsigned(i []int32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(i))), len(i))
}

// Ints views floats as integers of the same width.
func Ints(f []float32) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(f))), len(f))
}
