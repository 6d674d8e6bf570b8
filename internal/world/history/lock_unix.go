//go:build unix

package history

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// hold takes a file for as long as it is open, unless another has it. On a file system without
// locks that is not known.
func hold(f *os.File) (mine, known bool) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	return err == nil, err == nil || errors.Is(err, unix.EWOULDBLOCK)
}
