package cuda

import (
	"fmt"
	"slices"
	"testing"
)

// TestChain: a launch waits for the one before it, one beside another for what that one waits for, and what follows for both.
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
