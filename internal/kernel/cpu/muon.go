package cpu

import (
	"math"

	"haul/internal/kernel"
)

// Muon's update of one block, by one worker alone: whichever takes it makes the same bits.
//
// What a reader could break: no pass over a block may stand between two products, or it costs as much as a quarter of one. So that none is needed, X is
// kept times γ = C^(1/4), which makes the factor of A² one, and a round is completed to a square. With A = XᵀX, which has the same
// singular values as kernel.AdamW's X·Xᵀ, D = A + β·I and β = B/(2·sqrt(C)):
//
//	X·(a·I + B/sqrt(C)·A + A²) = X·(D² + (a-β²)·I)
//
// whose two additions are to diagonals.

var (
	muonGamma = math.Sqrt(math.Sqrt(kernel.MuonC))
	muonBeta  = kernel.MuonB / (2 * math.Sqrt(kernel.MuonC))
	muonRest  = kernel.MuonA - muonBeta*muonBeta
)

// needMuon is the scratch of a block: X, the next X, D and its square.
func needMuon(side int) int { return 4*side*side + gemmScratch }

// muon updates one block; w.adam has the rate and the clip factor.
func (u *update) muon(w *worker, b kernel.Block) {
	n, st, a := u.o.Side, u.r.sets[0], &w.adam
	cut := func(i int) []float32 { return w.scratch[i*n*n:][:n*n] }
	x, next, d, square := cut(0), cut(1), cut(2), cut(3)
	spare := w.scratch[4*n*n:]
	for r := range n {
		at := b.Offset + r*b.Stride
		m, g, to := st.m[at:][:n], u.r.piece.grad[at:][:n], x[r*n:][:n]
		for i := range to {
			gi := g[i] * a.scale
			mi := kernel.MuonMomentum*m[i] + gi
			m[i], to[i] = mi, gi+kernel.MuonMomentum*mi
		}
	}
	k := float32(muonGamma / (math.Sqrt(w.p.sumSquares(x)) + kernel.MuonEps))
	for i := range x {
		x[i] *= k
	}
	plain := gemmArgs{m: n, n: n, k: n, ldc: n, ars: n, aks: 1, bks: n, bps: panel, scratch: ptr(spare)}
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
	step := float32(u.o.MuonStep() / muonGamma)
	for r := range n {
		weights, from := st.weights[b.Offset+r*b.Stride:][:n], x[r*n:][:n]
		for i, v := range weights {
			weights[i] = v - a.lr*(step*from[i]+a.decay*v)
		}
	}
}

// symmetric is C = A·B by g's strides where C is known to be symmetric: its lower left quarter is copied.
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
