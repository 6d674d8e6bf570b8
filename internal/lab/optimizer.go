package lab

import (
	"context"
	"fmt"
	"math"

	"haul/internal/kernel"
	"haul/internal/model"
)

// The optimizer's constants, equal for every contender.
const (
	adamScale = float32(0.5)
	adamBeta1 = float32(0.9)
	adamBeta2 = float32(0.999)
	adamKeep  = float32(1 - 1e-5)
	adamRate  = float32(1e-4)
	adamEps   = float32(1e-8)
)

// adam is the state of a model's optimizer on the host.
type adam struct {
	params     []kernel.Param
	w, m, v, g []float32
}

// tinyLayout returns the layout of tiny_1's parameters.
func tinyLayout() (*kernel.Layout, error) {
	m, err := model.NewGT(model.GTConfig{Width: 128, Heads: 4, Layers: 3, FeedMul: 2})
	if err != nil {
		return nil, err
	}
	return m.Layout(), nil
}

func newAdam(l *kernel.Layout) *adam {
	a := &adam{params: l.Params, w: make([]float32, l.Len), m: make([]float32, l.Len), v: make([]float32, l.Len), g: make([]float32, l.Len)}
	for _, p := range l.Params { // padding between parameters stays zero in every contender
		for i := p.Offset; i < p.Offset+p.Len(); i++ {
			a.w[i], a.g[i] = float32(i%7)-3, float32(i%11)/11-0.5
		}
	}
	return a
}

// fused updates the flat buffers in one pass.
func (a *adam) fused() {
	w := a.w
	m, v, g := a.m[:len(w)], a.v[:len(w)], a.g[:len(w)]
	for i := range w {
		gi := g[i] * adamScale
		mi := adamBeta1*m[i] + (1-adamBeta1)*gi
		vi := adamBeta2*v[i] + (1-adamBeta2)*gi*gi
		m[i], v[i] = mi, vi
		w[i] = w[i]*adamKeep - adamRate*mi/(float32(math.Sqrt(float64(vi)))+adamEps)
	}
}

// passes updates each parameter by one pass per operation, and writes each intermediate result.
func (a *adam) passes(scaled []float32) {
	for _, p := range a.params {
		lo, hi := p.Offset, p.Offset+p.Len()
		w := a.w[lo:hi]
		m, v, g, s := a.m[lo:hi][:len(w)], a.v[lo:hi][:len(w)], a.g[lo:hi][:len(w)], scaled[lo:hi][:len(w)]
		for i := range w {
			s[i] = g[i] * adamScale
		}
		for i := range w {
			m[i] = adamBeta1*m[i] + (1-adamBeta1)*s[i]
		}
		for i := range w {
			v[i] = adamBeta2*v[i] + (1-adamBeta2)*s[i]*s[i]
		}
		for i := range w {
			w[i] *= adamKeep
		}
		for i := range w {
			w[i] -= adamRate * m[i] / (float32(math.Sqrt(float64(v[i]))) + adamEps)
		}
	}
}

// sameWeights compares two states after the same number of steps.
func sameWeights(a, b []float32) error {
	for i := range a {
		if d := math.Abs(float64(a[i] - b[i])); !(d <= 1e-5*(1+math.Abs(float64(a[i])))) {
			return fmt.Errorf("the passes leave weight %d at %v, the fused one at %v", i, b[i], a[i])
		}
	}
	return nil
}

func optimizerCPU(ctx context.Context, _ *env, r *Result) error {
	l, err := tinyLayout()
	if err != nil {
		return err
	}
	big := &kernel.Layout{}
	for i := range 8 {
		big.Add(fmt.Sprint(i), kernel.InitZero, 1, 1<<19)
	}
	for _, c := range []struct {
		what   string
		layout *kernel.Layout
	}{{"tiny_1", l}, {"larger than the cache", big}} {
		one, many := newAdam(c.layout), newAdam(c.layout)
		scaled := make([]float32, c.layout.Len)
		one.fused()
		many.passes(scaled)
		if err := sameWeights(one.w, many.w); err != nil {
			return err
		}
		t, err := race(ctx, cpuRounds, plain(one.fused), plain(func() { many.passes(scaled) }))
		if err != nil {
			return err
		}
		r.row("s", t[1], "%s, %s weights: five passes, parameter by parameter", c.what, thousands(int64(c.layout.Count())))
		r.row("s", t[0], "%s, %s weights: one pass over the flat buffer", c.what, thousands(int64(c.layout.Count())))
		r.finds(direction("003", "a fused optimizer is faster than separate passes ("+c.what+")"), t[1]/t[0])
	}
	r.note("plain Go on one core on both sides, so that only the passes differ; a training step uses the vector kernel on all cores")
	return nil
}
