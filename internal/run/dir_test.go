package run

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFolderOfNoRunGoesAway(t *testing.T) {
	root := t.TempDir()
	exists := func(path string) bool {
		_, err := os.Stat(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	}
	for _, c := range []struct {
		name string
		open func() (*Dir, error)
		use  func(*Dir)
		left bool
	}{
		{"named", func() (*Dir, error) { return OpenDir(filepath.Join(root, "a"), false, false) }, func(*Dir) {}, false},
		{"numbered", func() (*Dir, error) { return NewDir(root, "b") }, func(*Dir) {}, false},
		{"begun", func() (*Dir, error) { return NewDir(root, "c") }, func(d *Dir) { write(t, d.File(LastName)) }, true},
		{"there before", func() (*Dir, error) {
			if err := os.Mkdir(filepath.Join(root, "d"), 0o755); err != nil {
				return nil, err
			}
			return OpenDir(filepath.Join(root, "d"), false, true)
		}, func(*Dir) {}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := c.open()
			if err != nil {
				t.Fatal(err)
			}
			c.use(d)
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if got := exists(d.Path()); got != c.left {
				t.Errorf("the folder is left: %v, want %v", got, c.left)
			}
		})
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestADiskThatFillsAsARunStartsLeavesNoFolder: if the settings fit on the disk but the first
// checkpoint does not, the folder is removed, so that its name is free.
func TestADiskThatFillsAsARunStartsLeavesNoFolder(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		stays bool
	}{
		"nothing written":     {nil, false},
		"settings alone":      {[]string{ConfigName}, false},
		"half a checkpoint":   {[]string{ConfigName, LastName + ".tmp"}, false},
		"a checkpoint":        {[]string{ConfigName, LastName}, true},
		"somebody else's too": {[]string{ConfigName, "notes.txt"}, true},
	} {
		path := filepath.Join(t.TempDir(), "run")
		d, err := OpenDir(path, false, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range c.files {
			if err := os.WriteFile(d.File(f), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); (err == nil) != c.stays {
			t.Errorf("%s: the folder stays: %v", name, err == nil)
		}
	}
}

// TestARunFolderThatIsAFile: the error says that the path is a file, with --force too.
func TestARunFolderThatIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.vrp")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, force := range []bool{false, true} {
		if _, err := OpenDir(path, false, force); err == nil || !strings.Contains(err.Error(), "is a file") {
			t.Errorf("force %v: %v", force, err)
		}
	}
}

// TestFoldersAreNumberedUpwards: the lowest free number is used, which may be between others.
func TestFoldersAreNumberedUpwards(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "a-003"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a-001", "a-002", "a-004"} {
		d, err := NewDir(root, "a")
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if got := filepath.Base(d.Path()); got != want {
			t.Errorf("%s was taken, want %s", got, want)
		}
	}
}
