package train

import "testing"

// What is measured is what is trained: the stepper's first epoch leaves the weights that a run's leaves.
func TestStepperIsTheRunsStep(t *testing.T) {
	c := tiny(t, "training.num_epochs=1", "training_advanced.use_lr_scheduling=false")
	_, want := whole(t, c, openCPU(t, 2))
	s, err := NewStepper(openCPU(t, 1), c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range c.Training.NumBatchesPerEpoch {
		if err := s.Step(); err != nil {
			t.Fatal(err)
		}
	}
	state, err := s.runner.State()
	if err != nil || state != want.Progress.Device {
		t.Errorf("state is %+v, a run's %+v, %v", state, want.Progress.Device, err)
	}
	flops, err := s.FLOPs()
	if err != nil || flops <= 0 {
		t.Errorf("%d operations, %v", flops, err)
	}
	if again, err := s.FLOPs(); err != nil || again != 0 {
		t.Errorf("%d operations without a step, %v", again, err)
	}
}
