package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A result is replaced whole, with the mode it had, whether its name is free or not, and nothing is
// beside it afterwards. What a killed process left is swept once it is old, and nothing else is.
func TestResultsLeaveNothingBeside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.sol")
	old := time.Now().Add(-2 * sweepAfter)
	put := func(name string, at time.Time) {
		t.Helper()
		full := filepath.Join(dir, name)
		if err := os.WriteFile(full, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(full, at, at); err != nil {
			t.Fatal(err)
		}
	}
	put(".x.sol.123.tmp", old)
	if runtime.GOOS == "linux" {
		put(".x.sol.p999999999.tmp", time.Now()) // a process that cannot be there
		put(fmt.Sprintf(".x.sol.p%d.tmp", os.Getppid()), time.Now())
	}
	put(".x.sol.124.tmp", time.Now())
	put(".x.sol.notes.tmp", old)
	put(".y.sol.123.tmp", old)
	put(".x.sol..tmp", old)
	for _, text := range []string{"first", "second", "third"} {
		if err := replaceFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Fatalf("%q, %v", got, err)
		}
		if st, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && text != "first" && st.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", st.Mode(), err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	left := map[string]bool{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left[e.Name()] = true
	}
	if runtime.GOOS == "linux" {
		if name := fmt.Sprintf(".x.sol.p%d.tmp", os.Getppid()); !left[name] {
			t.Errorf("%s, which a living process writes, has gone", name)
		} else {
			delete(left, name)
		}
	}
	for _, name := range []string{"x.sol", ".x.sol.124.tmp", ".x.sol.notes.tmp", ".y.sol.123.tmp", ".x.sol..tmp"} {
		if !left[name] {
			t.Errorf("%s has gone", name)
		}
		delete(left, name)
	}
	for name := range left {
		t.Errorf("%s is left", name)
	}
}

// While a result is written, nothing of it has a name: a kill leaves nothing.
func TestAResultHasNoNameUntilItIsWhole(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("files without a name are Linux's")
	}
	dir := t.TempDir()
	f, named, err := openUnnamed(filepath.Join(dir, "x.sol"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if named {
		t.Skipf("the file system of %s has no files without a name", dir)
	}
	if err := fill(f, []byte("whole"), 0o644); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
	if err := linkUnnamed(f, filepath.Join(dir, "x.sol")); err != nil {
		t.Fatal(err)
	}
	if err := linkUnnamed(f, filepath.Join(dir, "x.sol")); err == nil {
		t.Error("a name was taken twice")
	}
}

// Looking whether a result can be written makes no file that a kill could leave.
func TestTheProbeHasNoName(t *testing.T) {
	source, err := os.ReadFile("output.go")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(source), "CreateTemp") {
		t.Error("output.go makes a file with a name of its own, which a kill leaves behind: use openUnnamed")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	if f, named, err := openUnnamed(filepath.Join(dir, "x")); err == nil {
		if f.Close(); named {
			os.Remove(f.Name())
		}
		if os.Geteuid() != 0 {
			t.Error("a folder that cannot be written is taken")
		}
	}
}

// TestAResultIsSynced: the content of a result is brought to the disk before it gets its name. A
// pipe takes content and has no disk, and says so.
func TestAResultIsSynced(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := fill(w, []byte("x"), 0o644); err == nil || !strings.Contains(err.Error(), "sync") {
		t.Errorf("%v: fsync of a pipe is invalid", err)
	}
}
