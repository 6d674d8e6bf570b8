// Package search finds routes as good as the time allows, for every problem that vrp.Problem
// describes: slack induction by string removals (Christiaens and Vanden Berghe, 2020) under
// simulated annealing, set partitioning over the routes seen, and decomposition if the problem
// is large or several cores work on it. Plain problems have routes of their own (plain_routes.go,
// plain_insert.go); all others are searched by general.go over the routes of candidate.go, or of
// packed32.go and packed16.go.
//
// With a budget of iterations nothing may read a clock, because the
// result is then a function of problem, seed and budget. The result never costs more than the
// start by vrp.Problem.Cost, which is not the arithmetic that guides the search.
package search

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"haul/internal/search/cover"
	"haul/internal/search/model"
	"haul/internal/search/neighbour"
	"haul/internal/vrp"
)

// Options says how long to search, from where, and who is told.
type Options struct {
	Time       time.Duration // wall time; 0: by Iterations
	Iterations int           // ruin-and-recreate iterations; 0: by Time
	Workers    int           // cores; below 1 counts as 1
	Seed       uint64
	Start      *vrp.Solution // routes to improve; nil: savings
	// by route of Start: how many of its first stops stay as they are; -1: the whole route. nil:
	// none
	Fixed []int32
	// customers who find no place are listed (Result.Unserved), where the search of a plain problem
	// otherwise fails; Start may leave some out
	Partial bool
	Target  float64 // stop at this cost; 0: none
	// told about ten times a second and at every better solution; may be nil
	Progress func(p Progress)
}

// Progress is how a search stands.
type Progress struct {
	Seconds    float64
	Iterations int
	Cost       float64 // of the best routes so far
	Routes     int
	Improved   bool         // the cost is a new one
	Best       vrp.Solution // the routes themselves, not to be changed
}

// FleetError says in one line that a plain problem's fleet is too small, or that no routes which
// keep to it were found. With Options.Partial the search lists who has no place instead.
type FleetError struct{ text string }

func (e *FleetError) Error() string { return e.text }

// Result is the best routes found.
type Result struct {
	Solution    vrp.Solution
	Cost        float64
	Start       float64 // what the start cost
	Iterations  int
	Seconds     float64
	Interrupted bool    // the context ended before the budget
	Unserved    []int32 // required customers on no route, in order
	Moves       int64   // positions evaluated, where they are counted
	Proven      bool    // no routes cost less, times rounded to the search's units
	draws       uint64  // sum of the random streams' final states, for fingerprints
}

// Solve improves routes until the budget is spent, the target is met or ctx ends; the routes so far
// are a result in each case. It fails where the problem cannot be solved, or no routes that keep to
// the fleet are found.
func Solve(ctx context.Context, p *vrp.Problem, o Options) (*Result, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if short := p.Shortage(); short != nil && !o.Partial && o.Fixed == nil && p.Limited() == nil {
		return nil, &FleetError{short.Error()}
	}
	if o.Time <= 0 && o.Iterations <= 0 {
		return nil, errors.New("search: a time or a number of iterations is needed")
	}
	o.Workers = max(o.Workers, 1)
	begun := time.Now()
	flat := o.Start == nil && opensFlat(p)
	if o.Start == nil && o.Fixed == nil && !o.Partial && !flat {
		if plain := plainOf(p); plain != nil {
			return solvePlain(ctx, p, plain, o)
		}
	}
	// Bringing routes within a fleet needs all distances at once, or the path that asks for each.
	large := p.Vehicles > 0 && len(p.Demand) > model.TableNodes && o.Start == nil
	if flat || p.Limited() != nil || o.Fixed != nil || o.Partial || large {
		return solveGeneral(ctx, p, o, begun)
	}
	d := &driver{search: search{p: p, o: o, begun: begun}}
	if err := d.prepare(ctx); err != nil {
		return nil, err
	}
	if err := d.begin(ctx); err != nil {
		return nil, err
	}
	d.anneal(ctx)
	d.notifyLast()
	return d.result(ctx)
}

