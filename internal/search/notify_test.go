package search

import (
	"testing"
	"time"

	"haul/internal/vrp"
)

// TestTellWaits: a cost that takes long to evaluate is evaluated seldom, routes that are told have
// the cost that is told, and the last ones are told in the end.
func TestTellWaits(t *testing.T) {
	p := windows(3)
	var told []Progress
	d := &generalDriver{search: search{p: p, o: Options{Progress: func(s Progress) { told = append(told, s) }}}}
	first := vrp.Solution{Routes: [][]int32{{1}, {2}, {3}}}
	d.best = first
	d.notify(true)
	if len(told) != 1 || !told[0].Improved || told[0].Cost != p.Cost(first) {
		t.Fatalf("%+v", told)
	}
	d.pause = time.Hour
	d.best = vrp.Solution{Routes: [][]int32{{1}, {3, 2}}}
	d.notify(true)
	if len(told) != 1 {
		t.Fatal("the second is told at once")
	}
	d.notifiedAt = time.Time{}
	if d.notify(false); len(told) != 2 || told[1].Improved || told[1].Cost != told[0].Cost || len(told[1].Best.Routes) != 3 || told[1].Routes != 3 {
		t.Fatalf("%+v", told[1:])
	}
	d.notifyLast()
	if len(told) != 3 || told[2].Cost != p.Cost(d.best) || told[2].Cost == told[0].Cost || len(told[2].Best.Routes) != 2 {
		t.Fatalf("%+v", told[2:])
	}
	if d.notifyLast(); len(told) != 3 {
		t.Error("the last is told twice")
	}
}
