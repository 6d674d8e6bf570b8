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

// TestXLandHistories: a file of learners in XLand-MiniGrid is the same whatever the workers, holds
// every task on its own side, and what a record tells is what its world pays and shows.
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
