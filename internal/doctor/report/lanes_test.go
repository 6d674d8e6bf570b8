package report

import (
	"slices"
	"testing"

	"haul/internal/doctor/trace"
)

// A lane with few marks keeps each; of many, those that stand close together become one.
func TestLanesMergeOnlyWhatIsMany(t *testing.T) {
	build := func(n int) *lane {
		l := &lane{}
		for i := range n {
			at := int64(1000 + 10*i)
			l.list = append(l.list, mark{trace.Span{Start: at, End: at + 5}, 0, "gemm", -1})
		}
		tl := newTimeline(1000, 2000)
		tl.add(l, trace.Span{Start: 1000, End: 2000}, 10, 5)
		return tl.Lanes[0]
	}
	few := build(10)
	if len(few.Marks) != 40 || !slices.Equal(few.Marks[:8], []int64{0, 5, 0, 0, 5, 5, 0, 0}) {
		t.Errorf("%v", few.Marks)
	}
	if many := build(100); len(many.Marks) >= 400 || len(many.Marks) == 0 {
		t.Errorf("%d marks of 100", len(many.Marks)/4)
	}
	tl := newTimeline(0, 10)
	if tl.add(&lane{}, trace.Span{Start: 0, End: 10}, 10, 5); len(tl.Lanes) != 0 {
		t.Error("an empty lane is filed")
	}
}
