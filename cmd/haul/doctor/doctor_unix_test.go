//go:build unix

package doctor_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/root"
)

// Ctrl-C ends the doctor whatever it is doing; here it waits for a pipe that nobody writes to.
func TestDoctorEndsOnInterrupt(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "trace.json")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	var stdout, stderr bytes.Buffer
	code := root.Execute(ctx, []string{"doctor", pipe}, &stdout, &stderr)
	if code != cli.ExitInterrupted || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("exit %d, %q, stdout %q", code, stderr.String(), stdout.String())
	}
}
