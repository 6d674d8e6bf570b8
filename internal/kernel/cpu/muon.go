package cpu

import (
	"math"

	"haul/internal/kernel"
)

// Muon's update of one block, by one worker alone: whichever takes it makes the same bits.
//
// What a reader could break: a pass over a block between two products costs as much as a quarter of
// one in fp32, and half of one by tiles. So that few are needed, X is kept times γ = C^(1/4), which
// makes the factor of A² one: with A = XᵀX, which has the same singular values as kernel.AdamW's
// X·Xᵀ, and β = B/(2·sqrt(C)), a round is X·(a·I + 2β·A + A²), and what is not a product of
// matrices is added to diagonals. See square, which needs no pass, and tiled, which needs one.

var (
	muonGamma = math.Sqrt(math.Sqrt(kernel.MuonC))
	muonBeta  = kernel.MuonB / (2 * math.Sqrt(kernel.MuonC))
	muonRest  = kernel.MuonA - muonBeta*muonBeta
)

// byTiles tells whether a block's products are in bf16: where that rounds without being faster,
// they are not.
func byTiles(t *tileSet) bool { return t != nil && t.muon }

// needMuon is the scratch of a block: X, the next X, D and its square; by tiles X, A and the two
// operands of a product.
func needMuon(t *tileSet, side int) int {
	if byTiles(t) {
		return 2*side*side + 2*tileFloats(side, side) + t.scratch(side)
	}
	return 4*side*side + gemmScratch
}

// muon updates one block; w.adam has the rate and the clip factor.
func (u *update) muon(w *worker, b kernel.Block) {
	n, st, a := u.o.Side, u.r.sets[0], &w.adam
	x, spare := w.scratch[:n*n], w.scratch[n*n:]
	for r := range n {
		at := b.Offset + r*b.Stride
		w.p.momentum(x[r*n:][:n], st.m[at:][:n], u.r.piece.grad[at:][:n], kernel.MuonMomentum, a.scale)
	}
	w.p.scale(x, float32(muonGamma/(math.Sqrt(w.p.sumSquares(x))+kernel.MuonEps)))
	if byTiles(w.tiles) {
		w.tiled(x, n, spare)
	} else {
		x = w.square(x, n, spare)
	}
	step := float32(u.o.MuonStep() / muonGamma)
	for r := range n {
		w.p.descend(st.weights[b.Offset+r*b.Stride:][:n], x[r*n:][:n], a.lr, step, a.decay)
	}
}

// square makes the rounds in fp32, each completed to a square, and returns where the last left X.
// With D = A + β·I:
//
//	X·(D² + (a-β²)·I)
func (w *worker) square(x []float32, n int, spare []float32) []float32 {
	next, d, square := spare[:n*n], spare[n*n:][:n*n], spare[2*n*n:][:n*n]
	plain := gemmArgs{m: n, n: n, k: n, ldc: n, ars: n, aks: 1, bks: n, bps: panel, scratch: ptr(spare[3*n*n:])}
	turned := plain
	turned.ars, turned.aks = 1, n
	for range kernel.MuonRounds {
		w.symmetric(turned, d, x, x)
		diagonal(d, n, float32(muonBeta))
		w.symmetric(plain, square, d, d)
		diagonal(square, n, float32(muonRest))
		plain.c, plain.a, plain.b = ptr(next), ptr(x), ptr(square)
		w.product(plain)
		x, next = next, x
	}
	return x
}

// tiled makes the rounds over x itself with products in bf16:
//
//	a·X + X·(A·(A + 2β·I))
//
// What a reader could break: a round multiplies small singular values by up to a, and with them
// what was rounded off X. So a·X is fp32, where the product's sums begin, and what X is rounded by
// as an operand is multiplied by A, which is nothing where singular values are small.
func (w *worker) tiled(x []float32, n int, spare []float32) {
	t, size := w.tiles, tileFloats(n, n)
	d, left, right := spare[:n*n], spare[n*n:][:size], spare[n*n+size:][:size]
	w.tile = tileArgs{a: ptr(left), b: ptr(right), m: n, n: n, k: n, ldc: n, ldr: n, scratch: ptr(spare[n*n+2*size:])}
	for range kernel.MuonRounds {
		t.pack(columnsOfA, left, x, n, n, n)
		t.pack(rowsOfB, right, x, n, n, n)
		w.tile.c, w.tile.r = ptr(d), nil
		t.product(w.p, &w.tile)
		t.pack(rowsOfA, left, d, n, n, n)
		diagonal(d, n, float32(2*muonBeta))
		t.pack(rowsOfB, right, d, n, n, n)
		t.product(w.p, &w.tile)
		t.pack(rowsOfA, left, x, n, n, n)
		t.pack(rowsOfB, right, d, n, n, n)
		w.p.scale(x, kernel.MuonA)
		w.tile.c, w.tile.r = ptr(x), ptr(x)
		t.product(w.p, &w.tile)
	}
}

// symmetric is C = A·B by g's strides where C is known to be symmetric: its lower left quarter is
// copied.
func (w *worker) symmetric(g gemmArgs, c, a, b []float32) {
	n, h := g.n, g.n/2
	g.m, g.c, g.a, g.b = h, ptr(c), ptr(a), ptr(b)
	w.product(g)
	w.p.transpose(c[h*n:], n, c[h:], n, h, n-h) // clears what follows in a row
	g.m, g.n, g.c, g.a, g.b = n-h, n-h, ptr(c[h*n+h:]), ptr(a[h*g.ars:]), ptr(b[h:])
	w.product(g)
}

// diagonal adds v to a matrix's diagonal.
func diagonal(a []float32, n int, v float32) {
	for i := 0; i < n*n; i += n + 1 {
		a[i] += v
	}
}
