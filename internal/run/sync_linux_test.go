package run

import (
	"errors"
	"syscall"
	"testing"
)

// TestAFolderIsSynced: the call reaches the file system, of which one that keeps nothing says so.
func TestAFolderIsSynced(t *testing.T) {
	if err := syncDir("/proc/self"); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("%v: fsync of /proc is invalid", err)
	}
	if err := syncDir(t.TempDir()); err != nil {
		t.Error(err)
	}
}
