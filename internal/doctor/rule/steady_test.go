package rule

import (
	"testing"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/trace"
)

// Allocations are steady where more than half of the steps have one; of a recording without steps,
// half of its tenths.
func TestAllocationsAreSteady(t *testing.T) {
	for with, want := range map[int]bool{4: false, 5: false, 6: true} {
		a := new(analysis.Analysis)
		a.Marked, a.CPUSteps, a.AllocIn = true, make([]trace.Window, 10), map[int]int{}
		for step := range with {
			a.AllocIn[step*10] = 1
			a.AllocIn[step*10+9] = 1
		}
		if steadyAllocs(a) != want {
			t.Errorf("%d of 10 steps: %v", with, !want)
		}
	}
	for tenths, want := range map[int]bool{4: false, 5: true} {
		a := new(analysis.Analysis)
		a.AllocIn = map[int]int{}
		for i := range tenths {
			a.AllocIn[i] = 1
		}
		if steadyAllocs(a) != want {
			t.Errorf("%d tenths: %v", tenths, !want)
		}
	}
}
