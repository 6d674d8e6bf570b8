package reference

import (
	"math"
	"slices"
	"testing"

	"haul/internal/kernel"
)

var none Matrix[float64]

// A dropped linear layer, then one behind a GELU: the gradient goes through the mask, and from the
// second layer's input through the GELU.
func TestLinearDropGELUGradient(t *testing.T) {
	const first = 9
	drop := kernel.Drop{Rate: 0.4, Site: 2, Nodes: 3, Seed: 1}
	x, w, bias, v, weigh := random(6, 4), random(5, 4), vector(5), random(3, 5), random(6, 3)
	pre, h, y := zeros(6, 5), zeros(6, 5), zeros(6, 3)
	loss := func() float64 {
		Linear(h, pre, x, w, bias, none, kernel.Drop{}, first)
		Linear(y, none, h, v, nil, none, drop, first)
		return dot(y.Data, weigh.Data)
	}
	loss()
	kept, dv, dpre, dx, dw, dbias := zeros(6, 3), zeros(3, 5), zeros(6, 5), zeros(6, 4), zeros(5, 4), make([]float64, 5)
	Dropout(kept, weigh, none, drop, first)
	LinearGradW(dv, kept, h)
	LinearGradX(dpre, kept, v, pre, false)
	LinearGradW(dw, dpre, x)
	LinearGradBias(dbias, dpre)
	LinearGradX(dx, dpre, w, none, false)
	differentiate(t, loss, operand{"x", x.Data, dx.Data}, operand{"w", w.Data, dw.Data}, operand{"bias", bias, dbias}, operand{"v", v.Data, dv.Data})
}

func TestEmbedGradient(t *testing.T) {
	tables, grads := []Matrix[float64]{random(2, 4), random(3, 4)}, []Matrix[float64]{zeros(2, 4), zeros(3, 4)}
	index := []int32{0, 2, 1, -1, 0, 0, -1, -1, 1, 1}
	y, weigh := random(5, 4), random(5, 4)
	EmbedGrad(grads, weigh, index)
	differentiate(t, func() float64 { Embed(y, index, tables); return dot(y.Data, weigh.Data) },
		operand{"table 0", tables[0].Data, grads[0].Data}, operand{"table 1", tables[1].Data, grads[1].Data})
	EmbedGrad([]Matrix[float64]{{}, grads[1]}, weigh, index) // a frozen table is passed over
}

func TestCausalAttentionGradient(t *testing.T) {
	const n, d, heads = 7, 6, 3
	first := []int32{0, 0, 0, 3, 3, 3, 6}
	for _, rate := range []float32{0, 0.4} {
		drop := kernel.Drop{Rate: rate, Site: 5, Nodes: n, Seed: 8}
		qkv, weigh, y, sum, dqkv := random(n, 3*d), random(n, d), zeros(n, d), zeros(heads, n), random(n, 3*d)
		loss := func() float64 {
			CausalAttention(y, sum, qkv, first, drop, 4)
			return dot(y.Data, weigh.Data)
		}
		loss()
		CausalAttentionGrad(dqkv, weigh, sum, qkv, first, drop, 4)
		differentiate(t, loss, operand{"qkv", qkv.Data, dqkv.Data})
	}
}

// What is spread, number by number, and its gradient: heads of two columns, two of keys and values
// for four of queries; then groups of every size against differences.
func TestSpread(t *testing.T) {
	x := Matrix[float64]{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 21, 22, 23, 24}, 1, 16, 16}
	y, dx := zeros(1, 24), random(1, 16)
	Spread(y, x, 4, 2)
	want := []float64{1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 11, 12, 13, 14, 13, 14, 21, 22, 21, 22, 23, 24, 23, 24}
	if !slices.Equal(y.Data, want) {
		t.Errorf("spread to %v, want %v", y.Data, want)
	}
	for i := range y.Data {
		y.Data[i] = float64(i)
	}
	SpreadGrad(dx, y, 4, 2)
	want = []float64{0, 1, 2, 3, 4, 5, 6, 7, 8 + 10, 9 + 11, 12 + 14, 13 + 15, 16 + 18, 17 + 19, 20 + 22, 21 + 23}
	if !slices.Equal(dx.Data, want) {
		t.Errorf("gradient %v, want %v", dx.Data, want)
	}
	for _, kv := range []int{1, 2, 3, 6} {
		x, y, dx, weigh := random(3, (6+2*kv)*2), zeros(3, 36), random(3, (6+2*kv)*2), random(3, 36)
		SpreadGrad(dx, weigh, 6, kv)
		differentiate(t, func() float64 { Spread(y, x, 6, kv); return dot(y.Data, weigh.Data) }, operand{"x", x.Data, dx.Data})
	}
}

