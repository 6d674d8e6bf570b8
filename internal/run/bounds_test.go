package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"haul/internal/config"
)

// text is a Settings whose YAML is given.
type text struct {
	config.Settings
	yaml string
}

func (t text) YAML() ([]byte, error) { return []byte(t.yaml), nil }

// Settings are compared up to the last line of the longer text.
func TestSettingsAreComparedWhole(t *testing.T) {
	for _, c := range []struct{ a, b, words string }{
		{"x: 1\ny: 2\n", "x: 1\ny: 2\n", ""},
		{"x: 1\ny: 2", "x: 1\ny: 2\n", ""},
		{"x: 1\n", "x: 1\ny: 2\n", `without "y: 2"`},
		{"x: 1\ny: 2\n", "x: 1\n", `with "y: 2", which is missing here`},
		{"x: 1\ny: 2", "x: 1", `with "y: 2", which is missing here`},
		{"x: 1\ny: 2\n", "x: 1\ny: 3\n", `with "y: 2", not "y: 3"`},
	} {
		err := sameText(text{yaml: c.a}, text{yaml: c.b})
		if c.words == "" && err != nil || c.words != "" && (err == nil || !strings.Contains(err.Error(), c.words)) {
			t.Errorf("%q and %q: %v", c.a, c.b, err)
		}
	}
}

// A file as large as the disk's free bytes fits, one byte more does not, and the error states both
// sizes.
func TestDisksHaveTheirBound(t *testing.T) {
	for _, c := range []struct {
		bytes, free int64
		known       bool
		words       string
	}{
		{999, 1000, true, ""}, {1000, 1000, true, ""}, {1001, 1000, true, "a takes 1001 bytes, its disk has 1000 bytes free"},
		{1001, 1000, false, ""}, {300 << 10, 200 << 10, true, "a takes 300 KiB, its disk has 200 KiB free"},
		{3 << 30, 2 << 20, true, "a takes 3072 MiB, its disk has 2048 KiB free"},
	} {
		err := fitsIn("a", c.bytes, c.free, c.known)
		if c.words == "" && err != nil || c.words != "" && (err == nil || err.Error() != c.words) {
			t.Errorf("%d of %d: %v", c.bytes, c.free, err)
		}
	}
	for n, want := range map[int64]string{0: "0 bytes", 10<<10 - 1: "10239 bytes", 10 << 10: "10 KiB", 10<<20 - 1: "10240 KiB", 10 << 20: "10 MiB"} {
		if got := mebibytes(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	if err := FitsDisk(filepath.Join(t.TempDir(), "a"), 1<<62); err == nil {
		t.Error("4 EiB fit on a disk")
	}
}

// If the lock of a new folder cannot be created or is taken, the folder is removed. A folder that
// existed before stays.
func TestALockThatFailsLeavesNoFolder(t *testing.T) {
	open, take := openLock, takeLock
	defer func() { openLock, takeLock = open, take }()
	for name, plant := range map[string]func(){
		"made":  func() { openLock = func(string) (*os.File, error) { return nil, syscall.EIO } },
		"taken": func() { takeLock = func(*os.File) (bool, error) { return false, syscall.EIO } },
	} {
		openLock, takeLock = open, take
		root := t.TempDir()
		there := filepath.Join(root, "there")
		put(t, filepath.Join(there, "mine.txt"))
		plant()
		if _, err := NewDir(root, "a"); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := OpenDir(filepath.Join(root, "b"), false, false); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := OpenDir(there, false, true); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", name, err)
		}
		entries, err := os.ReadDir(root)
		if err != nil || len(entries) != 1 || entries[0].Name() != "there" {
			t.Errorf("%s: %v stays, %v", name, entries, err)
		}
	}
}

// The incomplete files of a killed process are removed from the folder and its tables, and no other
// files.
func TestHalfWrittenFilesAreSwept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for _, name := range []string{"last.safetensors", "last.safetensors.tmp", "csv/history.csv", "csv/history.csv.tmp", "other/x.tmp", "csv/folder.tmp/x"} {
		put(t, filepath.Join(path, name))
	}
	d, err := OpenDir(path, true, false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for name, want := range map[string]bool{"last.safetensors": true, "last.safetensors.tmp": false, "csv/history.csv": true, "csv/history.csv.tmp": false, "other/x.tmp": true, "csv/folder.tmp/x": true} {
		if _, err := os.Stat(filepath.Join(path, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Progress that no run can have is refused: each bound is tested at its limit and one past it.
func TestBrokenProgressIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		p  string
		ok bool
	}{
		"all concluded":    {`{"updates": 5, "concluded": 5, "since": 0}`, true},
		"more concluded":   {`{"updates": 5, "concluded": 6, "since": 0}`, false},
		"all unreported":   {`{"updates": 5, "concluded": 0, "since": 5}`, true},
		"more unreported":  {`{"updates": 5, "concluded": 0, "since": 6}`, false},
		"minus updates":    {`{"updates": -1, "concluded": -1, "since": -1}`, false},
		"minus concluded":  {`{"updates": 5, "concluded": -1, "since": 0}`, false},
		"minus unreported": {`{"updates": 5, "concluded": 5, "since": -1}`, false},
		"nothing":          {`{"updates": 0, "concluded": 0, "since": 0}`, true},
	} {
		if err := decodeProgress(c.p, new(Progress)); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// put writes a file and creates its parent folders.
func put(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, path)
}
