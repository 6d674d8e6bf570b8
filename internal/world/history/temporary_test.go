//go:build unix

package history

import (
	"haul/internal/world/grid"
	"os"
	"path/filepath"
	"testing"
)

// TestTheNextWriterRemovesWhatAKilledOneLeft: temporary files without a lock are removed, for any
// number in their names. A file that is being written, other files' temporary files and files with
// similar names stay.
func TestTheNextWriterRemovesWhatAKilledOneLeft(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "d.hist")
	head := Header{Room: grid.Room{Size: 3, Horizon: 4}, Streams: 1, Steps: 4, TrainRatio: 0.5}
	head.Goals = head.Room.Goals()
	put := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"d.hist.1.tmp", "d.hist.999999999.tmp", "other.hist.7.tmp", "d.hist.tmp", "d.hist.x1.tmp", "d.hist.12.tmp.keep", "d.hist"} {
		put(name)
	}
	put("d.hist.4242.tmp")
	held, err := os.OpenFile(filepath.Join(dir, "d.hist.4242.tmp"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if mine, known := hold(held); !mine || !known {
		t.Skip("this file system has no locks")
	}
	w, err := Create(path, head)
	if err != nil {
		t.Fatal(err)
	}
	there := func(name string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
	for name, want := range map[string]bool{"d.hist.1.tmp": false, "d.hist.999999999.tmp": false, "d.hist.4242.tmp": true, "other.hist.7.tmp": true, "d.hist.tmp": true, "d.hist.x1.tmp": true,
		"d.hist.12.tmp.keep": true, "d.hist": true} {
		if there(name) != want {
			t.Errorf("%s is there: %v, want %v", name, !want, want)
		}
	}
	if _, err := Create(path, head); err == nil {
		t.Error("two write the same temporary")
	}
	own := w.file.Name()
	removeStale(path)
	if _, err := os.Stat(own); err != nil {
		t.Errorf("a writer's own temporary was removed: %v", err)
	}
	held.Close() // as when its process is killed
	removeStale(path)
	if there("d.hist.4242.tmp") {
		t.Error("what a killed process left is still there")
	}
	w.Discard()
}