// Only queries and keys turn, however many heads each has.
func TestRotateTurnsQueriesAndKeys(t *testing.T) {
	x, y := random(1, 8*2), zeros(1, 8*2) // four heads of queries, two of keys, two of values
	Rotate(y, x, []int32{3}, &kernel.Rotate{Heads: 4, KVHeads: 2, Positions: 4})
	for c, v := range y.Data {
		if moved := v != x.Data[c]; moved != (c < 12) {
			t.Errorf("column %d moved: %v", c, moved)
		}
	}
}

func TestCrossEntropyGradient(t *testing.T) {
	o := &kernel.CrossEntropy{Columns: []int{4, 3}, Smoothing: 0.2, Weight: 0.25}
	logits, labels := random(5, 7), []int32{0, 2, 3, -1, -1, 0, -1, -1, 2, 1}
	dlogits, sums := random(5, 7), vector(6)
	CrossEntropy(dlogits, logits, labels, nil, sums, o)
	differentiate(t, func() float64 {
		CrossEntropy(none, logits, labels, nil, sums, o)
		return float64(o.Weight) * (sums[0] + sums[3])
	}, operand{"logits", logits.Data, dlogits.Data})
	if sums[1] != 3 || sums[4] != 3 {
		t.Errorf("%v and %v labels, want 3 and 3", sums[1], sums[4])
	}
	CrossEntropy(none, Matrix[float64]{[]float64{1, 3, 3, 0, 2, 2, 2}, 1, 7, 7}, []int32{1, 1}, nil, sums, o)
	if sums[2] != 1 || sums[5] != 0 {
		t.Errorf("ties: hits %v and %v, want the lowest of equals alone: 1 and 0", sums[2], sums[5])
	}
}

// The first classifier's loss and slope are weighed token by token, the second's are not.
func TestWeighedCrossEntropyGradient(t *testing.T) {
	o := &kernel.CrossEntropy{Columns: []int{3, 2}, Smoothing: 0.1, Weight: 0.5}
	logits, labels, weigh := random(3, 5), []int32{0, 1, 2, 0, -1, 1}, []float64{2, 0, 5}
	dlogits, sums := random(3, 5), vector(6)
	CrossEntropy(dlogits, logits, labels, weigh, sums, o)
	differentiate(t, func() float64 {
		CrossEntropy(none, logits, labels, weigh, sums, o)
		return float64(o.Weight) * (sums[0] + sums[3])
	}, operand{"logits", logits.Data, dlogits.Data})
	if d := dlogits.Row(1); d[0] != 0 || d[3] == 0 {
		t.Errorf("a token of weight 0 has slopes %v: want none of the first classifier alone", d)
	}
}

