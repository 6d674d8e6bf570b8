package rng

import "testing"

// TestMT19937RepeatsNumPy: the values are those of numpy.random.seed(1234), then uniform(), then
// randint(1, 10), and those of the generator's authors for seed 5489.
func TestMT19937RepeatsNumPy(t *testing.T) {
	m := NewMT19937(5489)
	for range 9999 {
		m.Uint32()
	}
	if got := m.Uint32(); got != 4123659995 {
		t.Errorf("word 10,000 of seed 5489 is %d", got)
	}
	m = NewMT19937(1234)
	for i, want := range []float64{0.1915194503788923, 0.6221087710398319, 0.4377277390071145} {
		if got := m.Float64(); got != want {
			t.Errorf("number %d of seed 1234 is %v, NumPy's is %v", i, got, want)
		}
	}
	m = NewMT19937(1234)
	for i, want := range []uint32{4, 7, 6, 5, 9, 2, 8, 7, 9, 1, 6, 1} {
		if got := m.Integer(1, 10); got != want {
			t.Errorf("integer %d of seed 1234 is %v, NumPy's is %v", i, got, want)
		}
	}
}
