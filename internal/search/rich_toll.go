package search

import (
	"slices"

	"haul/internal/vrp"
)

// The price of an overloaded vehicle. If capacities leave no slack, hardly any customer fits
// into another route, and a search that always keeps them does not move. What a reader could
// break: the price follows the routes, never a clock, and overloaded routes are never the best
// ones.

const (
	tollOne   = 1 << 16     // the weight of a customer's mean amount
	tollMost  = 2 * tollOne // overload of a route at most
	tollLeast = 20          // tasks under which vehicles are never overloaded
	tollEach  = 100         // iterations between two looks at the price
	// The price rises where fewer iterations than this end without overload, and falls where more
	// do.
	tollLow, tollHigh = 0.3, 0.5
	// the same for small problems, each of whose annealings is short
	tollLowSmall, tollHighSmall = 0.7, 0.9
	tollUp, tollDown            = 1.05, 0.98
	tollSpan                    = 100 // the price stays within this factor of the first one
	// closedEach is how many iterations those who are left out stay out, and then compete again.
	closedEach = 1000
)

// weigh makes a customer's mean amount weigh the same in every dimension.
func (m *model) weigh() {
	m.weights = make([]int64, m.dims)
	for d := range m.dims {
		var sum float64
		for _, v := range m.tasks {
			sum += float64(m.amountsOf(v)[d].peak)
		}
		mean := max(1e-3, sum/float64(max(1, len(m.tasks))))
		m.weights[d] = max(1, int64(tollOne/mean))
	}
}

// oneSize is whether vehicles of a family hold the same. Where larger ones are to be had, they are
// the way out of overload; a price of overload would fill them and leave the small ones at home.
func (m *model) oneSize() bool {
	for i := range m.kinds {
		for j := range i {
			if m.kinds[i].family == m.kinds[j].family && !slices.Equal(m.kinds[i].cap, m.kinds[j].cap) {
				return false
			}
		}
	}
	return true
}

// excess is how far a load passes the room of a kind's vehicle, weighed.
func (c *rchain) excess(peak int32, t *kind, trip, dim int) int64 {
	return int64(max(0, peak-c.room(t, trip, dim))) * c.weights[dim]
}

// tolled is what a route costs with its toll.
func (c *rchain) tolled(s *rslot) float64 { return s.cost + float64(float64(s.over)*c.toll) }

// book notes a change of cost and of overload.
func (c *rchain) book(cost float64, over int64) {
	c.more += over
	c.change += cost + float64(float64(over)*c.toll)
}

// levy lets the toll follow the share of iterations that end without overload.
func (c *rchain) levy() {
	c.steps++
	if c.over == 0 {
		c.clean++
	}
	if c.steps < tollEach {
		return
	}
	was := c.toll
	if share := float64(c.clean) / tollEach; share < c.tollLow {
		c.toll = min(c.toll*tollUp, c.tollUnit*tollSpan)
	} else if share > c.tollHigh {
		c.toll = max(c.toll*tollDown, c.tollUnit/tollSpan)
	}
	c.cost += float64((c.toll - was) * float64(c.over))
	c.steps, c.clean = 0, 0
}

// ease says whether overload may be had at its price. As long as required customers are left out, a
// vehicle with too much on board would always seem the better way: then it may be had in every
// other stretch of iterations alone, while those who are left out stay out.
func (c *rchain) ease(iterations int) {
	c.missed = c.short()
	// A backhaul that is left out may need a linehaul which its cheapest spot keeps in another route.
	c.apart = c.missed && c.ordered == vrp.LinehaulFirst
	if !c.softly {
		return
	}
	if c.closed {
		if c.spell += iterations; c.spell >= closedEach {
			c.reopen()
		}
		return
	}
	if c.soft || !c.missed {
		c.soft = true
		return
	}
	if c.spell += iterations; c.spell >= closedEach && !c.anyLock() {
		c.soft, c.closed, c.spell = true, true, 0
	}
}

// reopen lets those who are left out compete for room again, from routes without overload.
func (c *rchain) reopen() {
	c.soft, c.closed, c.spell = false, false, 0
	if c.over > 0 {
		c.set(c.best, c.bestKind, nil)
	}
}

func (c *rchain) anyLock() bool {
	for _, id := range c.slot {
		if c.slots[id].lock > 0 {
			return true
		}
	}
	return false
}

// short is whether the present routes leave out a required task.
func (c *rchain) short() bool {
	for _, lead := range c.absent {
		if c.places[lead].required {
			return true
		}
	}
	return false
}
