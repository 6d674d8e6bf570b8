//go:build unix

package data_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
)

// Histories take their name when they are whole, so that --force would put a file in the place of a
// device or a pipe.
func TestHistoriesReplaceFilesAlone(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "a.hist")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	r := inprocess.Run(t, "data", "xland", "R1-5x5", "--learn", "1", "--held", "1", "--episodes", "1", "--out", pipe, "--force")
	if r.Code != cli.ExitFailed || !strings.HasSuffix(r.Stderr, pipe+" is no regular file: name another\n") {
		t.Errorf("exit %d, %q", r.Code, r.Stderr)
	}
	if info, err := os.Stat(pipe); err != nil || info.Mode().IsRegular() {
		t.Errorf("the pipe is %v, %v", info, err)
	}
}
