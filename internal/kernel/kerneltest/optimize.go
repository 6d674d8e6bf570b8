package kerneltest

import (
	"fmt"
	"math"
	"testing"

	"haul/internal/kernel"
)

func testAdvantage(t *testing.T, dev kernel.Device) {
	for starts := 1; starts <= 20; starts++ {
		for _, mode := range []kernel.BaselineMode{kernel.SharedMean, kernel.Given, kernel.Running} {
			for _, seen := range []uint64{0, 3} {
				c := trial{what: fmt.Sprintf("advantage mode=%d S=%d after %d batches", mode, starts, seen), nodes: 11,
					state: kernel.State{EMA: 0.625, EMASteps: seen}}
				c.record = func(r *recording) {
					o := &kernel.Advantage{Adv: r.out("adv", starts+1, starts), Length: r.in("length", starts), Mode: mode, Weight: 0.3}
					if mode == kernel.Given {
						o.Base = r.in("base", 1)
					} else {
						o.Base = r.out("base", starts, 1)
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
		r.do(&kernel.LinearGradW{DW: r.grad(r.weight("w", n, k), 0), DBias: r.grad(r.weight("bias", n), 0), DY: r.in("dy", nodes, n), X: r.in("x", nodes, k)})
	}}).on(dev, false)
	r.prog.Once = []kernel.Op{&kernel.AdamW{Layout: r.prog.Layout, Beta1: beta1, Beta2: beta2, Eps: 1e-8, Decay: 0.1, MaxNorm: d.maxNorm, Warmup: d.warmup}}
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
	for _, d := range []descent{{}, {maxNorm: 1}, {maxNorm: 1e6}, {warmup: 10}, {maxNorm: 1, warmup: 3, done: 2}, {done: 1000}} {
		what := fmt.Sprintf("adamw %+v", d)
		got, want := d.run(t, dev), d.run(t, judge())
		// β rounded to float32 leaves 1-β off by ε/(1-β) of itself; the gradient is a sum of 6 terms.
		moment := bound(descentSteps+6, 1) + epsilon/(1-beta2)
		size := largest(want.m) + largest(want.v)
		compare(t, what+" m", got.m, want.m, func(int) float64 { return moment * size })
		compare(t, what+" v", got.v, want.v, func(int) float64 { return moment * size })
		// m̂/√v̂ stays below the bias correction's 1/(1-β1) times moments of order one, and v is at least 0.99.
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
