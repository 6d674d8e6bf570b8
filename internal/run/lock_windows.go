package run

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile locks a file. taken is true if another process holds the lock. The system releases the
// lock when the process ends.
func lockFile(f *os.File) (taken bool, err error) {
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	return errors.Is(err, windows.ERROR_LOCK_VIOLATION), err
}

// syncDir does nothing: Windows cannot sync a folder.
func syncDir(string) error { return nil }
