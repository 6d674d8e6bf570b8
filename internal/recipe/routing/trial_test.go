package routing

import "testing"

func TestStepTrial(t *testing.T) {
	step, err := Recipe{}.Step(openCPU(t, 1), tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := step.Trial(t.Context()); err != nil || !(s > 0) {
		t.Errorf("%g s per step, %v", s, err)
	}
	c := tiny(t)
	c.Model.NumHeads = 5
	if _, err := (Recipe{}).Step(openCPU(t, 1), c); err == nil {
		t.Error("timed a model that cannot be")
	}
}
