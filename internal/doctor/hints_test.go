package doctor

import (
	"strings"
	"testing"
)

// Gradients that are cleared separately are mentioned, from 32 per step on.
func TestZeroedOneByOne(t *testing.T) {
	for n, want := range map[int]bool{31: false, 32: true} {
		s := newSynth()
		for k := range 3 {
			s.gpu = s.now
			s.step(k, func() {
				for range n {
					s.kernelOp("aten::zero_", "", 1, 0.01)
				}
				for range 400 {
					s.kernelOp("aten::add", "", 1, 0.01)
				}
			})
		}
		r := diagnose(t, s.json())
		noted := false
		for _, f := range r.Findings {
			noted = noted || f.ID == "launch-bound" && strings.Contains(strings.Join(f.Evidence, "; "), "zero_grad(set_to_none=True)")
		}
		if noted != want {
			t.Errorf("%d per step: %v, %v", n, noted, costsOf(r))
		}
	}
}

// Kernels of an optimizer that updates its parameters separately are small with any batch, so a GPU
// that they leave unfilled shows nothing about the batch.
func TestAnOptimizerSaysNothingOfTheBatch(t *testing.T) {
	for name, want := range map[string]bool{"Optimizer.step#Adam.step": false, "mine": true} {
		s := newSynth()
		for n := range 3 {
			s.step(n, func() {
				s.kernelOp("aten::linear", "", 600, 4)
				start := s.now
				for range 400 {
					s.kernelOp("aten::addcdiv_", "[64]", 3, 0.01)
				}
				s.emit("user_annotation", name, start, s.now-start, "")
			})
		}
		r := diagnose(t, s.json())
		text := strings.Join(r.Findings[0].Evidence, "; ")
		if r.Findings[0].ID != "launch-bound" || strings.Contains(text, "larger batch is nearly free") != want {
			t.Errorf("%s: %s: %s", name, r.Findings[0].ID, text)
		}
	}
}
