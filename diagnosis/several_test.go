package diagnosis

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file of several traces is refused by name, and not answered for the last of them.
func TestSeveralTracesAreRefused(t *testing.T) {
	trace, err := os.ReadFile("../docs/examples/trace.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	for n, ok := range map[int]bool{1: true, 2: false} {
		path := filepath.Join(t.TempDir(), "a.zip")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		z := zip.NewWriter(f)
		for i := range n {
			w, err := z.Create(string(rune('a'+i)) + ".json.gz")
			if err == nil {
				_, err = w.Write(trace)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := Of(t.Context(), path); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "several traces") {
			t.Errorf("%d traces: %v", n, err)
		}
	}
}