// TestImplicitQByHand: two actions, a discount of ½ and an expectile of ¾ over a sequence of three
// records, a marker and a record, and another that begins behind it.
func TestImplicitQByHand(t *testing.T) {
	o := &kernel.ImplicitQ{Gain: 0, Type: 1, Gains: []float32{0, 4}, Discount: 0.5, Expectile: 0.75, Slope: 1, Most: 5, Weight: 2}
	values := Matrix[float64]{[]float64{
		1, 7, 3, 7, 2, // action 0: u = 1 - 2, y = 4 + ½·6
		7, 9, 7, 8, 6, // action 1: u = 8 - 6, y = 0 + ½·1
		3, 4, 3, 4, 1, // a marker behind it tells of no reward
		0, 0, 0, 0, 9, // the marker
		3, 0, 5, 0, 3, // another sequence begins behind it
		3, 0, 5, 0, 3, // the row ends
	}, 6, 5, 5}
	labels, index, first := []int32{0, 1, 0, -1, 0, 0}, []int32{-1, 0, 1, 0, 0, 0, -1, 2, 0, 0, 1, 0}, []int32{0, 0, 0, 0, 0, 5}
	d, weigh, sums := random(6, 5), vector(6), vector(4)
	ImplicitQ(d, values, labels, index, first, weigh, sums, o)
	want := []float64{
		2 * (1 - 7), 0, 2 * (3 - 7), 0, 2 * -2 * 0.25 * -1,
		0, 2 * (9 - 0.5), 0, 2 * (8 - 0.5), 2 * -2 * 0.75 * 2,
		0, 0, 0, 0, 0,
		0, 0, 0, 0, 0,
		0, 0, 0, 0, 0,
		0, 0, 0, 0, 0,
	}
	for i, v := range want {
		if math.Abs(d.Data[i]-v) > 1e-12 {
			t.Errorf("slope of value %d of token %d is %v, want %v", i%5, i/5, d.Data[i], v)
		}
	}
	for m, v := range []float64{math.Exp(-1), 5, 0, 0, 0, 0} { // exp 2 is over the most
		if math.Abs(weigh[m]-v) > 1e-12 {
			t.Errorf("token %d weighs %v, want %v", m, weigh[m], v)
		}
	}
	for i, v := range []float64{(36+16)/2 + (8.5*8.5+7.5*7.5)/2, 0.25 + 0.75*4, 2 + 6, 2} {
		if math.Abs(sums[i]-v) > 1e-12 {
			t.Errorf("sum %d is %v, want %v", i, sums[i], v)
		}
	}
}

// Both sides of the clip, with the advantage of either sign: where the clipped side is the smaller
// the policy's slope is gone.
func TestPPOGradient(t *testing.T) {
	o := &kernel.PPO{Clip: 0.2, ValueCoef: 0.5, EntropyCoef: 0.1, Weight: 0.5}
	for _, c := range []struct {
		ratio, adv  float64
		held, apart bool
	}{{1.1, 0.7, false, false}, {0.9, -0.7, false, false}, {1.5, 0.7, true, true}, {1.5, -0.7, false, true}, {0.5, 0.7, false, true}, {0.5, -0.7, true, true}} {
		out, dout, sums := vector(6), vector(6), vector(4)
		logp := out[2] - logSumExp(out[:5])
		sample := []float64{2, logp - math.Log(c.ratio), c.adv, 0.3}
		ppo(dout, out, sample, sums, o)
		if got := sums[3] == 1; got != c.apart {
			t.Errorf("%+v: left the clip: %v", c, got)
		}
		differentiate(t, func() float64 {
			ppo(make([]float64, 6), out, sample, sums, o)
			return float64(o.Weight) * (sums[0] + float64(o.ValueCoef)*sums[1] - float64(o.EntropyCoef)*sums[2])
		}, operand{"out", out, dout})
		free := *o
		free.EntropyCoef = 0
		ppo(dout, out, sample, sums, &free)
		if got := dout[2] == 0; got != c.held {
			t.Errorf("%+v: no slope of the policy: %v", c, got)
		}
	}
}

// A cache that is filled step by step answers as the whole row does, and moving a later token
// changes no earlier result by a bit.
func TestCausality(t *testing.T) {
	const n, d, heads = 9, 8, 2
	first := make([]int32, n)
	qkv, whole, sum := random(n, 3*d), zeros(n, d), zeros(heads, n)
	CausalAttention(whole, sum, qkv, first, kernel.Drop{}, 0)
	cached := func(qkv, whole Matrix[float64], heads, kv int) {
		t.Helper()
		w := d / heads
		keys, values, y := random(n, kv*w), random(n, kv*w), make([]float64, d)
		for i := range n {
			CacheAttention(y, qkv.Row(i), keys, values, i, heads)
			for c, v := range y {
				if math.Abs(v-whole.Row(i)[c]) > 1e-14 {
					t.Fatalf("token %d, column %d, %d heads for %d: cached %v, whole %v", i, c, kv, heads, v, whole.Row(i)[c])
				}
			}
		}
	}
	cached(qkv, whole, heads, heads)
	for _, kv := range []int{1, 2} {
		narrow, spread, whole := random(n, d+2*kv*2), zeros(n, 3*d), zeros(n, d)
		Spread(spread, narrow, 4, kv)
		CausalAttention(whole, zeros(4, n), spread, first, kernel.Drop{}, 0)
		cached(narrow, whole, 4, kv)
	}
	for i := range n {
		moved, after := Matrix[float64]{append([]float64(nil), qkv.Data...), n, 3 * d, 3 * d}, zeros(n, d)
		for c := range moved.Row(i) {
			moved.Row(i)[c]++
		}
		CausalAttention(after, sum, moved, first, kernel.Drop{}, 0)
		for j := range i {
			for c, v := range whole.Row(j) {
				if after.Row(j)[c] != v {
					t.Fatalf("token %d moved column %d of token %d", i, c, j)
				}
			}
		}
	}
}

