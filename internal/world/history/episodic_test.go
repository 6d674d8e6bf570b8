package history

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"haul/internal/world/episodic"
)

// TestMakeEpisodic: a file holds a set's goals on their sides, with labels, and its bytes do not
// depend on the number of workers.
func TestMakeEpisodic(t *testing.T) {
	set, err := episodic.ParseSet("K2D4-30-2", 0)
	if err != nil {
		t.Fatal(err)
	}
	set.Held = 7
	s := episodic.Published()
	s.Episodes = 12
	var files [][]byte
	var path string
	for _, workers := range []int{1, 3} {
		path = filepath.Join(t.TempDir(), "x.hist")
		if err := MakeEpisodic(t.Context(), EpisodicOptions{Set: set, Schedule: s, Seed: 9, Path: path, Workers: workers}); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, data)
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("one worker and three wrote different files")
	}
	h, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	learn, held, err := set.Room.Deal(9, 30, 7)
	if err != nil {
		t.Fatal(err)
	}
	train, test := h.Split()
	if len(train) != 30 || len(test) != 7 {
		t.Fatalf("%d goals to learn from, %d held out", len(train), len(test))
	}
	for i, at := range train {
		if h.Tasks()[at] != learn[i] {
			t.Errorf("goal %d to learn from is %v, want %v", i, h.Tasks()[at], learn[i])
		}
	}
	for i, at := range test {
		if h.Tasks()[at] != held[i] {
			t.Errorf("goal %d held out is %v, want %v", i, h.Tasks()[at], held[i])
		}
	}
	d, err := h.Pack(train, 0, 0)
	if err != nil || len(d.Spans) != 60 || d.Stride != 2 || d.Label != 4 {
		t.Fatalf("%d streams, records of %d words, labels in byte %d: %v", len(d.Spans), d.Stride, d.Label, err)
	}
	want := set.Room.History(nil, h.Tasks()[0].(episodic.Goal), s, 9, 0)
	for k, step := range want {
		if got := d.Words[2*k+1] & 0xff; got != int32(step.Best) {
			t.Fatalf("transition %d: the label is %d, want %d", k, got, step.Best)
		}
	}
}
