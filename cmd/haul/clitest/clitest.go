// Package clitest has what tests of command lines share, whether these run inside the test
// (cmd/haul) or as a process of their own (cmd/haul/e2e).
package clitest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Object is the one JSON object that a command line which succeeded has printed, and nothing else.
func Object(t *testing.T, args []string, code int, stdout, stderr string) map[string]any {
	t.Helper()
	if code != 0 {
		t.Fatalf("%v: exit %d, %s", args, code, stderr)
	}
	if stderr != "" || strings.Count(stdout, "\n") != 1 {
		t.Errorf("%v: want one line on stdout alone, got %q and %q", args, stdout, stderr)
	}
	var v map[string]any
	if err := json.Unmarshal([]byte(stdout), &v); err != nil {
		t.Fatalf("%v: %v in %q", args, err, stdout)
	}
	return v
}

// Refused: a command line has ended with that code, one line on standard error that says `says`,
// and nothing on standard output.
func Refused(t *testing.T, code int, stdout, stderr string, want int, says string) {
	t.Helper()
	if code != want {
		t.Errorf("exit %d, want %d", code, want)
	}
	if stdout != "" {
		t.Errorf("standard output holds %q", stdout)
	}
	if !strings.HasPrefix(stderr, "haul: ") || strings.Count(stderr, "\n") != 1 || !strings.HasSuffix(stderr, "\n") {
		t.Errorf("not one line: %q", stderr)
	}
	if !strings.Contains(stderr, says) {
		t.Errorf("%q does not say %q", stderr, says)
	}
}

// Write writes a file of that name into a folder of its own and returns its path.
func Write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
