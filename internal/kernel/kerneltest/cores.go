package kerneltest

import (
	"os"
	"runtime"
	"testing"
)

// cores are those that the process began with.
var cores = runtime.GOMAXPROCS(0)

// OneCore has a package's tests use one core, whatever the number of their workers; it is for
// TestMain. go test runs as many packages side by side as there are cores. A worker on another core
// would spin at every barrier until another package's tests let the first one go on: a quarter of
// the CPU seconds. On one core the workers take turns, and each hands its core to the next at once.
// Under the race detector, and where GOMAXPROCS is set, nothing changes.
func OneCore() {
	if !raced && os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
}

// AllCores has the rest of a test use every core: what it tries depends on workers that run at the
// same moment.
func AllCores(t *testing.T) {
	was := runtime.GOMAXPROCS(cores)
	t.Cleanup(func() { runtime.GOMAXPROCS(was) })
}
