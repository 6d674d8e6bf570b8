package doctor

import (
	"strings"
	"testing"
)

// Gradients that are zeroed one by one are told, from 32 per step on.
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
		told := false
		for _, f := range r.Findings {
			told = told || f.ID == "launch-bound" && strings.Contains(strings.Join(f.Evidence, "; "), "zero_grad(set_to_none=True)")
		}
		if told != want {
			t.Errorf("%d per step: %v, %v", n, told, costsOf(r))
		}
	}
}
