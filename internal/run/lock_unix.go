//go:build unix

package run

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks a file. taken is true if another process holds the lock. The kernel releases the
// lock when the process ends.
func lockFile(f *os.File) (taken bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	return errors.Is(err, unix.EWOULDBLOCK), err
}

// syncDir makes a rename in the folder survive a power failure.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
