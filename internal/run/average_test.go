package run

import (
	"testing"

	"haul/internal/kernel"
)

// shelf is a store of one weight.
type shelf struct {
	kernel.Store
	w float32
}

func (s *shelf) ReadWeights(dst []float32) error  { dst[0] = s.w; return nil }
func (s *shelf) WriteWeights(src []float32) error { s.w = src[0]; return nil }

// TestAverageByHand: the plain mean comes first, then the moving average. The initial weight does
// not enter it, and Advance can be undone.
func TestAverageByHand(t *testing.T) {
	mean, policy := &shelf{w: 100}, &shelf{}
	a := newAverage(mean, 1, 0.75)
	for i, want := range []float32{8, 6, 4, 4, 5} { // 8, (8+4)/2, (8+4+0)/3, 3/4·4+1/4·4, 3/4·4+1/4·8
		policy.w = []float32{8, 4, 0, 4, 8}[i]
		before := mean.w
		undo, err := a.Advance(policy, i)
		if err != nil || mean.w != want {
			t.Fatalf("after %d moves the mean is %v, %v; want %v", i+1, mean.w, err, want)
		}
		if err := undo(); err != nil || mean.w != before {
			t.Fatalf("taken back, the mean is %v, %v; want %v", mean.w, err, before)
		}
		if _, err := a.Advance(policy, i); err != nil || mean.w != want {
			t.Fatalf("made again, the mean is %v, %v; want %v", mean.w, err, want)
		}
	}
}
