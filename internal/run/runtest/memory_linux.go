package runtest

import (
	"os"
	"strings"
	"syscall"
)

// roomInMemory is what a package's tests may take, and more.
const roomInMemory = 1 << 30

// Memory has temporary folders made in memory, where it has room for them, until done. It is for
// TestMain. A run brings every checkpoint and every row to the disk, and tests of many runs would
// wait for it most of the time; what reaches the disk, and in which order, has tests of its own.
func Memory() (done func()) {
	const at = "/dev/shm"
	var s syscall.Statfs_t
	if strings.HasPrefix(os.TempDir(), at) { // the process that started this one did it
		return func() {}
	}
	if err := syscall.Statfs(at, &s); err != nil || s.Bavail*uint64(s.Bsize) < roomInMemory {
		return func() {}
	}
	dir, err := os.MkdirTemp(at, "haul-test-")
	if err != nil {
		return func() {}
	}
	was, set := os.LookupEnv("TMPDIR")
	os.Setenv("TMPDIR", dir)
	return func() {
		os.Unsetenv("TMPDIR")
		if set {
			os.Setenv("TMPDIR", was)
		}
		os.RemoveAll(dir)
	}
}
