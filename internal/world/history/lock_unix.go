//go:build unix

package history

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// hold locks a file while it is open, unless another process has locked it. known is false on file
// systems without locks.
func hold(f *os.File) (mine, known bool) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	return err == nil, err == nil || errors.Is(err, unix.EWOULDBLOCK)
}