func TestSchedule(t *testing.T) {
	o := &kernel.AdamW{Warmup: 4, Total: 12, Floor: 0.1}
	for step, want := range map[float64]float64{1: 0.25, 4: 1, 8: 0.55, 12: 0.1, 100: 0.1} {
		if got := schedule(o, step); math.Abs(got-want) > 1e-7 { // Floor is a float32
			t.Errorf("step %v: %v, want %v", step, got, want)
		}
	}
	if got := schedule(&kernel.AdamW{Warmup: 4}, 100); got != 1 {
		t.Errorf("without a total: %v, want 1", got)
	}
	if got := schedule(&kernel.AdamW{}, 1); got != 1 {
		t.Errorf("without a warm-up: %v, want 1", got)
	}
}

// Every operand of a row of gated recurrent units but the state, which no gradient reaches: of rows
// of one token and of several.
func TestGRUGradient(t *testing.T) {
	for _, n := range []int{1, 5} {
		const d = 3
		x, w, bias, state, weigh := random(n, 3*d), random(3*d, d), vector(3*d), vector(d), random(n, d)
		h, prev, gates := zeros(n, d), zeros(n, d), zeros(n, 4*d)
		loss := func() float64 {
			GRU(h, prev, gates, x, w, bias, state, &kernel.GRU{})
			return dot(h.Data, weigh.Data)
		}
		loss()
		dx, dh, dw, dbias := zeros(n, 3*d), zeros(n, d), zeros(3*d, d), make([]float64, 3*d)
		copy(dh.Data, weigh.Data)
		GRUGrad(dx, dh, gates, prev, w)
		du := Matrix[float64]{gates.Data, n, 3 * d, 4 * d}
		LinearGradW(dw, du, prev)
		LinearGradBias(dbias, du)
		differentiate(t, loss, operand{"x", x.Data, dx.Data}, operand{"w", w.Data, dw.Data}, operand{"bias", bias, dbias})
	}
}

// A unit by hand: gates that are shut keep the state, gates that are open take the candidate, and
// the reset gate alone lets the state into it. Units that carry on token by token are those of one
// row.
func TestGRUGates(t *testing.T) {
	const shut, open = 40, -40 // of the update gate: z is 1 or 0
	for _, c := range []struct{ reset, update, want float64 }{
		{40, shut, 0.5}, {40, open, math.Tanh(0.25 + 2*0.5 + 0.125)}, {-40, open, math.Tanh(0.25)},
	} {
		h, state := zeros(1, 1), []float64{0.5}
		w := Matrix[float64]{[]float64{0, 0, 2}, 3, 1, 1}
		x := Matrix[float64]{[]float64{c.reset, c.update, 0.25}, 1, 3, 3}
		GRU(h, zeros(1, 1), zeros(1, 4), x, w, []float64{0, 0, 0.125}, state, &kernel.GRU{Carry: true})
		if math.Abs(h.Data[0]-c.want) > 1e-12 || state[0] != h.Data[0] {
			t.Errorf("%+v: units %v, carried %v", c, h.Data[0], state[0])
		}
	}
	x, w, bias := random(6, 6), random(6, 2), vector(6)
	whole, state := zeros(6, 2), []float64{0.3, -0.2}
	GRU(whole, zeros(6, 2), zeros(6, 8), x, w, bias, state, &kernel.GRU{})
	if state[0] != 0.3 || state[1] != -0.2 {
		t.Errorf("the state moved to %v, and nothing was to be carried", state)
	}
	for m := range x.Rows {
		h := zeros(1, 2)
		GRU(h, zeros(1, 2), zeros(1, 8), x.Slice(m, m+1), w, bias, state, &kernel.GRU{Carry: true})
		if h.Data[0] != whole.Row(m)[0] || h.Data[1] != whole.Row(m)[1] {
			t.Errorf("token %d: %v alone, %v in its row", m, h.Data, whole.Row(m))
		}
	}
}
