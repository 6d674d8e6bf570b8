package reference

import (
	"math"
	"slices"
	"testing"

	"haul/internal/kernel"
)

// Everything else is compared with this package, so what it means is held here to numbers worked
// out by hand.

// TestAdamWByHand: two steps of one weight by the formula, clipped, decayed and warmed up.
func TestAdamWByHand(t *testing.T) {
	o := &kernel.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-3, Decay: 0.1, MaxNorm: 2, Warmup: 4, Total: 10, Floor: 0.2}
	w, m, v := []float64{1}, []float64{0}, []float64{0}
	state, metrics := kernel.State{}.Normal(), kernel.Metrics{}
	want, wm, wv := 1.0, 0.0, 0.0
	for step := 1; step <= 12; step++ {
		g := []float64{3, 0.5}[step%2]
		AdamW(w, m, v, []float64{g}, o, kernel.Control{LearningRate: 0.5}, &state, &metrics)
		if g > 2 {
			g *= 2 / (g + 1e-6)
		}
		wm, wv = 0.9*wm+0.1*g, 0.99*wv+0.01*g*g
		lr := 0.5 * float64(step) / 4
		if step > 4 {
			lr = 0.5 * (0.2 + 0.8*(1+math.Cos(math.Pi*float64(min(step, 10)-4)/6))/2)
		}
		n := float64(step)
		want -= lr * (wm/(1-math.Pow(0.9, n))/(math.Sqrt(wv/(1-math.Pow(0.99, n)))+1e-3) + 0.1*want)
		if math.Abs(w[0]-want) > 1e-6 { // the settings are float32
			t.Fatalf("step %d: weight %v, want %v", step, w[0], want)
		}
	}
	if math.Abs(metrics.GradNorm-6*3.5) > 1e-12 || state.Step != 12 {
		t.Errorf("norms add up to %v over %d steps", metrics.GradNorm, state.Step)
	}
	was := w[0]
	AdamW(w, m, v, []float64{math.NaN()}, o, kernel.Control{LearningRate: 0.5}, &state, &metrics)
	if w[0] != was || metrics.BadStep != 13 || state.Step != 12 {
		t.Errorf("a gradient of NaN moved the weight to %v, bad step %d", w[0], metrics.BadStep)
	}
}

// TestMuonByHand: two steps of the right one of two blocks. The singular values of its gradient are
// 3 and 4, so 0.6 and 0.8 of its norm, which five rounds of 3.4445·x - 4.7750·x³ + 2.0315·x⁵ turn
// into 0.72287617 and 1.11920393; clipping and momentum change no direction.
func TestMuonByHand(t *testing.T) {
	l := &kernel.Layout{}
	l.Add("w", kernel.InitZero, 4, 2, 4)
	o := &kernel.AdamW{Layout: l, Beta1: 0.9, Beta2: 0.99, Eps: 1e-3, Decay: 0.1, MaxNorm: 2.5, Side: 2}
	w, m, v, g := make([]float64, l.Len), make([]float64, l.Len), make([]float64, l.Len), make([]float64, l.Len)
	g[3], g[6] = 3, 4 // rows are four wide
	w[2], w[3], w[6] = 1, 1, -1
	state, metrics := kernel.State{}.Normal(), kernel.Metrics{}
	const lr, along = 0.5, 0.2 * math.Sqrt2
	a, b, c := 1.0, 1.0, -1.0
	for range 2 {
		AdamW(w, m, v, g, o, kernel.Control{LearningRate: lr}, &state, &metrics)
		a, b, c = a-lr*0.1*a, b-lr*(along*0.72287617+0.1*b), c-lr*(along*1.11920393+0.1*c)
	}
	for i, want := range map[int]float64{0: 0, 2: a, 3: b, 6: c, 7: 0} {
		if math.Abs(w[i]-want) > 1e-6 {
			t.Errorf("weight %d is %v, want %v", i, w[i], want)
		}
	}
	if math.Abs(m[6]-1.95*2) > 1e-5 || slices.Max(v) != 0 || slices.Min(v) != 0 {
		t.Errorf("momentum %v, want 3.9; second moments %v, want none", m[6], v)
	}
}

// TestMuonOfNoGradient: a block without a gradient has no direction, and its weights only decay.
func TestMuonOfNoGradient(t *testing.T) {
	l := &kernel.Layout{}
	l.Add("w", kernel.InitZero, 2, 2, 2)
	o := &kernel.AdamW{Layout: l, Decay: 0.1, Side: 2}
	w, m, v, g := make([]float64, l.Len), make([]float64, l.Len), make([]float64, l.Len), make([]float64, l.Len)
	w[0], w[3] = 1, -2
	state, metrics := kernel.State{}.Normal(), kernel.Metrics{}
	AdamW(w, m, v, g, o, kernel.Control{LearningRate: 0.5}, &state, &metrics)
	if math.Abs(w[0]-0.95) > 1e-6 || w[1] != 0 || math.Abs(w[3]+1.9) > 1e-6 || metrics.BadStep != 0 {
		t.Errorf("weights are %v, bad step %d", w[:4], metrics.BadStep)
	}
}

