package search

import (
	"testing"
	"time"
)

// Small problems are annealed as often as the budget holds 450 iterations per task, or 22,500; each
// time from the first temperature.
func TestRichCycles(t *testing.T) {
	for _, x := range []struct{ tasks, iterations, want int }{
		{20, 17_999, 1}, {20, 18_000, 2},
		{50, 44_999, 1}, {50, 45_000, 2},
		{100, 44_999, 1}, {100, 45_000, 2}, {100, 15 * 22_500, 15}, {100, 17 * 22_500, 16},
		{101, 45_000, 1}, {101, 2*12_800*101 - 1, 1}, {101, 2 * 12_800 * 101, 2}, {101, 20 * 12_800 * 101, 8},
	} {
		d := &richDriver{o: Options{Iterations: x.iterations}, begun: time.Now(), m: &model{tasks: make([]int32, x.tasks)}}
		got := d.cycles()
		if len(got) != x.want {
			t.Errorf("%d tasks, %d iterations: %d annealings, %d expected", x.tasks, x.iterations, len(got), x.want)
		}
		if last := got[len(got)-1]; last.until != 1 || x.tasks <= 100 && last.hot != got[0].hot || x.tasks > 100 && len(got) > 1 && last.hot != richHotAgain {
			t.Errorf("%d tasks, %d iterations: the last annealing is %v, the first %v", x.tasks, x.iterations, last, got[0])
		}
	}
}
