package model_test

import (
	"math"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
)

// TestMuonParity: steps of a matrix in six blocks equal those of PyTorch's optimizer. PyTorch
// divides by the maximum of the norm and 1e-7, Haul by their sum.
func TestMuonParity(t *testing.T) {
	f := loadFixture(t, "muon_parity.safetensors")
	l := &kernel.Layout{}
	l.Add("w", kernel.InitZero, 1, int(f.number("rows")), int(f.number("columns")))
	widen := func(values []float32) []float64 {
		out := make([]float64, l.Len)
		for i, v := range values {
			out[i] = float64(v)
		}
		return out
	}
	o := &kernel.AdamW{Layout: l, Beta1: 0.9, Beta2: 0.999, Decay: float32(f.number("decay")), MaxNorm: float32(f.number("clip")), Side: int(f.number("side"))}
	if n := len(o.Blocks()); n != 6 {
		t.Fatalf("%d blocks", n)
	}
	w, m, v := widen(f.floats("weights")), make([]float64, l.Len), make([]float64, l.Len)
	state, metrics := kernel.State{}.Normal(), kernel.Metrics{}
	n := l.Params[0].Len()
	gradients, after := f.floats("gradients"), f.floats("after")
	for step := range int(f.number("steps")) {
		reference.AdamW(w, m, v, widen(gradients[step*n:][:n]), o, kernel.Control{LearningRate: float32(f.number("rate"))}, &state, &metrics)
		for i, want := range after[step*n:][:n] {
			if math.Abs(w[i]-float64(want)) > 1e-6 {
				t.Fatalf("step %d: weight %d is %v, PyTorch has %v", step+1, i, w[i], want)
			}
		}
	}
}
