package train

import "testing"

func TestStepTrial(t *testing.T) {
	if s, err := StepTrial(openCPU(t, 1), tiny(t)); err != nil || !(s > 0) {
		t.Errorf("%g s a step, %v", s, err)
	}
	c := tiny(t)
	c.Model.NumHeads = 5
	if _, err := StepTrial(openCPU(t, 1), c); err == nil {
		t.Error("timed a model that cannot be")
	}
}
