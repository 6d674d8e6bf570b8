package search

import (
	"context"
	"math"
	"slices"

	"haul/internal/vrp"
)

// The routes that the search has seen, and the best solution that can be combined from them.
// What a reader could break: a row of the cover is a task, and leaving it out is a column at the
// task's price. A solution of the cover counts only after the chain has evaluated it.

// seenRoute is a route at its best order, with the tasks that it serves.
type seenRoute struct {
	stops []int32 // without the depots at its ends
	rows  []int32
	kind  int32
	cost  float64 // with what serving these members of their groups forgoes
	seen  int
}

// richPool holds routes by kind and tasks.
type richPool struct {
	byKey  map[uint64]int32
	routes []seenRoute
	clock  int
	line   []int32
}

func newRichPool() *richPool { return &richPool{byKey: map[uint64]int32{}} }

// sample adds the present routes that keep every limit.
func (p *richPool) sample(c *rchain) {
	p.clock++
	if f := c.flat; f != nil && f.live {
		for r := range int32(f.routes) {
			if f.over[r] == 0 {
				p.see(c, f.kind[r], f.price(r), f.stops(r))
			}
		}
		return
	}
	for _, id := range c.slot {
		s := &c.slots[id]
		if s.over > 0 || s.count == 0 || s.lock > 0 {
			continue
		}
		p.line = p.line[:0]
		for _, at := range s.stops[1 : len(s.stops)-1] {
			p.line = append(p.line, at.node)
		}
		p.see(c, s.kind, s.cost, p.line)
	}
}

// see adds a route with its stops between the depots at its ends.
func (p *richPool) see(c *rchain, kind int32, cost float64, stops []int32) {
	key := mix(-1 - kind)
	for _, v := range stops {
		if int(v) >= c.depots && !c.places[v].second {
			key += mix(c.places[v].lead)
			cost += c.loss[v]
		}
	}
	i, known := p.byKey[key]
	if !known {
		if len(p.routes) >= poolMost {
			p.shed()
		}
		i = int32(len(p.routes))
		p.byKey[key] = i
		p.routes = append(p.routes, seenRoute{kind: kind, cost: math.Inf(1)})
	}
	to := &p.routes[i]
	to.seen = p.clock
	if cost < to.cost-1e-9 {
		to.cost = cost
		to.stops, to.rows = append(to.stops[:0], stops...), to.rows[:0]
		for _, v := range stops {
			if int(v) >= c.depots && !c.places[v].second {
				to.rows = append(to.rows, c.row[c.places[v].lead])
			}
		}
	}
}

// shed drops the half that was not seen for the longest time.
func (p *richPool) shed() {
	order := make([]int, len(p.routes))
	for i := range p.routes {
		order[i] = p.routes[i].seen
	}
	slices.Sort(order)
	limit := order[len(order)/2]
	moved := make([]int32, len(p.routes))
	kept := p.routes[:0]
	for i, r := range p.routes {
		moved[i] = -1
		if r.seen > limit {
			moved[i] = int32(len(kept))
			kept = append(kept, r)
		}
	}
	for key, i := range p.byKey {
		if moved[i] < 0 {
			delete(p.byKey, key)
		} else {
			p.byKey[key] = moved[i]
		}
	}
	clear(p.routes[len(kept):])
	p.routes = kept
}

const (
	coverUnits = 1e6     // in a typical leg
	coverMost  = 1 << 50 // of a solution
	coverSame  = 100     // units that the rounding of all routes comes to, at most
)

// coverParts are parts of the way from the bound to the best cost. A cover of a small problem looks
// for solutions below each of them in turn: the search is the faster the nearer its limit is to the
// bound, and otherwise spends its time below the first routes that it takes.
var coverParts = []float64{0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9}

// cover is the best choice among the routes of some pools below a cost; false where it finds none.
func (m *model) cover(pools []*richPool, below float64, most, tries int, stop func() bool) (vrp.Solution, bool) {
	unit := min(coverUnits/m.leg, coverMost/max(below, 1e-9))
	units := func(cost float64) int64 { return int64(math.Round(min(cost*unit, 32*coverMost))) }
	rows := len(m.tasks) + 1
	c := &coverer{nodes: rows, upper: units(below) - coverSame, most: rows, price: make([]float64, rows), tries: tries, stop: stop}
	var routes []*seenRoute
	for _, p := range pools {
		for i := range p.routes {
			r := &p.routes[i]
			c.columns = append(c.columns, column{customers: r.rows, cost: units(r.cost), kind: r.kind, id: int32(len(routes))})
			routes = append(routes, r)
		}
	}
	if len(routes) == 0 {
		return vrp.Solution{}, false
	}
	for i, lead := range m.tasks {
		c.columns = append(c.columns, column{customers: []int32{int32(i + 1)}, cost: units(m.places[lead].price), kind: -1, id: -1})
	}
	for i := range m.kinds {
		c.vehicles = append(c.vehicles, m.kinds[i].count)
	}
	c.routes = most
	if m.small() {
		c.sorted, c.parts = true, coverParts
		c.raise(m.prices)
		m.prices = c.price
	} else {
		c.relax()
	}
	c.reduce()
	if c.search(); c.best == nil {
		return vrp.Solution{}, false
	}
	var out vrp.Solution
	for _, i := range c.best {
		if id := c.columns[i].id; id >= 0 {
			out.Routes = append(out.Routes, slices.Clone(routes[id].stops))
			out.Types = append(out.Types, routes[id].kind)
		}
	}
	return out, true
}

// cover looks for better routes among all that the chains saw, until a part of the budget is spent.
func (d *richDriver) cover(ctx context.Context, chains []*rchain, until float64) {
	if d.over(ctx) || d.locks != nil {
		return
	}
	stop := func() bool { return ctx.Err() != nil }
	tries := max(100, coverWork/d.m.nodes)
	if d.o.Iterations == 0 {
		tries = math.MaxInt
		end := min(until, d.spent()+coverLongest.Seconds()/d.o.Time.Seconds())
		stop = func() bool { return ctx.Err() != nil || d.spent() >= end }
	}
	var pools []*richPool
	for _, c := range chains {
		pools = append(pools, c.pool)
	}
	s, ok := d.m.cover(pools, d.bestCost, d.most, tries, stop)
	c := chains[0]
	if ok && c.set(s.Routes, s.Types, nil) && c.bestCost < d.bestCost-1e-9 {
		d.tell(d.take(c))
	}
}
