package history

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haul/internal/world/xland"
)

// TestXLandHistories: the file does not depend on the number of workers, has every task on its side
// of the split, and its records equal the world's observations and rewards.
func TestXLandHistories(t *testing.T) {
	w, err := xland.New("R1-5x5", xland.Tasks{Name: "trivial", Seed: xland.PublicSeed})
	if err != nil {
		t.Fatal(err)
	}
	o := XLandOptions{World: w, Learn: []xland.ID{0, 1, 2, 5, 9}, Held: []xland.ID{3, 4}, Histories: 2, Schedule: xland.DefaultSchedule(), Seed: 6}
	o.Schedule.Episodes = 4
	var files [2][]byte
	for i, workers := range []int{1, 3} {
		o.Path, o.Workers = filepath.Join(t.TempDir(), "a.hist"), workers
		if err := MakeXLand(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		if files[i], err = os.ReadFile(o.Path); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("one worker and three write other files")
	}
	h, err := Open(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := Matches(h, w); err != nil {
		t.Error(err)
	}
	tasks := h.Tasks()
	side := func(of []int) (out []xland.ID) {
		for _, i := range of {
			out = append(out, tasks[i].(xland.ID))
		}
		slices.Sort(out)
		return out
	}
	train, test := h.Split()
	if !slices.Equal(side(train), o.Learn) || !slices.Equal(side(test), o.Held) {
		t.Errorf("learned from %v, held out %v", side(train), side(test))
	}
	if s := Summarize(h); s.Streams != 12 || s.Episodes != 48 || s.Fields != 25 || s.Actions != 6 {
		t.Errorf("%+v", s)
	}
	for _, c := range []struct {
		change func(*XLandOptions)
		why    string
	}{
		{func(o *XLandOptions) { o.Held = nil }, "0 tasks held out"},
		{func(o *XLandOptions) { o.Histories = 0 }, "0 histories"},
		{func(o *XLandOptions) { o.Learn = []xland.ID{-1} }, "ruleset -1"},
		{func(o *XLandOptions) { o.Schedule.Episodes = 0 }, "0 episodes"},
	} {
		bad := o
		bad.Path = filepath.Join(t.TempDir(), "b.hist")
		c.change(&bad)
		if err := MakeXLand(context.Background(), bad); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", c.why, err)
		}
		if _, err := os.Stat(bad.Path); err == nil {
			t.Errorf("%s: a file was written", c.why)
		}
	}
}

// TestXLandWholeTasks: others who live through all histories of a task at once get all of them in
// one call, and no more histories than they take.
func TestXLandWholeTasks(t *testing.T) {
	w, err := xland.New("R1-5x5", xland.Tasks{Name: "trivial", Seed: xland.PublicSeed})
	if err != nil {
		t.Fatal(err)
	}
	const together = 5
	o := XLandOptions{World: w, Learn: []xland.ID{0, 1, 2, 5, 9}, Held: []xland.ID{3, 4}, Histories: 3, Schedule: xland.DefaultSchedule(), Seed: 6,
		Path: filepath.Join(t.TempDir(), "a.hist"), Together: together, Whole: true}
	seen, next := map[xland.ID]int{}, 0
	o.Lives = func(_ context.Context, dst [][]xland.Step, ids []xland.ID, first uint64) error {
		if int(first) != next || len(ids) > together || len(dst) != len(ids) {
			t.Errorf("%d histories from %d on, want at most %d from %d on", len(ids), first, together, next)
		}
		next += len(ids)
		here := map[xland.ID]int{}
		for i, id := range ids {
			here[id]++
			s := xland.Step{Ends: true}
			for k := range s.Seen {
				s.Seen[k] = 1
			}
			dst[i] = append(dst[i], s)
		}
		for id, n := range here {
			if seen[id] > 0 {
				t.Errorf("histories of %v come in two calls", id)
			}
			seen[id] += n
		}
		return nil
	}
	if err := MakeXLand(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	for _, id := range append(o.Learn, o.Held...) {
		want := 3
		if slices.Contains(o.Held, id) {
			want = 1
		}
		if seen[id] != want {
			t.Errorf("%v has %d histories, want %d", id, seen[id], want)
		}
	}
}
