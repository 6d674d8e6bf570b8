package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// A write that fails leaves the file that was there: a full disk once left 4,096 bytes of a longer
// one.
func TestWriteFileIsWholeOrNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.sol")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, func(w io.Writer) error { fmt.Fprint(w, "half"); return errors.New("torn") }); err == nil {
		t.Error("no error")
	}
	// A folder that takes no files is as good as a full disk where root may write anywhere.
	if err := WriteFile(filepath.Join(path, "below"), func(w io.Writer) error { return nil }); err == nil {
		t.Error("a file below a file was written")
	}
	if text, _ := os.ReadFile(path); string(text) != "before" {
		t.Errorf("%q", text)
	}
	if err := WriteFile(path, func(w io.Writer) error { fmt.Fprint(w, "after"); return nil }); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	st, err := os.Stat(path)
	if string(text) != "after" || err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%q, %v, %v", text, st.Mode(), err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d files are left", len(left))
	}
}
