// Package cpu runs Haul's ops on CPU cores. An op is a Go driver that walks a shard and calls
// primitives; a primitive is a tight loop that exists in plain Go and, where the processor allows,
// in AVX2 and AVX-512 assembly generated from _generate/.
//
// What a reader could break: a primitive must give the same bits for the same arguments whatever
// the worker, the shard or the alignment, because runs are bit-identical for any number of
// cores. Padding columns (n <= j < ld) of matrices with padded rows are written as zero by whoever
// produces the matrix and may be read by whoever consumes it.
package cpu

import "unsafe"

// panel is the width, in columns, of a packed panel of weights; every instruction set shares it.
const panel = 64

// gemmArgs describes one product for the primitive gemm:
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
// A caller whose B is row-major may lend scratch, gemmScratch floats: rows a power of two apart
// share few sets of L1, so a product with many rows reads B's panels from a copy there. The bits
// are the same.
type gemmArgs struct {
	c, a, b, bias, r unsafe.Pointer
	m, n, k          int
	ldc, ars, aks    int
	bks, bps, ldr    int
	scratch          unsafe.Pointer
}

// copyDepth is the longest run of k whose panel of B is copied at once: it takes half of L1.
const (
	copyDepth   = 96
	gemmScratch = copyDepth * panel
)

// adamArgs holds what one pass of AdamW needs beside its buffers. The gradient is multiplied by
// scale (the clip factor over the number of lanes' mean) before use.
type adamArgs struct {
	lr, beta1, beta2, eps, decay float32
	correct1, correct2           float32 // 1/(1-β1^t), 1/(1-β2^t)
	scale                        float32
}

// primitives is one instruction set's table. Every entry documents its loop in primitives_go.go.
type primitives struct {
	name string
	gemm func(g *gemmArgs)
	// multiply-adds with nothing to wait for: what gemm is measured against
	peak func(rounds int) (flop float64)

	norm     func(y, mean, rstd, x, gamma, beta []float32, rows, d int, eps float32)
	normGrad func(dx, dgamma, dbeta, dy, x, mean, rstd, gamma []float32, rows, d int, accumulate bool)
	glu      func(y, g []float32, rows, w int)
	gluGrad  func(dg, dy, g []float32, rows, w int)
	gelu     func(y, x []float32)
	geluGrad func(dx, dy, x []float32)
	exp      func(y, x []float32)

	distances       func(dist, x, y []float32, n, ld int)
	softmaxBias     func(p, dist []float32, rows, n, ld int, scale, slope float32)
	softmaxBiasGrad func(dp, p, dist []float32, rows, n, ld int, scale float32) (dslope float32)
	softmaxMask     func(p []float32, mask []uint64, rows, n, ld, words int, scale float32)
	softmaxGrad     func(dp, p []float32, rows, n, ld int, scale float32)
	pointer         func(p, lp, th, ent, u []float32, mask []uint64, rows, n, ld, words int, scale, mult float32)
	pointerGrad     func(du, p, lp, th, ent, wa, we []float32, act []int32, rows, n, ld int, scale, mult float32)

	softmaxCausal     func(p, logSum []float32, first []int32, mask []uint16, rows, from, end, n, ld, words int, scale, keep float32)
	softmaxCausalGrad func(ds, p, logSum, dots []float32, first []int32, mask []uint16, rows, from, end, n, ld, words int, scale, keep float32)
	rowDots           func(out, a, b []float32, rows, n, ld int)
	keep              func(dst, draws, rounds []uint32, low, high, purpose, threshold uint32)
	drop              func(y, x, residual []float32, mask []uint32, rows, n, words int, scale float32)

	query      func(q, node, graph, load []float32, capacity float32)
	transpose  func(dst []float32, ldd int, src []float32, lds, rows, cols int)
	colSum     func(out, x []float32, rows, n, ld int, accumulate bool)
	add        func(y, x []float32)
	add4       func(y, a, b, c []float32)
	sumSquares func(x []float32) float64
	adamw      func(w, m, v, g []float32, a *adamArgs)
	scale      func(y []float32, by float32)
	momentum   func(x, m, g []float32, beta, scale float32)
	descend    func(w, x []float32, lr, step, decay float32)
}
