package serve

import (
	"testing"
	"time"
)

// A clock that jumps leaves jobs whose end lies ahead of it, or far behind. The first are kept as
// others are, and take nobody's room: where there is none, ended jobs go, the earliest first.
func TestJobsOutliveAClockThatJumps(t *testing.T) {
	for _, c := range []struct {
		most  int
		ended []time.Duration // from now
		want  []bool
	}{
		{10, []time.Duration{24 * 365 * time.Hour, -time.Minute, -48 * time.Hour}, []bool{true, true, false}},
		{2, []time.Duration{24 * 365 * time.Hour, -time.Minute}, []bool{true, false}},
		{1, []time.Duration{24 * 365 * time.Hour, 24 * time.Hour}, []bool{false, false}},
	} {
		store, _, err := openJobStore("", func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		j := &jobs{store: store, limit: Limits{JobKeep: time.Hour, Jobs: c.most, JobBytes: 1 << 20}, all: map[string]*job{}, byKey: map[ownKey]*job{}}
		for i, at := range c.ended {
			end := time.Now().Add(at).Round(0) // as it is read from a file
			j.enter(&job{hub: newHub(), jobState: jobState{ID: string(rune('a' + i)), Ended: &end}})
		}
		j.sweep(0)
		for i, want := range c.want {
			if _, kept := j.all[string(rune('a'+i))]; kept != want {
				t.Errorf("of ends at %v with room for %d: job %d is kept: %v", c.ended, c.most, i, kept)
			}
		}
	}
}

// Jobs are listed with the newest first, and those of one moment in the same order every time; a
// list has no routes, and leaves those of the jobs alone.
func TestJobsAreListedByAge(t *testing.T) {
	j := &jobs{all: map[string]*job{}}
	now := time.Now()
	for id, age := range map[string]time.Duration{"d": 3, "c": 2, "a": 1, "b": 1, "f": 5, "e": 4} {
		j.all[id] = &job{jobState: jobState{ID: id, Created: now.Add(-age * time.Second), Result: &solved{}, Progress: &improved{Routes: [][]int32{{1}}}}}
	}
	for range 20 {
		ids := ""
		for _, one := range j.list("") {
			if ids += one.ID; one.Result != nil || one.Progress.Routes != nil {
				t.Fatalf("job %s is listed with its routes", one.ID)
			}
		}
		if ids != "abcdef" {
			t.Fatalf("jobs are listed as %s", ids)
		}
	}
	if one := j.all["c"]; one.Result == nil || one.Progress.Routes == nil {
		t.Error("the list took the routes of a job")
	}
}
