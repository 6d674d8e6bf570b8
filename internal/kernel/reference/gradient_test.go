package reference

import (
	"math"
	"math/rand/v2"
	"testing"

	"haul/internal/kernel"
)

// operand is an input that is moved, and the gradient that an op claims for it.
type operand struct {
	name     string
	at, grad []float64
}

// differentiate compares claimed gradients with central differences of loss. With h = 1e-5 the
// difference is off by h²·f‴/6 ≈ 1e-11 and by rounding, 2⁻⁵³·f/h ≈ 1e-11·f, for functions of order
// one to ten: a hundredth of the bound.
func differentiate(t *testing.T, loss func() float64, operands ...operand) {
	t.Helper()
	const h, bound = 1e-5, 1e-8
	for _, o := range operands {
		size := 0.0
		for i, was := range o.at {
			o.at[i] = was + h
			up := loss()
			o.at[i] = was - h
			down := loss()
			o.at[i] = was
			want := (up - down) / (2 * h)
			size = max(size, math.Abs(want))
			if math.Abs(o.grad[i]-want) > bound*(1+math.Abs(want)) {
				t.Errorf("d%s[%d] = %v, difference says %v", o.name, i, o.grad[i], want)
				return
			}
		}
		if size == 0 {
			t.Errorf("%s: the loss does not depend on it", o.name)
		}
	}
}

var source = rand.New(rand.NewPCG(5, 6))

func vector(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = source.NormFloat64()
	}
	return v
}

func random(rows, cols int) Matrix[float64] {
	return Matrix[float64]{vector(rows * cols), rows, cols, cols}
}

func zeros(rows, cols int) Matrix[float64] {
	return Matrix[float64]{make([]float64, rows*cols), rows, cols, cols}
}

func TestLinearGradient(t *testing.T) {
	x, w, bias, residual, weigh := random(4, 3), random(5, 3), vector(5), random(4, 5), random(4, 5)
	y, dx, dw, dbias := zeros(4, 5), random(4, 3), zeros(5, 3), make([]float64, 5)
	LinearGradX(dx, weigh, w, Matrix[float64]{}, false)
	LinearGradW(dw, weigh, x)
	LinearGradBias(dbias, weigh)
	differentiate(t, func() float64 {
		Linear(y, Matrix[float64]{}, x, w, bias, residual, kernel.Drop{}, 0)
		return dot(y.Data, weigh.Data)
	}, operand{"x", x.Data, dx.Data}, operand{"w", w.Data, dw.Data}, operand{"bias", bias, dbias}, operand{"residual", residual.Data, weigh.Data})
}

func TestNormGradient(t *testing.T) {
	x, gamma, beta, weigh := random(3, 6), vector(6), vector(6), random(3, 6)
	y, dx, dgamma, dbeta := zeros(3, 6), zeros(3, 6), make([]float64, 6), make([]float64, 6)
	mean, rstd := make([]float64, 3), make([]float64, 3)
	loss := func() float64 {
		Norm(y, mean, rstd, x, gamma, beta, kernel.NormEps)
		return dot(y.Data, weigh.Data)
	}
	loss()
	NormGrad(dx, dgamma, dbeta, weigh, x, mean, rstd, gamma, false)
	differentiate(t, loss, operand{"x", x.Data, dx.Data}, operand{"gamma", gamma, dgamma}, operand{"beta", beta, dbeta})
}

func TestGLUGradient(t *testing.T) {
	g, weigh, y, dg := random(3, 8), random(3, 4), zeros(3, 4), zeros(3, 8)
	GLUGrad(dg, weigh, g)
	differentiate(t, func() float64 { GLU(y, g); return dot(y.Data, weigh.Data) }, operand{"g", g.Data, dg.Data})
}

func TestMeanNodesGradient(t *testing.T) {
	x, weigh, y, dx := random(6, 4), random(2, 4), zeros(2, 4), zeros(6, 4)
	MeanNodesGrad(dx, weigh, false)
	differentiate(t, func() float64 { MeanNodes(y, x); return dot(y.Data, weigh.Data) }, operand{"x", x.Data, dx.Data})
}

func TestDropoutGradient(t *testing.T) {
	o := kernel.Drop{Rate: 0.4, Site: 2, Nodes: 3, Seed: 1}
	x, residual, weigh, y, dx := random(6, 5), random(6, 5), random(6, 5), zeros(6, 5), zeros(6, 5)
	Dropout(dx, weigh, Matrix[float64]{}, o, 9)
	differentiate(t, func() float64 {
		Dropout(y, x, residual, o, 9)
		return dot(y.Data, weigh.Data)
	}, operand{"x", x.Data, dx.Data}, operand{"residual", residual.Data, weigh.Data})
}

