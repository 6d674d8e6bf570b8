package runtest

import (
	"os"
	"runtime"
	"testing"
	"time"

	"haul/internal/run"
)

// held is what a process holds: goroutines, open files, and bytes of Go's heap.
type held struct {
	goroutines, files int
	heap              uint64
}

func holds() held {
	runtime.GC()
	runtime.GC() // what finalizers gave back
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files := 0
	if open, err := os.ReadDir("/proc/self/fd"); err == nil { // elsewhere files are not counted
		files = len(open)
	}
	return held{runtime.NumGoroutine(), files, m.HeapAlloc}
}

// nothingLeft: run after run in one process, finished or interrupted, the process holds no more
// goroutines, files or memory than before.
func (c Case) nothingLeft(t *testing.T) {
	dev := c.Device(t, 2)
	again := func() {
		o := c.options(t, c.Settings, dev)
		d, err := run.OpenDir(Folder(t), false, false)
		if err != nil {
			t.Fatal(err)
		}
		o.Dir = d
		if err := run.Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		again()
	}
	before := holds()
	for range 4 {
		again()
	}
	after := holds()
	for wait := 0; after.goroutines > before.goroutines && wait < 50; wait++ { // those that are ending
		time.Sleep(10 * time.Millisecond)
		after = holds()
	}
	// A test's own bookkeeping grows by folders and environment variables: kilobytes, where a run's
	// programs and weights take hundreds.
	const slack = 128 << 10
	if after.goroutines > before.goroutines || after.files > before.files || after.heap > before.heap+slack {
		t.Errorf("four runs left behind: %+v, before them %+v", after, before)
	}
}
