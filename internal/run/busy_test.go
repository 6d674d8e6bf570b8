package run

import (
	"errors"
	"math"
	"testing"
	"time"

	"haul/internal/kernel"
)

// clocked is a runner whose device measures the time of steps.
type clocked struct {
	kernel.Runner
	took  time.Duration
	known bool
	err   error
}

func (c clocked) StepTime() (time.Duration, bool, error) { return c.took, c.known, c.err }

// unclocked is a runner whose device does not measure time.
type unclocked struct{ kernel.Runner }

// TestBusyGoesByTheDevicesClock: Busy uses the device's time of a step if it is measured, else the
// time in which the host did not wait.
func TestBusyGoesByTheDevicesClock(t *testing.T) {
	s := &Interval{Seconds: 2, Waited: 0.5}
	for _, c := range []struct {
		name string
		r    kernel.Runner
		want float64
	}{
		{"half of the time", clocked{took: 10 * time.Millisecond, known: true}, 0.5},
		{"never more than all of it", clocked{took: 50 * time.Millisecond, known: true}, 1},
		{"nothing timed yet", clocked{took: 10 * time.Millisecond}, 0.75},
		{"a clock that fails", clocked{took: 10 * time.Millisecond, known: true, err: errors.New("lost")}, 0.75},
		{"no clock", unclocked{}, 0.75},
	} {
		if got := s.Busy(c.r, 100); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
