package search

import (
	"haul/internal/search/cover"
	"haul/internal/search/model"
)

// The routes of one region while they are annealed. A route lies in a slot, and a slot of the
// accepted routes is never written to. The first change of a route in an iteration copies it into a
// free slot (touch). Keeping the change frees the old slot, undoing it frees the new one; neither
// copies anything.

// stop is a visit and the leg that leads to it. The first and the last stop of a route are the
// depot.
type stop struct{ node, leg int32 }

type routeBuffer struct {
	stops  []stop
	length int64 // of legs and services; kept where the region has a limit
}

// plainUndo is a route changed by the iteration under way, and what it was.
type plainUndo struct {
	route, slot, load int32 // slot -1: the route was opened by this iteration
}

// chain is one solution that moves.
type chain struct {
	*region
	overlooking
	slots []routeBuffer
	free  []int32 // slots in no use
	slot  []int32 // of each route; routes beyond len(load) are none
	load  []int32
	route []int32 // of each customer; -1 while it is in none
	most  int     // routes allowed
	cost  int64

	// Of the iteration under way.
	tick    int64
	journal []plainUndo
	stamp   []int64 // tick at which the route was last touched
	cut     []int64 // tick at which a string was last taken from it
	probed  []int64 // insertion for which the route was last looked at
	probe   int64   // insertions so far
	removed []int32
	home    []int32 // the route a removed customer came from
	order   insertionOrder
	change  int64
	before  int  // routes there were at begin
	emptied bool // some touched route lost all customers

	scratch [][]int32

	best     [][]int32 // the best routes seen, once the chain has moved on from them
	bestCost int64
	atBest   bool // the present routes are the best seen

	pool *cover.Pool // where routes of new best solutions go; nil: nowhere
}

func newChain(g *region, most int, s model.Stream) *chain {
	c := &chain{region: g, overlooking: overlooking{Stream: s}, most: most, route: make([]int32, g.nodes), home: make([]int32, g.nodes)}
	amounts, distances := make([]uint32, g.nodes), make([]uint32, g.nodes)
	for v := range distances {
		amounts[v], distances[v] = uint32(g.demand[v]), uint32(g.out[v])
	}
	c.order = newInsertionOrder(amounts, distances, nil, nil)
	c.untilSkip = c.UntilNextSkip()
	return c
}

// set replaces all routes, given in the region's numbers.
func (c *chain) set(routes [][]int32) {
	c.free, c.slot, c.load, c.cost = c.free[:0], c.slot[:0], c.load[:0], 0
	for i := range c.slots {
		c.free = append(c.free, int32(i))
	}
	for _, r := range routes {
		if len(r) == 0 {
			continue
		}
		k := c.take()
		s := &c.slots[k]
		s.stops = append(s.stops[:0], stop{})
		s.length = 0
		last, load := int32(0), int32(0)
		for _, v := range r {
			s.stops = append(s.stops, stop{v, c.leg(last, v)})
			load += c.demand[v]
			c.route[v] = int32(len(c.load))
			if c.service != nil {
				s.length += int64(c.service[v])
			}
			last = v
		}
		s.stops = append(s.stops, stop{0, c.leg(last, 0)})
		for _, at := range s.stops {
			c.cost += int64(at.leg)
			s.length += int64(at.leg)
		}
		c.slot, c.load = append(c.slot, k), append(c.load, load)
	}
	for len(c.stamp) < c.nodes+1 {
		c.stamp, c.cut, c.probed = append(c.stamp, 0), append(c.cut, 0), append(c.probed, 0)
	}
	c.bestCost, c.atBest = c.cost, true
}

func (c *chain) leg(i, j int32) int32 { return c.out[int(i)*c.nodes+int(j)] }

func (c *chain) take() int32 {
	if n := len(c.free); n > 0 {
		k := c.free[n-1]
		c.free = c.free[:n-1]
		return k
	}
	c.slots = append(c.slots, routeBuffer{stops: make([]stop, 0, 32)})
	return int32(len(c.slots) - 1)
}

