package report

import (
	"slices"
	"strings"
	"testing"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/trace"
)

// TestLabelsAreNumberedOnce: each text has one number and keeps it.
func TestLabelsAreNumberedOnce(t *testing.T) {
	x := newTimeline(0, 10)
	var got []int
	for _, s := range []string{"a", "b", "a", "c", "b"} {
		got = append(got, x.label(s))
	}
	if !slices.Equal(got, []int{0, 1, 0, 2, 1}) || !slices.Equal(x.Labels, []string{"a", "b", "c"}) {
		t.Errorf("%v of %v", got, x.Labels)
	}
}

// TestWorkThatOverlapsCommunication: nothing, or next to nothing where there is a little.
func TestWorkThatOverlapsCommunication(t *testing.T) {
	for _, c := range []struct {
		pieces, top int
		want        string
	}{{1, 1, "nothing"}, {0, 0, "nothing"}, {2, 1, "next to nothing"}, {1, 2, "next to nothing"}} {
		l := analysis.PathLeg{Pieces: c.pieces}
		for range c.top {
			l.Top = append(l.Top, analysis.LegShare{})
		}
		if got := overlapping(l); got != c.want {
			t.Errorf("%d pieces, %d kernels: %s", c.pieces, c.top, got)
		}
	}
}

// TestJobsOfOtherSizesAreNotJoined: traces that name different numbers of ranks are of several
// jobs.
func TestJobsOfOtherSizesAreNotJoined(t *testing.T) {
	of := func(worlds ...int) string {
		j := &Ranks{}
		for _, w := range worlds {
			tr := &trace.Trace{}
			tr.Job.World = w
			j.Ranks = append(j.Ranks, &Report{a: &analysis.Analysis{Trace: tr}})
		}
		return j.unrelated(nil)
	}
	if got := of(2, 2); got != "" {
		t.Errorf("two of two: %s", got)
	}
	if got := of(2, 0); got != "" { // one does not say
		t.Errorf("one of two, one that does not say: %s", got)
	}
	if got := of(2, 4); !strings.Contains(got, "different sizes") {
		t.Errorf("one of two, one of four: %q", got)
	}
}
