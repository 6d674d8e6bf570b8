package search

import (
	"context"
	"time"

	"haul/internal/search/model"
	"haul/internal/search/prove"
)

// When the search tries to prove that its routes cost least: once, in the first cycle of a problem
// whose windows allow few routes.

const (
	// Of the first cycle, the part that is annealed before, and how long that takes at most.
	proveAfter   = 0.1
	proveSoon    = 50 * time.Millisecond
	proveShare   = 0.6 // of what is left of the budget, at most
	proveLongest = 20 * time.Second
	proveLate    = 0.3  // of that, to look among the routes that there are by then
	proveWork    = 2000 // numbers looked at per iteration, where iterations are the budget
	proveShown   = 2000 // routes that later covers get, where nothing was proven
)

// provable reports whether a chain's problem has few routes: it has windows that no route comes
// back in.
func (c *candidate) provable() bool { return c.Traits.Time == model.WindowsOnly && c.prices() }

// soon is the part of the budget that passes before a proof is tried, at most.
func (d *generalDriver) soon() float64 {
	if d.o.Iterations > 0 {
		return 1
	}
	return proveSoon.Seconds() / d.o.Time.Seconds()
}

// prove takes the best routes of all where it finds them within a part of the budget.
func (d *generalDriver) prove(ctx context.Context, chains []*candidate) {
	c := chains[0]
	if d.over(ctx) || d.locks != nil || !c.provable() || len(d.best.Routes) == 0 {
		return
	}
	var x *prove.Prover
	begun, part := d.spent(), 1-proveLate
	limit := min(1<<50, proveShare*proveWork*float64(d.o.Iterations))
	stop := func() bool { return d.ending != open || ctx.Err() != nil || float64(x.Spent()) > part*limit }
	if d.o.Iterations == 0 {
		limit = min(proveShare*(1-begun), proveLongest.Seconds()/d.o.Time.Seconds())
		stop = func() bool {
			d.notify(false)
			return d.ending != open || ctx.Err() != nil || d.spent() >= begun+part*limit
		}
	}
	if x = prove.NewProver(d.m, stop); x == nil {
		return
	}
	var line []int32
	for _, c := range chains {
		for i := range c.pool.Routes {
			r := &c.pool.Routes[i]
			line = line[:0]
			for _, row := range r.Rows {
				line = append(line, row-1)
			}
			x.Offer(line, r.Kind, r.Cost, true)
		}
	}
	kept := true
	proven := x.Prove(d.bestCost, func() { part = 1 }, func(routes []prove.Listed) {
		s := x.Solution(routes)
		cost := d.bestCost
		kept = len(d.m.Types) > 1 || len(s.Routes) <= d.m.Types[0].Count
		if kept = kept && c.set(s.Routes, s.Types, nil); kept && d.take(c) {
			d.notify(true)
		}
		kept = kept && d.bestCost < cost
	}) && kept
	if proven {
		d.ending = provenBest
	} else {
		// What was found is of use to the covers of the cycles that follow.
		for _, j := range x.Active[:min(len(x.Active), proveShown)] {
			if r := x.Solution([]prove.Listed{x.Routes[j]}); len(r.Routes) > 0 {
				c.see(r.Types[0], x.Cost[j], r.Routes[0])
			}
		}
	}
}

// prices reports whether routes of a model can be priced so: what flat routes ask, and as many
// vehicles of each kind as there are customers. Of one kind there may be fewer, which a solution is
// checked for.
func (c *candidate) prices() bool {
	m := c.Compiled
	if c.flat == nil || len(m.Tasks) > 126 || len(m.Tasks) != m.Nodes-m.Depots {
		return false
	}
	for i := range m.Types {
		if k := &m.Types[i]; k.Count < len(m.Tasks) && len(m.Types) > 1 || k.MaxStops < len(m.Tasks) {
			return false
		}
	}
	for _, v := range m.Tasks {
		if m.Traits.Order != model.AnyOrder && m.Side[v] == 3 {
			return false
		}
	}
	return true
}
