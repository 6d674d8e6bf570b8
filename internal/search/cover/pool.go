package cover

import (
	"slices"

	"haul/internal/search/model"
)

// Route is a route at its best order.
type Route struct {
	Visits []int32 // without the depots at its ends
	Rows   []int32 // of the problem: the tasks that it serves
	Kind   int32   // of its vehicle
	Cost   float64
	key    uint64
	seen   int // when it was last part of a sample
}

// Pool holds routes of good solutions for a set partitioning problem. A route is identified by its
// key, the sum of model.Mix over its tasks and vehicle, and only the cheapest order of a key is
// kept.
type Pool struct {
	Routes []Route
	byKey  map[uint64]int32
	clock  int
}

// NewPool returns an empty pool.
func NewPool() *Pool { return &Pool{byKey: map[uint64]int32{}} }

// Sample begins a further solution, whose routes are offered next.
func (p *Pool) Sample() { p.clock++ }

// Offer returns the pool's route of a key if it must take on the offered one's visits and rows,
// because that one costs less; nil if not.
func (p *Pool) Offer(key uint64, kind int32, cost float64) *Route {
	i, known := p.byKey[key]
	if !known {
		i = p.insert(Route{key: key, Kind: kind, Cost: cost})
	}
	r := &p.Routes[i]
	r.seen = p.clock
	if known && cost >= r.Cost-1e-9 {
		return nil
	}
	r.Cost = cost
	return r
}

func (p *Pool) insert(r Route) int32 {
	if len(p.Routes) >= model.PoolMost {
		p.shed()
	}
	i := int32(len(p.Routes))
	p.byKey[r.key] = i
	p.Routes = append(p.Routes, r)
	return i
}

// shed drops the half that was not seen for the longest time.
func (p *Pool) shed() {
	order := make([]int, len(p.Routes))
	for i := range p.Routes {
		order[i] = p.Routes[i].seen
	}
	slices.Sort(order)
	limit := order[len(order)/2]
	kept := p.Routes[:0]
	clear(p.byKey)
	for _, r := range p.Routes {
		if r.seen > limit {
			p.byKey[r.key] = int32(len(kept))
			kept = append(kept, r)
		}
	}
	clear(p.Routes[len(kept):])
	p.Routes = kept
}

// Take moves another pool's routes into this one.
func (p *Pool) Take(other *Pool) {
	p.clock = max(p.clock, other.clock)
	for _, r := range other.Routes {
		if i, known := p.byKey[r.key]; !known {
			p.insert(r)
		} else if r.Cost < p.Routes[i].Cost {
			p.Routes[i] = r
		}
	}
	clear(other.byKey)
	other.Routes = nil
}

// Add makes columns of the routes of some pools, whose costs units gives as whole numbers, and
// returns the routes by the columns' Id.
func (c *Problem) Add(units func(cost float64) int64, pools ...*Pool) (routes []*Route) {
	for _, p := range pools {
		for i := range p.Routes {
			r := &p.Routes[i]
			c.Columns = append(c.Columns, Column{Customers: r.Rows, Cost: units(r.Cost), Kind: r.Kind, Id: int32(len(routes))})
			routes = append(routes, r)
		}
	}
	return routes
}
