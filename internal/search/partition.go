package search

import (
	"context"
	"math"
	"slices"

	"haul/internal/search/cover"
	"haul/internal/search/model"
	"haul/internal/vrp"
)

// The routes that the search has seen, and the best solution that can be combined from them. A row
// of the cover is a task, and leaving it out is a column at the task's price. A solution of the
// cover counts only after the chain has evaluated it.

// sample adds the present routes that keep every limit.
func (c *candidate) sample() {
	c.pool.Sample()
	if f := c.flat; f != nil && f.live {
		for r := range int32(f.routes) {
			if f.over[r] == 0 {
				c.see(f.kind[r], f.price(r), f.stops(r))
			}
		}
		return
	}
	for _, id := range c.routes {
		s := &c.states[id]
		if s.over > 0 || s.count == 0 || s.lock > 0 {
			continue
		}
		c.line = c.line[:0]
		for _, at := range s.stops[1 : len(s.stops)-1] {
			c.line = append(c.line, at.node)
		}
		c.see(s.kind, s.cost, c.line)
	}
}

// see adds a route with its stops between the depots at its ends. Its cost in the pool includes
// what serving these members of their groups forgoes.
func (c *candidate) see(kind int32, cost float64, stops []int32) {
	key := model.Mix(-1 - kind)
	for _, v := range stops {
		if int(v) >= c.Depots && !c.Locations[v].IsDelivery {
			key += model.Mix(c.Locations[v].Representative)
			cost += c.Loss[v]
		}
	}
	if to := c.pool.Offer(key, kind, cost); to != nil {
		to.Visits, to.Rows = append(to.Visits[:0], stops...), to.Rows[:0]
		for _, v := range stops {
			if int(v) >= c.Depots && !c.Locations[v].IsDelivery {
				to.Rows = append(to.Rows, c.Row[c.Locations[v].Representative])
			}
		}
	}
}

// coverRoutes is the best choice among the routes of some pools below a cost; false where it finds
// none.
func coverRoutes(m *model.Compiled, pools []*cover.Pool, below float64, most, tries int, stop func() bool) (vrp.Solution, bool) {
	unit := min(cover.Units/m.Leg, cover.MostCost/max(below, 1e-9))
	units := func(cost float64) int64 { return int64(math.Round(min(cost*unit, 32*cover.MostCost))) }
	rows := len(m.Tasks) + 1
	c := &cover.Problem{Nodes: rows, Upper: units(below) - cover.Same, Most: rows, Price: make([]float64, rows), Tries: tries, Stop: stop}
	routes := c.Add(units, pools...)
	if len(routes) == 0 {
		return vrp.Solution{}, false
	}
	for i, lead := range m.Tasks {
		c.Columns = append(c.Columns, cover.Column{Customers: []int32{int32(i + 1)}, Cost: units(m.Locations[lead].Price), Kind: -1, Id: -1})
	}
	for i := range m.Types {
		c.Vehicles = append(c.Vehicles, m.Types[i].Count)
	}
	c.Routes = most
	if m.Small() {
		c.Sorted, c.Parts = true, cover.Parts
		c.Raise(m.Prices)
		m.Prices = c.Price
	} else {
		c.Relax()
	}
	c.Reduce()
	if c.Search(); c.Best == nil {
		return vrp.Solution{}, false
	}
	var out vrp.Solution
	for _, i := range c.Best {
		if id := c.Columns[i].Id; id >= 0 {
			out.Routes = append(out.Routes, slices.Clone(routes[id].Visits))
			out.Types = append(out.Types, routes[id].Kind)
		}
	}
	return out, true
}

// cover looks for better routes among all that the chains saw, until a part of the budget is spent.
func (d *generalDriver) cover(ctx context.Context, chains []*candidate, until float64) {
	if d.over(ctx) || d.locks != nil {
		return
	}
	stop := func() bool { return ctx.Err() != nil }
	tries := max(100, coverWork/d.m.Nodes)
	if d.o.Iterations == 0 {
		tries = math.MaxInt
		end := min(until, d.spent()+coverLongest.Seconds()/d.o.Time.Seconds())
		stop = func() bool { return ctx.Err() != nil || d.spent() >= end }
	}
	var pools []*cover.Pool
	for _, c := range chains {
		pools = append(pools, c.pool)
	}
	s, ok := coverRoutes(d.m, pools, d.bestCost, d.most, tries, stop)
	c := chains[0]
	if ok && c.set(s.Routes, s.Types, nil) && c.bestCost < d.bestCost-1e-9 {
		d.notify(d.take(c))
	}
}
