package search

import (
	"context"
	"math"
	"testing"
	"time"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// Small problems are annealed as often as the budget holds 450 iterations per task, or 22,500; each
// time from the first temperature.
func TestGeneralCycles(t *testing.T) {
	for _, x := range []struct{ tasks, iterations, want int }{
		{20, 17_999, 1}, {20, 18_000, 2},
		{50, 44_999, 1}, {50, 45_000, 2},
		{100, 44_999, 1}, {100, 45_000, 2}, {100, 15 * 22_500, 15}, {100, 17 * 22_500, 16},
		{101, 45_000, 1}, {101, 2*12_800*101 - 1, 1}, {101, 2 * 12_800 * 101, 2}, {101, 20 * 12_800 * 101, 8},
	} {
		d := &generalDriver{search: search{o: Options{Iterations: x.iterations}, begun: time.Now()}, m: &model.Compiled{Tasks: make([]int32, x.tasks)}}
		got := d.cycles()
		if len(got) != x.want {
			t.Errorf("%d tasks, %d iterations: %d annealings, %d expected", x.tasks, x.iterations, len(got), x.want)
		}
		if last := got[len(got)-1]; last.until != 1 || x.tasks <= 100 && last.hot != got[0].hot || x.tasks > 100 && len(got) > 1 && last.hot != generalReheat {
			t.Errorf("%d tasks, %d iterations: the last annealing is %v, the first %v", x.tasks, x.iterations, last, got[0])
		}
	}
}

// Of a small problem with long routes, or one with a customer who may be left out, a string now and
// then takes more than stringMax customers of one; not beside shipments, and not where routes are
// short.
func TestLongRoutesAreUprooted(t *testing.T) {
	longest := func(n int, capacity int32, shipments, optional bool) (most, routes int) {
		p := windows(n)
		p.Capacity = capacity
		for v := 1; v <= n; v++ {
			p.Windows[v] = nil
		}
		if optional {
			p.Prize, p.Optional = make([]float64, n+1), make([]bool, n+1)
			p.Prize[n], p.Optional[n] = 1000, true
		}
		if shipments {
			p.Demand[1], p.Demand[2] = 0, 0
			p.Shipments = []vrp.Shipment{{Pickup: 1, Delivery: 2, Amount: []int32{1}}}
		}
		m := compileNear(context.Background(), p)
		c := newCandidate(m, model.NewStream(3, 1))
		c.set(nil, nil, nil)
		c.build(t.Context())
		for range 500 {
			c.begin()
			c.ruin(c)
			from := map[int32]int{}
			for _, v := range c.removed {
				from[c.removedFrom[v]]++
			}
			for _, n := range from {
				most = max(most, n)
			}
			c.recreate(c, math.Inf(1), 0)
			c.keep()
		}
		return most, len(c.routes)
	}
	if most, routes := longest(90, 110, false, false); most <= stringMax || most > longStringMost || routes < 4 {
		t.Errorf("%d of one of %d routes leave at once", most, routes)
	}
	if most, routes := longest(90, 110, true, false); most > stringMax || routes < 4 {
		t.Errorf("%d of one of %d routes leave at once, beside a shipment", most, routes)
	}
	if most, routes := longest(130, 110, false, false); most > stringMax || routes < 4 {
		t.Errorf("%d of one of %d routes of a larger problem leave at once", most, routes)
	}
	if most, routes := longest(130, 110, false, true); most <= stringMax || most > longStringMost || routes < 4 {
		t.Errorf("%d of one of %d routes leave at once, where a customer may be left out", most, routes)
	}
	if most, routes := longest(90, 40, false, false); most > stringMax {
		t.Errorf("%d of one of %d short routes leave at once", most, routes)
	}
}
