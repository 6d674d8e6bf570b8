package solve

import (
	"testing"
	"time"

	"haul/internal/vrp/files"
)

// TestVROOMOptions: an input says how long and on how many cores where no flag does.
func TestVROOMOptions(t *testing.T) {
	var f solveFlags
	f.search.time, f.workers = searchTime, 8
	f.problem.VROOM = &files.VROOM{Seconds: 30, Threads: 3}
	f.begun = time.Now()
	if o := f.searchOptions(); o.Time.Seconds() < 3 || o.Time.Seconds() > 30 || o.Workers != 3 {
		t.Errorf("%v on %d cores", o.Time, o.Workers)
	}
	f.timeGiven, f.workersGiven = true, true
	if o := f.searchOptions(); o.Time > searchTime || o.Workers != 8 {
		t.Errorf("%v on %d cores", o.Time, o.Workers)
	}
}
