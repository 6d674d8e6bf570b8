package runtest

import (
	"os"
	"strings"
	"syscall"
)

// roomInMemory exceeds what the tests of a package write.
const roomInMemory = 1 << 30

// Memory puts temporary folders into memory until done is called, if there is enough of it.
// TestMain calls it: checkpoints and rows are synced to the disk, and tests of many runs would wait
// for the disk most of the time. Other tests check what reaches the disk, and in which order.
func Memory() (done func()) {
	const at = "/dev/shm"
	var s syscall.Statfs_t
	if strings.HasPrefix(os.TempDir(), at) { // the parent process has called Memory
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
