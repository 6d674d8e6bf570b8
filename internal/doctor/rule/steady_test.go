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

// Python is the loop's where its time between operators passes one and a half times the whole way
// to a launch: operators, launches and copies.
func TestPythonIsComparedWithTheWholeWay(t *testing.T) {
	for _, c := range []struct {
		op, launch, copies float64
		want               bool
	}{{100, 50, 50, false}, {99, 50, 50, true}, {100, 49, 50, true}, {100, 50, 49, true}} {
		a := &analysis.Analysis{Trace: new(trace.Trace)}
		a.Wall = 1000
		a.Devices = append(a.Devices, nil)
		a.Idle[analysis.IdleBetween] = 300
		a.Idle[analysis.IdleOp], a.Idle[analysis.IdleLaunch], a.Idle[analysis.IdleCopy] = c.op, c.launch, c.copies
		if got := pythonBound.find(a, 0) != nil; got != c.want {
			t.Errorf("operators %v, launches %v, copies %v: %v", c.op, c.launch, c.copies, got)
		}
	}
}
