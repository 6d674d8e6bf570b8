package kerneltest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"haul/internal/kernel"
)

// muonSlope is by how much the rounds multiply a small singular value, and what was rounded off it:
// MuonA to the power of MuonRounds.
const muonSlope = 485

// muonUnit is by what a device may round the operands of the rounds' products: they may be fp16 in
// any precision, since X itself, which carries small singular values, is kept in fp32. See
// docs/decisions/0028-muon-in-fp16.md.
const muonUnit = 0x1p-11

// muonBound is how far an element of X may be off. X's elements are of order 1/sqrt(side), and
// errors of a few units of its singular values are spread over its elements likewise. What is
// rounded in fp32 is off by eight units and grows by the slope. Each of the fifteen products rounds
// two operands, of which later rounds leave as much as there was; elements are up to four
// deviations of the mean, and half of those errors cancel.
func muonBound(side int, unit float64) float64 {
	return (8*epsilon*muonSlope + 4*3*kernel.MuonRounds*unit) / math.Sqrt(float64(side))
}

// muonCase is a few steps of matrices in blocks, beside others.
type muonCase struct {
	side    int
	maxNorm float32
	// momentum starts at zero: gradients of a few instances have few singular values that are not
	fresh bool
	parts int
}

func (c muonCase) run(t *testing.T, dev kernel.Device) descended {
	t.Helper()
	const nodes = 2
	s := c.side
	r := (&trial{what: "muon", nodes: nodes, batch: 3, record: func(r *recording) {
		linear := func(name string, n, k int) {
			r.do(&kernel.LinearGradW{DW: r.grad(r.weight(name, n, k), 0), DBias: r.grad(r.weight(name+".bias", n), 0),
				DY: r.given(name+".dy", r.coarse(name+".dy", r.prog.Batch*nodes*n), nodes, n), X: r.given(name+".x", r.coarse(name+".x", r.prog.Batch*nodes*k), nodes, k)})
		}
		linear("narrow", s, s+1)
		linear("tall", 3*s, s)
		linear("wide", s, 2*s)
		linear("square", 2*s, 2*s)
		linear("short", s+3, s)
	}}).on(dev, false)
	r.prog.Once = optimizer(r.prog, kernel.AdamW{Beta1: beta1, Beta2: beta2, Eps: stepEps, Decay: 0.1, MaxNorm: c.maxNorm, Warmup: 2, Side: s}, c.parts)
	store, err := dev.NewStore(r.prog.Layout, true)
	check(t, err)
	check(t, store.WriteWeights(r.weights))
	m, v := make([]float32, len(r.weights)), make([]float32, len(r.weights))
	if !c.fresh {
		m = r.normals("m", len(m))
	}
	for i := range v {
		v[i] = 1
	}
	check(t, store.WriteMoments(m, v))
	run, err := dev.Compile(r.prog, []kernel.Store{store})
	check(t, err)
	defer run.Close()
	check(t, run.SetControl(kernel.Control{Temperature: 1, LearningRate: rate}))
	for _, in := range r.inputs {
		check(t, run.WriteBatch(in.t, in.values))
	}
	for range descentSteps * c.parts {
		check(t, run.Run())
	}
	w := make([]float32, len(m))
	check(t, store.ReadWeights(w))
	check(t, store.ReadMoments(m, v))
	out := descended{w: widen(w), m: widen(m), v: widen(v)}
	out.state, err = run.State()
	check(t, err)
	out.metrics, err = run.TakeMetrics()
	check(t, err)
	return out
}

func testMuon(t *testing.T, dev kernel.Device) { tryMuon(t, dev, muonUnit) }

// RunMuon holds devices whose rounds' products round operands by that unit; 0 is for fp32.
func RunMuon(t *testing.T, unit float64, open func(t *testing.T) kernel.Device) {
	run(t, []part{{"muon", func(t *testing.T, dev kernel.Device) { tryMuon(t, dev, unit) }}}, open)
}

func tryMuon(t *testing.T, dev kernel.Device, unit float64) {
	plain, none := descent{maxNorm: 1, warmup: 10}, descent{maxNorm: 1, warmup: 10, side: 64}
	if a, b := plain.run(t, dev), none.run(t, dev); !slices.Equal(a.w, b.w) || !slices.Equal(a.m, b.m) || !slices.Equal(a.v, b.v) {
		t.Error("a layer without blocks is not updated as by AdamW alone")
	}
	_, isTwin := twinOf(dev)
	for _, c := range []muonCase{{side: 16, parts: 1}, {side: 128, parts: 1, maxNorm: 1}, {side: 128, parts: 1, fresh: true}, {side: 32, parts: 2, maxNorm: 1},
		{side: 1, parts: 1}, {side: 12, parts: 1, maxNorm: 1e-3}, {side: 25, parts: 1}, {side: 77, parts: 1, fresh: true}, {side: 120, parts: 1}, {side: 127, parts: 1}} {
		// The reference takes a minute under the race detector; where it is on trial itself, which knows
		// no tiles, one large side shows all. A twin has large products behind it.
		if c.side > 77 && (testing.Short() || isTwin || interprets(dev) && !c.fresh) {
			continue
		}
		// A core's products know panels and tiles of at most 64; past those one side shows all.
		if c.side > 77 && !c.fresh && dev.ShardSize(1) <= 256 {
			c.side /= 2
		}
		what := fmt.Sprintf("muon %+v", c)
		got, want := c.run(t, dev), c.run(t, reference64())
		// Gradients are sums of a few exact terms, added up over parts and steps and multiplied by a clip
		// factor.
		moment := bound(descentSteps*6*c.parts, largest(want.m)+largest(want.v)) + epsilon/(1-beta2)
		compare(t, what+" m", got.m, want.m, func(int) float64 { return moment })
		compare(t, what+" v", got.v, want.v, func(int) float64 { return moment })
		off := descentSteps * rate * max(kernel.MuonShare*math.Sqrt(float64(c.side))*muonBound(c.side, unit), 10*moment)
		compare(t, what+" w", got.w, want.w, func(i int) float64 { return bound(descentSteps, math.Abs(want.w[i])) + off })
		if got.state.Step != want.state.Step || got.state.Step != descentSteps {
			t.Errorf("%s: state %+v, want %+v", what, got.state, want.state)
		}
		if math.Abs(got.metrics.GradNorm/want.metrics.GradNorm-1) > bound(6*c.parts, 1) {
			t.Errorf("%s: gradient norms add up to %v, want %v", what, got.metrics.GradNorm, want.metrics.GradNorm)
		}
	}
}
