package runtest

import (
	"os"
	"runtime"
	"testing"
	"time"

	"haul/internal/run"
)

// resources counts resources of the process: goroutines, open files, and bytes of Go's heap.
type resources struct {
	goroutines, files int
	heap              uint64
}

func countResources() resources {
	runtime.GC()
	runtime.GC() // also runs finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files := 0
	if open, err := os.ReadDir("/proc/self/fd"); err == nil { // other systems: files are not counted
		files = len(open)
	}
	return resources{runtime.NumGoroutine(), files, m.HeapAlloc}
}

// nothingLeft: after many runs in one process, finished or interrupted, the process holds no more
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
	before := countResources()
	for range 4 {
		again()
	}
	after := countResources()
	for wait := 0; after.goroutines > before.goroutines && wait < 50; wait++ { // goroutines that are about to end
		time.Sleep(10 * time.Millisecond)
		after = countResources()
	}
	// The test itself keeps some kilobytes of folders and environment variables. Programs and
	// weights of a leaked run would be hundreds.
	const slack = 128 << 10
	if after.goroutines > before.goroutines || after.files > before.files || after.heap > before.heap+slack {
		t.Errorf("four runs left behind: %+v, before them %+v", after, before)
	}
}
