package reference

import (
	"math"

	"haul/internal/kernel"
)

// AdamW updates weights w and moments m, v from the reduced gradient, by Muon those in blocks, and
// the parts of state and metrics that belong to the optimizer.
func AdamW[F Float](w, m, v, grad []F, o *kernel.AdamW, c kernel.Control, state *kernel.State, metrics *kernel.Metrics) {
	var squares float64
	for _, g := range grad {
		squares += float64(g) * float64(g)
	}
	norm := math.Sqrt(squares)
	lr := float64(c.LearningRate) * schedule(o, float64(state.Step+1))
	metrics.GradNorm += norm
	if metrics.BadStep == 0 && (math.IsNaN(norm) || math.IsInf(norm, 0)) {
		metrics.BadStep = int64(state.Step) + 1
	}
	if metrics.BadStep != 0 {
		return
	}
	state.Step++
	state.Beta1T *= o.Beta1
	state.Beta2T *= o.Beta2
	scale := 1.0
	if o.MaxNorm > 0 && norm > float64(o.MaxNorm) {
		scale = float64(o.MaxNorm) / (norm + 1e-6)
	}
	beta1, beta2 := F(o.Beta1), F(o.Beta2)
	correct1, correct2 := F(1/(1-state.Beta1T)), F(1/(1-state.Beta2T))
	rest, blocks := [][2]int{{0, len(w)}}, []kernel.Block(nil)
	if o.Side > 0 {
		rest, blocks = o.Rest(), o.Blocks()
	}
	for _, run := range rest {
		for i := run[0]; i < run[1]; i++ {
			g := grad[i] * F(scale)
			m[i] = beta1*m[i] + (1-beta1)*g
			v[i] = beta2*v[i] + (1-beta2)*g*g
			w[i] -= F(lr) * (m[i]*correct1/(sqrt(v[i]*correct2)+F(o.Eps)) + F(o.Decay)*w[i])
		}
	}
	for _, b := range blocks {
		muon(w, m, grad, o, b, F(scale), F(lr))
	}
}

// muon updates one block.
func muon[F Float](w, m, grad []F, o *kernel.AdamW, b kernel.Block, scale, lr F) {
	n := o.Side
	x := make([]F, n*n)
	at := func(i int) int { return b.Offset + i/n*b.Stride + i%n }
	var squares float64
	for i := range x {
		g := grad[at(i)] * scale
		m[at(i)] = kernel.MuonMomentum*m[at(i)] + g
		x[i] = g + kernel.MuonMomentum*m[at(i)]
		squares += float64(x[i]) * float64(x[i])
	}
	norm := F(math.Sqrt(squares) + kernel.MuonEps)
	for i := range x {
		x[i] /= norm
	}
	for range kernel.MuonRounds {
		turned := make([]F, n*n)
		for i := range x {
			turned[i%n*n+i/n] = x[i]
		}
		a := times(x, turned, n)
		a2 := times(a, a, n)
		for i := range a {
			a[i] = kernel.MuonB*a[i] + kernel.MuonC*a2[i]
		}
		ax := times(a, x, n)
		for i := range x {
			x[i] = kernel.MuonA*x[i] + ax[i]
		}
	}
	for i := range x {
		w[at(i)] -= lr * (F(o.MuonStep())*x[i] + F(o.Decay)*w[at(i)])
	}
}

// times is the product of two square matrices.
func times[F Float](a, b []F, n int) []F {
	out := make([]F, n*n)
	for i := range n {
		row := out[i*n:][:n]
		for l, f := range a[i*n:][:n] {
			for j, v := range b[l*n:][:n] {
				row[j] += f * v
			}
		}
	}
	return out
}

// schedule is what the control block's learning rate is multiplied by at step t, counted from 1.
func schedule(o *kernel.AdamW, t float64) float64 {
	warmup, total, floor := float64(o.Warmup), float64(o.Total), float64(o.Floor)
	switch {
	case t <= warmup:
		return t / warmup
	case total > 0:
		return floor + (1-floor)*(1+math.Cos(math.Pi*(min(t, total)-warmup)/(total-warmup)))/2
	default:
		return 1
	}
}
