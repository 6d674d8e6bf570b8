package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// openUnnamed opens a file without a name in path's folder, or a hidden one where the file system
// has no such files.
func openUnnamed(path string) (f *os.File, named bool, err error) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return openNamed(path)
	}
	return os.NewFile(uintptr(fd), path), false, nil
}

// linkUnnamed names a file; a name that is taken is an error.
func linkUnnamed(f *os.File, path string) error {
	err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "link", Old: f.Name(), New: path, Err: err}
	}
	return nil
}

// ended says that no process has that number.
func ended(number string) bool {
	pid, err := strconv.Atoi(number)
	return err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// syncFolder brings names to the disk, where the file system can.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	return nil
}
