package run

import (
	"errors"
	"syscall"
	"testing"
)

// TestAFolderIsSynced: fsync reaches the file system; procfs, which cannot sync, returns an error.
func TestAFolderIsSynced(t *testing.T) {
	if err := syncDir("/proc/self"); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("%v: fsync of /proc is invalid", err)
	}
	if err := syncDir(t.TempDir()); err != nil {
		t.Error(err)
	}
}
