package rng

import "testing"

// TestThreefryRepeatsJAX: the values are those of jax 0.10.2, key PRNGKey(7).
func TestThreefryRepeatsJAX(t *testing.T) {
	key := NewJAXKey(7)
	for i, want := range []JAXKey{{3625411723, 1954958720}, {195045567, 4062205631}, {966301609, 1948237315}} {
		if got := key.Split(uint32(i)); got != want {
			t.Errorf("split %d is %v, JAX's is %v", i, got, want)
		}
	}
	for i, want := range []uint32{2895194379, 4185947648, 1300703658, 1906787632} {
		if got := key.Bits(uint32(i)); got != want {
			t.Errorf("word %d is %d, JAX's is %d", i, got, want)
		}
	}
	for i, want := range []uint32{102, 25, 3, 40, 25, 89} {
		if got := key.Integer(uint32(i), 3, 103); got != want {
			t.Errorf("integer %d is %d, JAX's is %d", i, got, want)
		}
	}
}
