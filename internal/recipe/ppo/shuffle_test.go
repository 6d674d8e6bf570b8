package ppo

import (
	"slices"
	"testing"

	"haul/internal/rng"
)

// TestSamplesAreDealtByTheirWord: the partner of place i is drawn by word i of the pass, for any
// number of samples.
func TestSamplesAreDealtByTheirWord(t *testing.T) {
	for n := 1; n < 15; n++ {
		l := &learner{order: make([]int32, n), key: 7, pass: 3}
		want := make([]int32, n)
		for i := range want {
			want[i] = int32(i)
		}
		for i := n - 1; i > 0; i-- {
			j := rng.Below(rng.At(7, shuffleIndex+3, uint32(i/4), rng.Learner)[i%4], uint32(i+1))
			want[i], want[j] = want[j], want[i]
		}
		if l.shuffle(); !slices.Equal(l.order, want) || l.pass != 4 {
			t.Errorf("%d samples: %v, want %v, then pass %d", n, l.order, want, l.pass)
		}
	}
}
