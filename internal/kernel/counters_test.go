package kernel

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCopiesAreBookedByTagAndDirection(t *testing.T) {
	var c Counters
	c.Copied("control", false, 16)
	c.Copied("metrics", true, 88)
	before := c.Tagged()
	c.Copied("control", false, 16)
	if c.CopiesIn != 2 || c.BytesIn != 32 || c.CopiesOut != 1 || c.BytesOut != 88 {
		t.Errorf("sums are %+v", c)
	}
	if diff := cmp.Diff([]Copies{{"control", false, 1, 16}, {"metrics", true, 1, 88}}, before); diff != "" {
		t.Error("a list that was taken changed: ", diff)
	}
	if diff := cmp.Diff([]Copies{{"control", false, 2, 32}, {"metrics", true, 1, 88}}, c.Tagged()); diff != "" {
		t.Error(diff)
	}
}