func TestAttentionGradient(t *testing.T) {
	const n, d, heads = 5, 6, 3
	qkv, slope, posX, posY, weigh := random(n, 3*d), vector(heads), vector(n), vector(n), random(n, d)
	y, p, dqkv, dslope := zeros(n, d), zeros(heads*n, kernel.Pad(n)), random(n, 3*d), make([]float64, heads)
	loss := func() float64 {
		Attention(y, p, qkv, posX, posY, slope)
		return dot(y.Data, weigh.Data)
	}
	loss()
	AttentionGrad(dqkv, dslope, weigh, p, qkv, posX, posY)
	differentiate(t, loss, operand{"qkv", qkv.Data, dqkv.Data}, operand{"slope", slope, dslope})
}

func TestGraphAttentionGradient(t *testing.T) {
	const n, d, heads, leak = 5, 6, 3, 0.2
	v, score, far, posX, posY, weigh := random(n, d), random(n, 2*heads), random(n, heads), vector(n), vector(n), random(n, d)
	y, p, dv, dscore, dfar := zeros(n, d), zeros(heads*n, kernel.Pad(n)), random(n, d), random(n, 2*heads), random(n, heads)
	loss := func() float64 {
		GraphAttention(y, p, v, score, far, posX, posY, leak)
		return dot(y.Data, weigh.Data)
	}
	loss()
	above := 0
	for i := range n * n * heads {
		if edge(score, far, posX, posY, i%heads, i/heads%n, i/heads/n) > 0 {
			above++
		}
	}
	if above == 0 || above == n*n*heads {
		t.Fatalf("%d of %d scores are above 0: both sides of leaky are wanted", above, n*n*heads)
	}
	GraphAttentionGrad(dv, dscore, dfar, weigh, p, v, score, far, posX, posY, leak)
	differentiate(t, loss, operand{"v", v.Data, dv.Data}, operand{"score", score.Data, dscore.Data}, operand{"far", far.Data, dfar.Data})
}

func TestRolloutGradient(t *testing.T) {
	const n, width, starts, entropy, weight = 6, 4, 3, 0.7, 0.5
	d := &Decoder[float64]{Proj: random(n, 3*width), Pointer: random(n, width), Graph: vector(width), Context: vector(width),
		PosX: vector(n), PosY: vector(n), Nodes: []int32{0, 3, 5, 2, 4, 1}, Heads: 2, Rules: kernel.Rules{Capacity: 8}, Temperature: 1.4}
	for _, c := range []struct{ forced, viewed, near, pairs bool }{
		{}, {forced: true, near: true}, {viewed: true, near: true}, {pairs: true}, {forced: true, near: true, pairs: true}, {viewed: true, near: true, pairs: true},
	} {
		if d.Near = 0; c.near {
			d.Near = 0.4
		}
		if c.pairs {
			d.Pair, d.PairContext = random(n, 2*width), vector(width)
		}
		r := Routes[float64]{Steps: make([]int32, starts), Length: make([]float64, starts), LogProb: make([]float64, starts), Entropy: make([]float64, starts)}
		for range starts {
			r.Actions = append(r.Actions, make([]int32, 2*n))
		}
		o := &kernel.Rollout{Choice: kernel.Sample, Forced: c.forced, Viewed: c.viewed, Seed: 3, Purpose: 6}
		Rollout(r, d, o, 0)
		o.Choice = kernel.Replay
		adv := vector(starts)
		g := DecoderGrad[float64]{Proj: zeros(n, 3*width), Pointer: zeros(n, width), Graph: make([]float64, width), Context: make([]float64, width),
			Pair: zeros(n, 2*width), PairContext: make([]float64, width)}
		RolloutGrad(g, d, r.Actions, r.Steps, adv, &kernel.RolloutGrad{Weight: weight, Forced: c.forced, Viewed: c.viewed}, entropy)
		operands := []operand{{"proj", d.Proj.Data, g.Proj.Data}, {"pointer", d.Pointer.Data, g.Pointer.Data}, {"graph", d.Graph, g.Graph},
			{"load", d.Context, g.Context}}
		if c.pairs {
			operands = append(operands, operand{"pair", d.Pair.Data, g.Pair.Data}, operand{"pair load", d.PairContext, g.PairContext})
		}
		differentiate(t, func() float64 {
			Rollout(r, d, o, 0)
			loss := dot(adv, r.LogProb)
			for _, h := range r.Entropy {
				loss -= entropy * weight * h
			}
			return loss
		}, operands...)
	}
}