// TestDenseOpsByHand: a product, a norm, a gated unit and attention on numbers small enough for
// paper.
func TestDenseOpsByHand(t *testing.T) {
	row := func(v ...float64) Matrix[float64] { return Matrix[float64]{v, 1, len(v), len(v)} }
	y := zeros(1, 2)
	Linear(y, Matrix[float64]{}, row(2, 3), Matrix[float64]{[]float64{1, 10, 100, 1000}, 2, 2, 2}, []float64{0.5, 0.25}, row(7, 8), kernel.Drop{}, 0)
	if !slices.Equal(y.Data, []float64{2 + 30 + 0.5 + 7, 200 + 3000 + 0.25 + 8}) {
		t.Errorf("linear gives %v", y.Data)
	}
	mean, rstd := make([]float64, 1), make([]float64, 1)
	Norm(y, mean, rstd, row(1, 5), []float64{2, 3}, []float64{0.5, -0.5}, 0)
	if !slices.Equal(y.Data, []float64{-2 + 0.5, 3 - 0.5}) || mean[0] != 3 || rstd[0] != 0.5 {
		t.Errorf("norm gives %v, mean %v, 1/deviation %v", y.Data, mean, rstd)
	}
	one := zeros(1, 1)
	GLU(one, row(3, math.Log(4)))
	if math.Abs(one.Data[0]-3*0.8) > 1e-12 {
		t.Errorf("the gated unit gives %v", one.Data)
	}
	MeanNodes(y, Matrix[float64]{[]float64{1, 2, 5, 10}, 2, 2, 2})
	if !slices.Equal(y.Data, []float64{3, 6}) {
		t.Errorf("the mean is %v", y.Data)
	}
	if g := gelu(1.0); math.Abs(g-0.841192) > 1e-6 {
		t.Errorf("gelu(1) = %v", g)
	}
	// Query, key and value of three tokens of one column; the third sequence begins at token 1.
	qkv, out, sum := Matrix[float64]{[]float64{1, 1, 10, 1, 2, 20, 1, 3, 30}, 3, 3, 3}, zeros(3, 1), zeros(1, 3)
	CausalAttention(out, sum, qkv, []int32{0, 0, 1}, kernel.Drop{}, 0)
	e := math.E
	for i, want := range []float64{10, (10*e + 20*e*e) / (e + e*e), (20*e*e + 30*e*e*e) / (e*e + e*e*e)} {
		if math.Abs(out.Data[i]-want) > 1e-12 {
			t.Errorf("token %d attends to %v, want %v", i, out.Data[i], want)
		}
	}
}

// TestNearScores: where the network says nothing, a node's odds follow from its distance alone, the
// nearest first.
func TestNearScores(t *testing.T) {
	const n, width, near, temperature = 4, 2, 0.5, 2
	d := &Decoder[float64]{Proj: zeros(n, 3*width), Pointer: zeros(n, width), Graph: make([]float64, width), Context: make([]float64, width),
		PosX: []float64{0, 0.3, 0, 0.9}, PosY: []float64{0, 0.4, 0.1, 0}, Nodes: []int32{0, 1, 1, 1}, Heads: 1, Rules: kernel.Rules{Capacity: 9}, Near: near, Temperature: temperature}
	got := d.Decide(d.Depart())
	weigh := func(distance float64) float64 {
		return math.Exp(kernel.Clip / temperature * math.Tanh(-near*math.Log(math.Sqrt(distance*distance+1e-4))))
	}
	all := weigh(0.5) + weigh(0.1) + weigh(0.9)
	for i, distance := range []float64{0.5, 0.1, 0.9} { // of customers 1, 2 and 3 from the depot
		if want := weigh(distance) / all; math.Abs(got.Prob[i]-want) > 1e-12 {
			t.Errorf("customer %d, %v away: probability %v, want %v", got.Allowed[i], distance, got.Prob[i], want)
		}
	}
	if got.greedy() != 1 {
		t.Errorf("the likeliest is customer %d, want the nearest, 2", got.Allowed[got.greedy()])
	}
}

// TestPairScores: where the glimpse says nothing, a node's odds follow from its pair with the place
// of the vehicle and from the load left.
func TestPairScores(t *testing.T) {
	const n, width = 4, 4
	d := &Decoder[float64]{Proj: zeros(n, 3*width), Pointer: zeros(n, width), Graph: make([]float64, width), Context: make([]float64, width),
		Pair: zeros(n, 2*width), PairContext: []float64{0, 1, 0, 0}, PosX: vector(n), PosY: vector(n), Nodes: []int32{0, 2, 1, 1},
		Heads: 1, Rules: kernel.Rules{Capacity: 8}, Temperature: 5}
	d.Pair.Row(1)[0] = 0.5 // asked at customer 1 alone
	for j := range n {
		key := d.Pair.Row(j)[width:]
		key[0], key[1] = []float64{0, 0, 0.4, -0.8}[j], []float64{0.3, 0, 0, 0.2}[j]
	}
	tour := d.Depart()
	tour.Visit(1) // 6 of 8 are left: allowed are the depot and customers 2 and 3
	got := d.Decide(tour)
	// √D is 2
	weigh := func(dot float64) float64 { return math.Exp(kernel.Clip / 5. * math.Tanh(dot/2)) }
	scores := []float64{weigh(0.75 * 0.3), weigh(0.5 * 0.4), weigh(0.5*-0.8 + 0.75*0.2)}
	for i, s := range scores {
		if want := s / (scores[0] + scores[1] + scores[2]); math.Abs(got.Prob[i]-want) > 1e-12 {
			t.Errorf("node %d: probability %v, want %v", got.Allowed[i], got.Prob[i], want)
		}
	}
}
