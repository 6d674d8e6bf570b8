package optimizer

import (
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
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
func byTiles(t *isa.TileSet) bool { return t != nil && t.Muon }

// needMuon is the scratch of a block: X, the next X, D and its square; by tiles X, A and the two
// operands of a product.
func needMuon(t *isa.TileSet, side int) int {
	if byTiles(t) {
		return 2*side*side + 2*isa.TileFloats(side, side) + t.Scratch(side)
	}
	return 4*side*side + isa.GemmScratch
}

// muon updates one block; w.adam has the rate and the clip factor.
func (u *update) muon(w *run.Worker, b kernel.Block) {
	n, st, a := u.o.Side, u.r.Sets[0], &w.Adam
	x, spare := w.Scratch[:n*n], w.Scratch[n*n:]
	for r := range n {
		at := b.Offset + r*b.Stride
		w.Prims.Momentum(x[r*n:][:n], st.M[at:][:n], u.r.Piece.Grad[at:][:n], kernel.MuonMomentum, a.Scale)
	}
	w.Prims.Scale(x, float32(muonGamma/(math.Sqrt(w.Prims.SumSquares(x))+kernel.MuonEps)))
	if byTiles(w.Tiles) {
		tiled(w, x, n, spare)
	} else {
		x = square(w, x, n, spare)
	}
	step := float32(u.o.MuonStep() / muonGamma)
	for r := range n {
		w.Prims.Descend(st.Weights[b.Offset+r*b.Stride:][:n], x[r*n:][:n], a.LR, step, a.Decay)
	}
}

// square makes the rounds in fp32, each completed to a square, and returns where the last left X.
// With D = A + β·I:
//
//	X·(D² + (a-β²)·I)
func square(w *run.Worker, x []float32, n int, spare []float32) []float32 {
	next, d, square := spare[:n*n], spare[n*n:][:n*n], spare[2*n*n:][:n*n]
	plain := isa.GemmArgs{M: n, N: n, K: n, LDC: n, ARS: n, AKS: 1, BKS: n, BPS: isa.Panel, Scratch: isa.Ptr(spare[3*n*n:])}
	turned := plain
	turned.ARS, turned.AKS = 1, n
	for range kernel.MuonRounds {
		symmetric(w, turned, d, x, x)
		diagonal(d, n, float32(muonBeta))
		symmetric(w, plain, square, d, d)
		diagonal(square, n, float32(muonRest))
		plain.C, plain.A, plain.B = isa.Ptr(next), isa.Ptr(x), isa.Ptr(square)
		w.Product(plain)
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
func tiled(w *run.Worker, x []float32, n int, spare []float32) {
	t, size := w.Tiles, isa.TileFloats(n, n)
	d, left, right := spare[:n*n], spare[n*n:][:size], spare[n*n+size:][:size]
	w.Tile = isa.TileArgs{A: isa.Ptr(left), B: isa.Ptr(right), M: n, N: n, K: n, LDC: n, LDR: n, Scratch: isa.Ptr(spare[n*n+2*size:])}
	for range kernel.MuonRounds {
		t.Pack(isa.ColumnsOfA, left, x, n, n, n)
		t.Pack(isa.RowsOfB, right, x, n, n, n)
		w.Tile.C, w.Tile.R = isa.Ptr(d), nil
		t.Product(w.Prims, &w.Tile)
		t.Pack(isa.RowsOfA, left, d, n, n, n)
		diagonal(d, n, float32(2*muonBeta))
		t.Pack(isa.RowsOfB, right, d, n, n, n)
		t.Product(w.Prims, &w.Tile)
		t.Pack(isa.RowsOfA, left, x, n, n, n)
		t.Pack(isa.RowsOfB, right, d, n, n, n)
		w.Prims.Scale(x, kernel.MuonA)
		w.Tile.C, w.Tile.R = isa.Ptr(x), isa.Ptr(x)
		t.Product(w.Prims, &w.Tile)
	}
}

// symmetric is C = A·B by g's strides where C is known to be symmetric: its lower left quarter is
// copied.
func symmetric(w *run.Worker, g isa.GemmArgs, c, a, b []float32) {
	n, h := g.N, g.N/2
	g.M, g.C, g.A, g.B = h, isa.Ptr(c), isa.Ptr(a), isa.Ptr(b)
	w.Product(g)
	w.Prims.Transpose(c[h*n:], n, c[h:], n, h, n-h) // clears what follows in a row
	g.M, g.N, g.C, g.A, g.B = n-h, n-h, isa.Ptr(c[h*n+h:]), isa.Ptr(a[h*g.ARS:]), isa.Ptr(b[h:])
	w.Product(g)
}

// diagonal adds v to a matrix's diagonal.
func diagonal(a []float32, n int, v float32) {
	for i := 0; i < n*n; i += n + 1 {
		a[i] += v
	}
}
