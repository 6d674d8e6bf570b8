package kerneltest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"haul/internal/kernel"
)

// testComparisons weighs starts by their spread, and by pairs with some of the same length among
// them.
func testComparisons(t *testing.T, dev kernel.Device) {
	var all []kernel.Advantage
	var of []int // starts
	for _, starts := range []int{1, 2, 3, 7, 20, 31, 32, 33, 65, 100, 129} {
		for _, o := range []kernel.Advantage{{By: kernel.Standard}, {By: kernel.Preference}, {By: kernel.Preference, Leader: 10}} {
			all, of = append(all, o), append(of, starts)
		}
	}
	// Leaders that tie with none, with another of their row, and with one of another row.
	for _, starts := range []int{1, 2, 3, 20, 33, 65} {
		for _, group := range []int{0, 2, 8} {
			for _, alone := range []bool{false, true} {
				// lead makes leaders that are shorter by about half
				for _, margin := range []float32{0, 0.1, 0.5} {
					all, of = append(all, kernel.Advantage{By: kernel.Preference, Leader: 10, Alone: alone, Margin: margin, Group: group}), append(of, starts)
				}
			}
		}
	}
	for i, o := range all {
		if tries(dev, i+i/3) { // a list of threes
			testComparison(t, dev, of[i], o)
		}
	}
}

// testComparison is a trial of o, whose tensors it makes. Every group is of another kind: its
// shortest route leads alone, ties with one of its own row, or ties with one of another row, where
// it has any.
func testComparison(t *testing.T, dev kernel.Device, starts int, o kernel.Advantage) {
	t.Helper()
	o.Alpha, o.Weight = 0.7, 0.3
	routes := o.Rows() * starts // of a group
	// The mean of lengths near 10 is divided by a spread of at least 0.1.
	c := trial{what: fmt.Sprintf("advantage by %d S=%d leader=%v alone=%v margin=%v group=%d", o.By, starts, o.Leader, o.Alone, o.Margin, o.Group),
		nodes: 3, amplify: 100, group: o.Rows()}
	c.record = func(r *recording) {
		length, logProb := r.normals("length", r.prog.Batch*starts), r.normals("logprob", r.prog.Batch*starts)
		for i := range length {
			length[i] = 9 + length[i]/10 + float32(i%starts)/2
			if i%3 == 2 && o.By == kernel.Preference {
				length[i] = length[i-1] * (1 + 1e-6*float32(i%2)) // the same route, summed in another order
			}
		}
		for g := 0; o.Leader > 0 && g < len(length)/routes; g++ {
			lead(length[g*routes:][:routes], starts, g)
		}
		w := o
		w.Adv, w.Base, w.Length = r.out("adv", 2*routes, starts), r.out("base", starts, 1), r.given("length", length, starts)
		if w.By == kernel.Preference {
			w.LogProb = r.given("logprob", logProb, starts)
		}
		r.do(&w)
	}
	c.try(t, dev)
}

// lead gives a group of routes one that is shorter than all others, and by the kind one that is as
// short in its row or in the row after.
func lead(length []float32, starts, kind int) {
	at := kind % len(length)
	length[at] = 5
	row := at / starts * starts
	switch kind % 3 {
	case 1:
		length[row+(at-row+1)%starts] = 5 * (1 + 1e-6)
	case 2:
		length[(at+starts)%len(length)] = 5 * (1 - 1e-6)
	}
}

func testAdvantage(t *testing.T, dev kernel.Device) {
	testComparisons(t, dev)
	for starts := 1; starts <= 20; starts++ {
		if !tries(dev, starts) {
			continue
		}
		for _, mode := range []kernel.BaselineMode{kernel.SharedMean, kernel.Given, kernel.Running} {
			for _, seen := range []int{0, 3} {
				c := trial{what: fmt.Sprintf("advantage mode=%d S=%d after %d batches", mode, starts, seen), nodes: 11}
				if mode == kernel.Running {
					c.state.Scalars = map[string]float64{"mean": 0.625, "count": float64(seen)}
				}
				c.record = func(r *recording) {
					o := &kernel.Advantage{Adv: r.out("adv", starts+1, starts), Length: r.in("length", starts), Mode: mode, Weight: 0.3}
					if mode == kernel.Given {
						o.Base = r.in("base", 1)
					} else {
						o.Base = r.out("base", starts, 1)
					}
					if mode == kernel.Running {
						o.Mean, o.Count = r.scalar("mean"), r.scalar("count")
					}
					r.do(o)
				}
				c.try(t, dev)
			}
		}
	}
}

