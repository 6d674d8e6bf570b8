package history

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A history's content is on the disk before its name, and its name before Close returns: a loss of
// power leaves a whole file or none.
func TestAHistoryReachesTheDiskInOrder(t *testing.T) {
	was := durable
	defer func() { durable = was }()
	var calls []string
	durable.sync = func(f *os.File) error { calls = append(calls, "content"); return was.sync(f) }
	durable.rename = func(from, to string) error { calls = append(calls, "name"); return was.rename(from, to) }
	durable.folder = func(path string) error { calls = append(calls, "folder "+path); return was.folder(path) }
	dir := t.TempDir()
	want := []string{"content", "name", "folder " + dir}
	h := small()
	w, err := Create(filepath.Join(dir, "a.hist"), h)
	if err != nil {
		t.Fatal(err)
	}
	for g := range h.Goals {
		if err := w.WriteGoal(g, walk(h, g)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(calls, want) {
		t.Errorf("rooms: %v, want %v", calls, want)
	}
	calls = nil
	l := newLearners()
	if err := Import(t.Context(), ImportOptions{From: saveFolder(t, l.arrays()), To: filepath.Join(dir, "b.hist"), TrainRatio: 0.5}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(calls, want) {
		t.Errorf("imported: %v, want %v", calls, want)
	}
}
