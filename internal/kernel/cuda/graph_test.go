package cuda

import (
	"fmt"
	"slices"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// TestChain: a launch waits for the one before it, one beside another for what that one waits for,
// and what follows for both.
func TestChain(t *testing.T) {
	var waits []string
	add := func(_ ready, wait []string) (string, error) {
		waits = append(waits, fmt.Sprint(wait))
		return fmt.Sprint(len(waits)), nil
	}
	end, err := chain([]ready{{}, {beside: true}, {}, {}, {beside: true}}, []string{"x", "y"}, add)
	want := []string{"[x y]", "[x y]", "[1 2]", "[3]", "[3]"}
	if err != nil || !slices.Equal(waits, want) || !slices.Equal(end, []string{"4", "5"}) {
		t.Errorf("launches wait for %v, want %v; followers wait for %v, want 4 and 5 (%v)", waits, want, end, err)
	}
	if end, err := chain(nil, []string{"x"}, add); err != nil || !slices.Equal(end, []string{"x"}) {
		t.Errorf("behind no launch followers wait for %v, want what it would wait for (%v)", end, err)
	}
}

// TestAsidesHaveOneWriter: what ends a gradient stands aside, but not where another op adds to a
// gradient, which must wait for it.
func TestAsidesHaveOneWriter(t *testing.T) {
	p := step(t, 512, 101, 128, 4, 1, 0)
	asides := func(ops []kernel.Op) (n int) {
		all, err := launchesOfAll(testBinder(p, bind.TF32), ops)
		if err != nil {
			t.Fatal(err)
		}
		for _, ls := range all {
			for _, l := range ls {
				if l.Aside {
					n++
				}
			}
		}
		return n
	}
	if n := asides(p.PerShard); n == 0 {
		t.Error("nothing stands aside")
	}
	for _, op := range p.PerShard {
		if _, ok := op.(*kernel.NormGrad); ok {
			if n := asides(append(slices.Clip(p.PerShard), op)); n != 0 {
				t.Errorf("%d launches stand aside though a norm's gradient is written twice", n)
			}
			return
		}
	}
	t.Error("the step has no norm")
}
