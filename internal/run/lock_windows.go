package run

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile takes the file's lock, which the system drops when the process ends.
func lockFile(f *os.File) (taken bool, err error) {
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	return errors.Is(err, windows.ERROR_LOCK_VIOLATION), err
}

// syncDir has nothing to do: Windows offers no sync of a folder.
func syncDir(string) error { return nil }