// touch makes a route ready for changes.
func (c *chain) touch(r int32) *routeBuffer {
	if c.stamp[r] == c.tick {
		return &c.slots[c.slot[r]]
	}
	c.stamp[r] = c.tick
	old := c.slot[r]
	k := c.take()
	s, from := &c.slots[k], &c.slots[old]
	s.stops = append(s.stops[:0], from.stops...)
	s.length = from.length
	c.journal = append(c.journal, plainUndo{r, old, c.load[r]})
	c.slot[r] = k
	return s
}

// open adds an empty route.
func (c *chain) open() int32 {
	r := int32(len(c.load))
	k := c.take()
	s := &c.slots[k]
	s.stops = append(s.stops[:0], stop{}, stop{})
	s.length = 0
	c.slot, c.load = append(c.slot, k), append(c.load, 0)
	c.stamp[r] = c.tick
	c.journal = append(c.journal, plainUndo{r, -1, 0})
	return r
}

// begin starts an iteration.
func (c *chain) begin() {
	c.tick++
	c.journal, c.removed, c.change, c.emptied = c.journal[:0], c.removed[:0], 0, false
	c.before = len(c.load)
}

// undo restores the routes as they were at begin.
func (c *chain) undo() {
	for _, t := range c.journal {
		c.free = append(c.free, c.slot[t.route])
		if t.slot >= 0 {
			c.slot[t.route], c.load[t.route] = t.slot, t.load
		}
	}
	c.slot, c.load = c.slot[:c.before], c.load[:c.before]
	for _, v := range c.removed {
		c.route[v] = c.home[v]
	}
}

// keep makes the iteration's routes the present ones.
func (c *chain) keep() {
	if c.atBest && c.change > 0 {
		c.remember()
	}
	for _, t := range c.journal {
		if t.slot >= 0 {
			c.free = append(c.free, t.slot)
		}
	}
	if c.emptied {
		c.dropEmpty()
	}
	c.cost += c.change
	if c.cost < c.bestCost {
		c.bestCost, c.atBest = c.cost, true
	} else if c.change != 0 {
		c.atBest = false
	}
}

// remember copies the routes as they were at begin: the best seen, which the chain is leaving.
func (c *chain) remember() {
	c.atBest = false
	old := c.journal
	k := 0
	for r := range c.before {
		from := c.slot[r]
		if c.stamp[r] == c.tick {
			for _, t := range old {
				if t.route == int32(r) {
					from = t.slot
				}
			}
		}
		c.best = copyRoute(c.best, k, c.slots[from].stops)
		k++
	}
	c.best = c.best[:k]
	if c.pool != nil {
		c.region.pool(c.pool, c.best)
	}
}

func copyRoute(to [][]int32, k int, stops []stop) [][]int32 {
	if k == len(to) {
		if k < cap(to) {
			to = to[:k+1]
		} else {
			to = append(to, nil)
		}
	}
	r := to[k][:0]
	for _, s := range stops[1 : len(stops)-1] {
		r = append(r, s.node)
	}
	to[k] = r
	return to
}

// present copies the present routes out.
func (c *chain) present() [][]int32 {
	var out [][]int32
	for r := range c.load {
		out = copyRoute(out, r, c.slots[c.slot[r]].stops)
	}
	return out
}

// bestRoutes is the best routes seen since set, and their cost. They belong to the chain.
func (c *chain) bestRoutes() ([][]int32, int64) {
	if c.atBest {
		c.best = c.best[:0]
		for r := range c.load {
			c.best = copyRoute(c.best, r, c.slots[c.slot[r]].stops)
		}
		if c.pool != nil {
			c.region.pool(c.pool, c.best)
		}
	}
	return c.best, c.bestCost
}

// dropEmpty closes the gaps that routes without customers leave.
func (c *chain) dropEmpty() {
	for r := 0; r < len(c.load); {
		s := c.slot[r]
		if len(c.slots[s].stops) > 2 {
			r++
			continue
		}
		c.free = append(c.free, s)
		last := len(c.load) - 1
		c.slot[r], c.load[r] = c.slot[last], c.load[last]
		c.slot, c.load = c.slot[:last], c.load[:last]
		if r < last {
			stops := c.slots[c.slot[r]].stops
			for _, at := range stops[1 : len(stops)-1] {
				c.route[at.node] = int32(r)
			}
		}
	}
}
