package routing

import (
	"testing"

	"haul/internal/policy"

	"github.com/google/go-cmp/cmp"
)

// The compiled step is the step that a run trains with: after one epoch both leave the same state.
func TestCompiledStepIsTheRunsStep(t *testing.T) {
	c := tiny(t, "training.num_epochs=1", "training_advanced.use_lr_scheduling=false")
	_, want := whole(t, c, openCPU(t, 2))
	s, err := CompileStep(openCPU(t, 1), c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Runner.Close()
	for range c.Training.NumBatchesPerEpoch {
		if err := s.Runner.Run(); err != nil {
			t.Fatal(err)
		}
	}
	state, err := s.Runner.State()
	if err != nil || !cmp.Equal(state, want.Progress.Device) {
		t.Errorf("state is %+v, a run's %+v, %v", state, want.Progress.Device, err)
	}
	m, err := policy.NewNetwork(c)
	if err != nil {
		t.Fatal(err)
	}
	least := int64(c.Training.NumBatchesPerEpoch*c.Training.BatchSize) * m.EncodeFLOPs(c.Problem.NumCustomers()+1) * 4
	if flops, err := s.FLOPs(); err != nil || flops <= least {
		t.Errorf("%d operations, %v; four encodings an instance are %d", flops, err, least)
	}
	if flops, err := s.FLOPs(); err != nil || flops != 0 {
		t.Errorf("%d operations without a step, %v", flops, err)
	}
}