// driver is one search.
type driver struct {
	search
	m    *metric
	all  *region
	near *neighbour.Neighbours // of every customer, in the problem's numbers
	most int                   // routes allowed

	start    vrp.Solution
	present  [][]int32 // where the annealing stands
	bestCost int64
	leg      float64      // the mean leg at the start, the unit of temperature
	pool     *cover.Pool  // routes seen
	slowest  atomic.Int64 // nanoseconds per distance of the part that took longest to make
	local    [][]int32    // scratch of region.part, by worker
}

func (d *driver) prepare(ctx context.Context) error {
	d.m = newMetric(d.p)
	var err error
	if d.near, err = d.lists(ctx); err != nil {
		return err
	}
	d.all = whole(d.m, d.near)
	d.most = d.p.N()
	if d.p.Vehicles > 0 {
		d.most = min(d.most, d.p.Vehicles)
	}
	d.pool = cover.NewPool()
	return nil
}

// begin sets the start: the caller's, or one that is built and brought within the fleet.
func (d *driver) begin(ctx context.Context) error {
	if d.o.Start != nil {
		if err := vrp.Validate(d.p, *d.o.Start); err != nil {
			return fmt.Errorf("the start is not a solution of this problem: %w", err)
		}
		d.start = *d.o.Start
	} else {
		s, err := d.build(ctx)
		if err != nil {
			return err
		}
		d.start = s
	}
	d.start = d.p.MergeAtDepot(d.start)
	for _, r := range d.start.Routes {
		if len(r) > 0 {
			d.present = append(d.present, append([]int32(nil), r...))
		}
	}
	d.best.Routes = clone(d.present)
	d.bestCost = d.price(d.best.Routes)
	d.leg = float64(d.bestCost) / float64(d.p.N()+len(d.best.Routes))
	d.notify(true)
	return nil
}

// build makes a first solution that keeps every limit.
func (d *driver) build(ctx context.Context) (vrp.Solution, error) {
	if d.p.Plain() == nil {
		if s := d.first(ctx); len(s.Routes) <= d.most {
			return s, nil
		}
	}
	if d.all.out == nil {
		// Routes of one customer each already keep every limit but the fleet's, and large problems
		// with a fleet go another way (see Solve).
		return alone(d.p.N()), nil
	}
	return d.withinLimits(ctx)
}

func alone(n int) (s vrp.Solution) {
	for v := range n {
		s.Routes = append(s.Routes, []int32{int32(v + 1)})
	}
	return s
}

// price is the cost of routes in units.
func (d *driver) price(routes [][]int32) int64 {
	var sum int64
	for _, r := range routes {
		last := 0
		for _, v := range r {
			sum += int64(d.m.leg(last, int(v)))
			last = int(v)
		}
		sum += int64(d.m.leg(last, 0))
	}
	return sum
}

// offer makes routes the best if they cost less.
func (d *driver) offer(routes [][]int32, cost int64) bool {
	if cost >= d.bestCost {
		return false
	}
	d.best = d.p.MergeAtDepot(vrp.Solution{Routes: clone(routes)})
	d.bestCost = d.price(d.best.Routes)
	return true
}

// result evaluates the best routes against the start in the problem's own arithmetic.
func (d *driver) result(ctx context.Context) (*Result, error) {
	r := &Result{Solution: d.best, Start: d.p.Cost(d.start), Iterations: d.iterations,
		Interrupted: ctx.Err() != nil && d.ending != targetMet, draws: d.draws}
	r.Cost = d.p.Cost(r.Solution)
	if !(r.Cost <= r.Start) {
		// Fixed point may call two routes equal that the problem tells apart.
		r.Solution, r.Cost = d.start, r.Start
	}
	if err := vrp.Validate(d.p, r.Solution); err != nil {
		return nil, fmt.Errorf("search: the routes found are invalid: %w", err)
	}
	r.Seconds = time.Since(d.begun).Seconds()
	return r, nil
}

func clone(routes [][]int32) [][]int32 {
	n := 0
	for _, r := range routes {
		n += len(r)
	}
	all := make([]int32, 0, n)
	out := make([][]int32, 0, len(routes))
	for _, r := range routes {
		if len(r) > 0 {
			all = append(all, r...)
			out = append(out, all[len(all)-len(r):len(all):len(all)])
		}
	}
	return out
}
