package search

import (
	"cmp"
	"context"
	"slices"
	"time"

	"haul/internal/search/construct"
	"haul/internal/search/model"
)

// First routes whose time is over. With a budget of iterations nothing here looks at a clock, and
// only whoever interrupts a search ends its time. Whoever is left then goes along a curve, and
// looks beside a few neighbours and at the ends of the last routes alone.

const (
	outOfTimeEach   = 16 // tasks between two looks at the time
	outOfTimeNear   = 6  // nearest customers that an insertion out of time looks beside
	outOfTimeRoutes = 2  // last routes whose ends it looks at
)

// finishFast makes a build out of time where ctx has ended: the tasks from i on go along a curve.
func (c *candidate) finishFast(ctx context.Context, i int) {
	if c.stage == outOfTime || c.Traits.Store >= model.RoutesOnly || c.flat != nil || i%outOfTimeEach > 0 || ctx.Err() == nil {
		return
	}
	c.stage = outOfTime
	x, y := c.P.Plane()
	if len(x) != c.Nodes {
		return
	}
	key := construct.Curve(x, y)
	slices.SortFunc(c.removed[i:], func(a, b int32) int { return cmp.Or(cmp.Compare(key[a], key[b]), cmp.Compare(a, b)) })
}

// scanOutOfTime is find where the time is over.
func (c *candidate) scanOutOfTime(v int32, best *insertion) {
	near, g := c.NearOf(v), c.Types[0].Distances
	beside := func(r int32, i int, prev, next, leg int32) {
		c.try(r, v, i, prev, next, g.At(prev, v)+g.At(v, next)-leg, best)
	}
	if c.Traits.Distance != model.PerType {
		for _, w := range near[:min(len(near), outOfTimeNear)] {
			if l := &c.links[w]; l.route >= 0 {
				beside(l.route, int(l.pos), l.prev, w, l.in)
				beside(l.route, int(l.pos)+1, w, l.next, l.out)
			}
		}
		for r := max(0, len(c.routes)-outOfTimeRoutes); r < len(c.routes); r++ {
			if e := &c.ends[r]; e.size > 0 {
				beside(int32(r), 1, e.start, e.first, e.in)
				beside(int32(r), int(e.size)-1, e.last, e.end, e.out)
			}
		}
	}
	c.scanNewRoute(v, best)
}

const (
	// judgements is how often all routes are judged between a search's end and what a user sees,
	// about.
	judgements = 8
	// Whoever had to be served and is not is told why, which takes a part of the time, or so long.
	reasonsShare = 0.03
	reasonsMost  = 150 * time.Millisecond
)

// reserve leaves time for what comes behind the search: judging the routes, as often as they are
// judged, and the reasons of whoever is left out.
func (d *generalDriver) reserve(took time.Duration, short bool) {
	if d.o.Time <= 0 {
		return
	}
	took *= judgements
	if short {
		took += min(reasonsMost, time.Duration(reasonsShare*float64(d.o.Time)))
	}
	d.o.Time -= min(d.o.Time/4, took)
}

// chunk is how many iterations go between two looks at the clock: about two thousandths of the time
// at most, where a clock decides.
func (d *generalDriver) chunk(each int) int {
	if d.o.Iterations > 0 {
		return min(each, d.o.Iterations-d.iterations)
	}
	return max(1, min(each, int(d.speed*d.o.Time.Seconds()/500)))
}
