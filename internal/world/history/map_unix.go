//go:build unix

package history

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps the file read-only. Its pages are in the system's cache and shared by all runs that
// read the file.
func mapFile(f *os.File, size int) ([]byte, func() error, error) {
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return data, func() error { return unix.Munmap(data) }, nil
}
