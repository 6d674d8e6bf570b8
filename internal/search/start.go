package search

import (
	"context"
	"time"

	"haul/internal/search/construct"
	"haul/internal/search/model"
	"haul/internal/search/neighbour"
	"haul/internal/vrp"
)

// The first routes of a search with a clock. With a budget of iterations nothing here reads the
// time, and lists have their full length. With a clock the first routes take at most startShare of
// the time: a sample predicts how long lists may be, joining stops where it is when the time is
// over, and routes along a curve replace worse ones.

const (
	startShare  = 0.25 // of the time, for lists and first routes, as foretold
	startLatest = 0.5  // of the time, when they end wherever they are
	// what joining takes at most, in times of what making the lists does on one core
	startBeside = 2.7
)

// lists finds the nearest customers of every customer: as many as ever, or as the time allows. They
// are empty where the time is over before they are found.
func (d *driver) lists(ctx context.Context) (*neighbour.Neighbours, error) {
	n, from := d.p.N(), 1
	f := neighbour.NewFinder(&model.FloatMatrix{P: d.p, N: n + 1})
	nb := neighbour.NewLists(n, model.Nearest)
	if d.o.Time > 0 && n > model.StartSample {
		began := time.Now()
		f.Lists(ctx, nb, 1, model.StartSample)
		from += model.StartSample
		each := time.Since(began).Seconds() / model.StartSample
		need := each * float64(n) * (1/float64(d.o.Workers) + startBeside)
		if have := startShare*d.o.Time.Seconds() - time.Since(d.begun).Seconds(); need > have {
			nb, from = neighbour.NewLists(n, max(model.StartLeast, int(model.Nearest*have/need))), 1
		}
	}
	soon, cancel := d.startContext(ctx)
	defer cancel()
	f.All(soon, nb, from, d.o.Workers)
	if soon.Err() != nil {
		return neighbour.NewLists(n, 0), ctx.Err()
	}
	return nb, nil
}

// legTime is what a distance of a part's table is taken to cost before any part was made.
const legTime = 20 * time.Nanosecond

// makes tells whether a region of these routes has room, and can be made before the time is over by
// what the slowest one took. Routes are never cut, so that few and long ones make large regions.
func (d *driver) makes(routes [][]int32) bool {
	nodes := 1
	for _, r := range routes {
		nodes += len(r)
	}
	if nodes > model.RegionMost {
		return false
	}
	each := max(legTime, time.Duration(d.slowest.Load()))
	takes := time.Duration(nodes) * time.Duration(nodes) * each
	return d.o.Time <= 0 || time.Since(d.begun)+takes <= d.o.Time
}

// tabulate gives the region of all customers its distances, which a problem of many nodes has none
// of; false where makes is.
func (d *driver) tabulate() bool {
	g := d.all
	if g.out != nil {
		return true
	}
	if !d.makes(d.present) {
		return false
	}
	g.out = make([]int32, g.nodes*g.nodes)
	for i := range g.nodes {
		for j := range g.nodes {
			g.out[i*g.nodes+j] = d.m.leg(i, j)
		}
	}
	g.transpose(d.m.oneWay)
	return true
}

// made notes how long a part took to make. Small ones tell nothing: their times are those of lists,
// and of whoever had the core in between.
func (d *driver) made(nodes int, took time.Duration) {
	if nodes < 2*model.PartMost {
		return
	}
	each := int64(took) / int64(nodes) / int64(nodes)
	for {
		was := d.slowest.Load()
		if each <= was || d.slowest.CompareAndSwap(was, each) {
			return
		}
	}
}

// first makes routes of a plain problem: savings, as far as the time allows, or routes along a
// curve where those are shorter by then.
func (d *driver) first(ctx context.Context) vrp.Solution {
	along := construct.AlongCurve(d.p)
	soon, cancel := d.startContext(ctx)
	defer cancel()
	if d.near.K == 0 && d.p.N() > 1 {
		return along
	}
	start, whole := construct.Savings(soon, model.NewMetricTable(d.p), d.near)
	if !whole && !(d.p.Cost(start) < d.p.Cost(along)) {
		return along
	}
	return d.p.MergeAtDepot(start)
}