// descent is a few optimizer steps on a gradient of order one, from given moments.
type descent struct {
	maxNorm float32
	warmup  int
	done    uint64 // steps behind it
	total   int    // of the cosine
	floor   float32
	side    int // of Muon's blocks, which the layer has none of
}

const (
	descentSteps = 3
	beta1, beta2 = 0.9, 0.999
	rate         = 1e-2
)

type descended struct {
	w, m, v []float64
	state   kernel.State
	metrics kernel.Metrics
}

func (d descent) run(t *testing.T, dev kernel.Device) descended {
	t.Helper()
	const nodes, k, n = 2, 65, 70 // more weights than a chunk of any device
	r := (&trial{what: "adamw", nodes: nodes, batch: 3, record: func(r *recording) {
		r.do(&kernel.LinearGradW{DW: r.grad(r.weight("w", n, k), 0), DBias: r.grad(r.weight("bias", n), 0),
			DY: r.given("dy", r.coarse("dy", r.prog.Batch*nodes*n), nodes, n), X: r.given("x", r.coarse("x", r.prog.Batch*nodes*k), nodes, k)})
	}}).on(dev, false)
	r.prog.Once = optimizer(r.prog, kernel.AdamW{Beta1: beta1, Beta2: beta2, Eps: 1e-8, Decay: 0.1, MaxNorm: d.maxNorm, Warmup: d.warmup, Total: d.total, Floor: d.floor, Side: d.side}, 1)
	store, err := dev.NewStore(r.prog.Layout, true)
	check(t, err)
	check(t, store.WriteWeights(r.weights))
	m, v := r.normals("m", len(r.weights)), r.normals("v", len(r.weights))
	for i := range v {
		v[i] = 1 + v[i]*v[i] // away from zero, where the step is ill conditioned
	}
	check(t, store.WriteMoments(m, v))
	run, err := dev.Compile(r.prog, []kernel.Store{store})
	check(t, err)
	defer run.Close()
	check(t, run.SetControl(kernel.Control{Temperature: 1, LearningRate: rate}))
	check(t, run.SetState(kernel.State{Step: d.done, Beta1T: math.Pow(beta1, float64(d.done)), Beta2T: math.Pow(beta2, float64(d.done))}))
	for _, in := range r.inputs {
		check(t, run.WriteBatch(in.t, in.values))
	}
	for range descentSteps {
		check(t, run.Run())
	}
	var out descended
	w := make([]float32, len(m))
	check(t, store.ReadWeights(w))
	check(t, store.ReadMoments(m, v))
	out.w, out.m, out.v = widen(w), widen(m), widen(v)
	out.state, err = run.State()
	check(t, err)
	out.metrics, err = run.TakeMetrics()
	check(t, err)
	return out
}

func testAdamW(t *testing.T, dev kernel.Device) {
	for _, d := range []descent{{}, {maxNorm: 1}, {maxNorm: 1e6}, {warmup: 10}, {maxNorm: 1, warmup: 3, done: 2}, {done: 1000},
		{total: 4, floor: 0.2}, {total: 40, done: 20}, {warmup: 2, total: 5, floor: 0.1, done: 1}, {maxNorm: 1, warmup: 2, total: 4, floor: 0.5, done: 3}, {total: 9, done: 100, floor: 0.3}} {
		what := fmt.Sprintf("adamw %+v", d)
		got, want := d.run(t, dev), d.run(t, reference64())
		// β rounded to float32 leaves 1-β off by ε/(1-β) of itself; the gradient is a sum of 6 exact
		// terms.
		moment := bound(descentSteps+6, 1) + epsilon/(1-beta2)
		size := largest(want.m) + largest(want.v)
		compare(t, what+" m", got.m, want.m, func(int) float64 { return moment * size })
		compare(t, what+" v", got.v, want.v, func(int) float64 { return moment * size })
		// m̂/√v̂ stays below the bias correction's 1/(1-β1) times moments of order one, and v is at least
		// 0.99.
		compare(t, what+" w", got.w, want.w, func(i int) float64 {
			return bound(descentSteps, math.Abs(want.w[i])) + descentSteps*rate*10*moment*size
		})
		if got.state.Step != want.state.Step || math.Abs(got.state.Beta1T/want.state.Beta1T-1) > 1e-14 || math.Abs(got.state.Beta2T/want.state.Beta2T-1) > 1e-14 {
			t.Errorf("%s: state %+v, want %+v", what, got.state, want.state)
		}
		if math.Abs(got.metrics.GradNorm/want.metrics.GradNorm-1) > bound(6, 1) {
			t.Errorf("%s: gradient norms add up to %v, want %v", what, got.metrics.GradNorm, want.metrics.GradNorm)
		}
	}
}

