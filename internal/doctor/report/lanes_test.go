package report

import (
	"slices"
	"testing"

	"haul/internal/doctor/trace"
)

// A row with few marks keeps all. In a row with many marks, neighbouring marks are merged.
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

// A thread is shown for the least work that it has in the window; calls weigh a sixteenth.
func TestThreadsWithWorkAreShown(t *testing.T) {
	w := trace.Span{Start: 100, End: 200}
	op := func(start int64, ns float32) *trace.Thread {
		th := new(trace.Thread)
		th.Ops.Add(trace.Op{Start: start, Dur: ns})
		return th
	}
	call := func(ns float32) *trace.Thread {
		th := new(trace.Thread)
		th.Calls.Add(trace.Call{Start: 150, Dur: ns})
		return th
	}
	for _, c := range []struct {
		what string
		th   *trace.Thread
		want int
	}{
		{"no work", new(trace.Thread), 0}, {"an operator before", op(90, 10), 0}, {"its last nanosecond", op(90, 11), 1}, {"an operator behind", op(200, 5), 0},
		{"its first nanosecond", op(199, 5), 1}, {"calls of 15 ns", call(15), 0}, {"calls of 16 ns", call(16), 1},
	} {
		if got := busiestIn([]*trace.Thread{c.th}, w); len(got) != c.want {
			t.Errorf("%s: %d shown, want %d", c.what, len(got), c.want)
		}
	}
}
