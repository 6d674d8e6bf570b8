package ledger

import (
	"math"
	"testing"
	"time"

	"haul/internal/kernel"
)

// stub is a step with given costs: wall and plain times by round, and allocations on Go's heap.
type stub struct {
	kernel.Runner
	wall, plain []time.Duration
	round       int
	objects     int // objects allocated per step
	counters    *kernel.Counters
	kept        [][]byte
}

func (s *stub) Run() error {
	s.counters.Launches += 3
	s.counters.Waits++
	s.counters.Allocations += 2
	s.counters.Copied("x", false, 10)
	s.counters.Copied("x", false, 10)
	s.counters.Copied("y", true, 7)
	for range s.objects {
		s.kept = append(s.kept[:0], make([]byte, 1024))
	}
	return nil
}

func (s *stub) TakeMetrics() (kernel.Metrics, error) {
	return kernel.Metrics{Sums: kernel.SumsOf(map[string]float64{kernel.SumRows: 4, kernel.SumDecodes: 26})}, nil
}

func (s *stub) Memory() int64 { return 77 }

func (s *stub) Profile(int) (*kernel.Profile, error) {
	i := s.round % len(s.wall)
	s.round++
	return &kernel.Profile{Program: &kernel.Program{Name: "stub", Batch: 1, Shard: 1}, Workers: 1, Wall: s.wall[i], Plain: s.plain[i]}, nil
}

type stubDevice struct {
	kernel.Device
	counters kernel.Counters
}

func (d *stubDevice) Name() string               { return "stub" }
func (d *stubDevice) Counters() *kernel.Counters { return &d.counters }

// TestTheMedianStepIsKept: of five instrumented steps the one with the median wall time is used.
// The plain time is the median of the plain times.
func TestTheMedianStepIsKept(t *testing.T) {
	ms := func(v ...int) (out []time.Duration) {
		for _, x := range v {
			out = append(out, time.Duration(x)*time.Millisecond)
		}
		return out
	}
	p, err := median(&stub{wall: ms(50, 12, 90, 11, 14), plain: ms(9, 30, 10, 8, 70)}, 5, heard)
	if err != nil {
		t.Fatal(err)
	}
	if p.Wall != 14*time.Millisecond || p.Plain != 10*time.Millisecond {
		t.Errorf("kept a step of %v beside a plain one of %v; the middle ones are 14 and 10 ms", p.Wall, p.Plain)
	}
}

// TestCountsArePerStep: requests to the device and allocations are counted per step.
func TestCountsArePerStep(t *testing.T) {
	dev := &stubDevice{}
	const steps, objects = 40, 5
	s := &stub{objects: objects, counters: &dev.counters, kept: make([][]byte, 0, 1)}
	got, err := count(dev, s, steps, heard)
	if err != nil {
		t.Fatal(err)
	}
	want := Counts{Launches: 3, Waits: 1, CopiesIn: 2, CopiesOut: 1, BytesIn: 20, BytesOut: 7, Allocations: 2, HeapObjects: got.HeapObjects, HeapBytes: got.HeapBytes}
	if got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	// The runtime may allocate some objects itself.
	if got.HeapObjects < objects || got.HeapObjects > 2*objects || got.HeapBytes < 1024*objects || got.HeapBytes > 2*1024*objects {
		t.Errorf("%v objects and %v bytes of heap per step, %d of 1,024 bytes were made", got.HeapObjects, got.HeapBytes, objects)
	}
	s.objects = 0
	if got, err = count(dev, s, steps, heard); err != nil || got.HeapObjects > 1 {
		t.Errorf("%v objects per step where none is made, %v", got.HeapObjects, err)
	}
}

// TestMeasureReportsTheDevice: the device's figures are in the ledger.
func TestMeasureReportsTheDevice(t *testing.T) {
	dev := &stubDevice{}
	s := &stub{counters: &dev.counters, wall: []time.Duration{time.Second}, plain: []time.Duration{800 * time.Millisecond}}
	l, err := Measure(t.Context(), dev, s, &kernel.Program{}, 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	if l.Device != "stub" || l.Memory != 77 || l.PerStep.Launches != 3 || l.Actions != 6.5 || l.Wall != 1 || l.Plain != 0.8 || math.Abs(l.Overhead-0.25) > 1e-12 || len(l.Copies) != 2 {
		t.Errorf("measured %+v", l)
	}
}

// heard is a progress function that continues.
func heard(int) error { return nil }
