package rng

import "testing"

// TestPythonRepeatsRandom: the values are those of Python's random.seed(42), then random(), then
// randrange(11).
func TestPythonRepeatsRandom(t *testing.T) {
	p := NewPython(42)
	for i, want := range []float64{0.6394267984578837, 0.025010755222666936, 0.27502931836911926} {
		if got := p.Float64(); got != want {
			t.Errorf("number %d is %v, Python's is %v", i, got, want)
		}
	}
	p = NewPython(42)
	for i, want := range []uint32{10, 1, 0, 4, 3, 3, 2, 1, 10, 8, 1, 9} {
		if got := p.Below(11); got != want {
			t.Errorf("integer %d is %v, Python's is %v", i, got, want)
		}
	}
	p = NewPython(7)
	for i, want := range []uint32{5, 2, 6, 0, 1, 1, 5, 0, 3, 0, 1, 6} { // a power of two takes a bit more than it needs
		if got := p.Below(8); got != want {
			t.Errorf("integer %d below 8 is %v, Python's is %v", i, got, want)
		}
	}
}