// testParts makes updates of several steps' gradients and expects what one step of all their
// instances gives: of as many as fill a tree, and not.
func testParts(t *testing.T, dev kernel.Device) {
	for _, every := range []int{2, 3, 6, 8} {
		t.Run(fmt.Sprint(every), func(t *testing.T) { testPartsOf(t, dev, every) })
	}
}

func testPartsOf(t *testing.T, dev kernel.Device, every int) {
	const nodes, k, n = 2, 33, 20
	batch := few(dev, nodes)
	train := func(dev kernel.Device, batch, every int) (run kernel.Runner, store kernel.Store, dy, x *kernel.Tensor) {
		r := (&trial{what: "parts", nodes: nodes, batch: batch, record: func(r *recording) {
			dy, x = r.in("dy", nodes, n), r.in("x", nodes, k)
			r.do(&kernel.LinearGradW{DW: r.grad(r.weight("w", n, k), 0), DBias: r.grad(r.weight("bias", n), 0), DY: dy, X: x})
		}}).on(dev, false)
		r.prog.Once = optimizer(r.prog, kernel.AdamW{Beta1: beta1, Beta2: beta2, Eps: stepEps, MaxNorm: 1, Warmup: 2}, every)
		store, err := dev.NewStore(r.prog.Layout, true)
		check(t, err)
		check(t, store.WriteWeights(r.weights))
		run, err = dev.Compile(r.prog, []kernel.Store{store})
		check(t, err)
		check(t, run.SetControl(kernel.Control{Temperature: 1, LearningRate: rate}))
		return run, store, dy, x
	}
	parts, partStore, dy, x := train(dev, batch, every)
	whole, wholeStore, allDY, allX := train(reference64(), every*batch, 1)
	defer parts.Close()
	values := &recording{what: "parts", prog: &kernel.Program{}}
	length := kernel.Layout{}
	length.Add("w", 0, 1, n, k)
	length.Add("bias", 0, 1, n)
	got, want := make([]float32, length.Len), make([]float32, length.Len)
	for update := range uint64(2) {
		ys := values.coarse(fmt.Sprint("dy", update), every*batch*nodes*n)
		xs := values.coarse(fmt.Sprint("x", update), every*batch*nodes*k)
		check(t, whole.WriteBatch(allDY, ys))
		check(t, whole.WriteBatch(allX, xs))
		check(t, whole.Run())
		for part := range uint64(every) {
			before := make([]float32, length.Len)
			check(t, partStore.ReadWeights(before))
			check(t, parts.WriteBatch(dy, ys[int(part)*batch*nodes*n:][:batch*nodes*n]))
			check(t, parts.WriteBatch(x, xs[int(part)*batch*nodes*k:][:batch*nodes*k]))
			check(t, parts.Run())
			state, err := parts.State()
			check(t, err)
			done := (update*uint64(every) + part + 1) / uint64(every)
			if state.Step != done || state.Part != (part+1)%uint64(every) || state.Instances != uint64(batch)*(update*uint64(every)+part+1) {
				t.Errorf("update %d, part %d: state %+v, want step %d and part %d", update, part, state, done, (part+1)%uint64(every))
			}
			check(t, partStore.ReadWeights(got))
			if int(part) < every-1 && !slices.Equal(got, before) {
				t.Errorf("update %d: part %d moved the weights", update, part)
			}
		}
		near := func(what string, allowed func(i int) float64) {
			w := widen(want)
			compare(t, fmt.Sprintf("update %d in parts: %s", update, what), widen(got), w, allowed)
		}
		terms := every * batch * nodes
		check(t, parts.ReadGrad(got))
		check(t, whole.ReadGrad(want))
		size := span(widen(want))
		off := bound(terms, size)
		near("gradient", func(int) float64 { return off })
		gm, err := parts.TakeMetrics()
		check(t, err)
		wm, err := whole.TakeMetrics()
		check(t, err)
		// Clipped to a norm of one, the gradient is off by off/norm, and a weight by rate·10/eps of that.
		moved := float64(update+1) * rate * (10/stepEps*off/wm.GradNorm + epsilon/(1-beta2))
		check(t, partStore.ReadWeights(got))
		check(t, wholeStore.ReadWeights(want))
		near("weights", func(i int) float64 { return moved + bound(2, math.Abs(float64(want[i]))) })
		if math.Abs(gm.GradNorm-wm.GradNorm) > wm.GradNorm*off/size {
			t.Errorf("update %d in parts: gradient norm %v, want %v", update, gm.GradNorm, wm.GradNorm)
		}
	}
}
