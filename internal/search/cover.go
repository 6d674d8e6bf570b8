package search

import (
	"cmp"
	"slices"
)

// The best solution that can be combined from the routes of a pool: a set partitioning problem.
// Lagrange multipliers of the customers, improved by subgradients, give every route a reduced
// cost. Routes that no better solution can contain are dropped, and a depth-first search over
// the rest tries the least reduced cost first. What a reader could break: all work is bounded by
// counts, never by a clock, so that the result depends only on the pool.

const (
	coverSteps   = 600  // of the subgradient
	coverColumns = 6000 // routes of least reduced cost that it may choose from
	coverBits    = 4096 // nodes up to which a route is compared with others by all their bits
)

type column struct {
	customers []int32
	cost      int64
	reduced   float64
	set       []uint64 // of the customers, as bits; nil past coverBits nodes
	kind      int32    // of its vehicle; below 0: no route
	id        int32    // the caller's
}

// cover returns routes of the pool that visit every customer once at a total below cost, and that
// total; nil where it finds none. most bounds the number of routes, tries and stop the search.
func (p *pool) cover(nodes int, cost int64, most, tries int, stop func() bool) ([][]int32, int64) {
	c := newCoverer(p, nodes, cost, most)
	c.tries, c.stop = tries, stop
	if len(c.columns) == 0 {
		return nil, 0
	}
	c.relax()
	c.reduce()
	return c.search()
}

// mask is a column as ways reads it.
type mask struct {
	a, b    uint64
	reduced float64 // 0 at least
}

type coverer struct {
	columns []column
	nodes   int
	upper   int64 // what a solution must stay below
	most    int
	// Vehicles left by kind, and routes left where kinds count; nil: neither counts.
	vehicles []int
	routes   int
	price    []float64 // multiplier of each customer
	lower    float64   // bound at those multipliers

	parts   []float64 // of the way from the bound to upper that are searched first
	sorted  bool      // customers on the fewest routes come first
	order   []int32   // of the customers
	masks   []mask    // by column, where two words hold all customers
	byRow   [][]int32 // columns that visit each customer, least reduced cost first
	covered []uint64
	chosen  []int32
	best    []int32
	tries   int // left
	stop    func() bool
	stopped bool
}

func newCoverer(p *pool, nodes int, cost int64, most int) *coverer {
	c := &coverer{nodes: nodes, upper: cost, most: most, price: make([]float64, nodes)}
	for _, r := range p.routes {
		c.columns = append(c.columns, column{customers: r.customers, cost: r.cost})
	}
	return c
}

// relax raises the lower bound by subgradient steps and keeps the best multipliers.
func (c *coverer) relax() {
	u := make([]float64, c.nodes)
	c.shares(u)
	times := make([]int32, c.nodes)
	scale, since := 1.0, 0
	c.lower = -1e300
	for step := range coverSteps {
		if step%16 == 0 && c.stop() {
			break
		}
		clear(times)
		bound := 0.0
		for _, x := range u {
			bound += x
		}
		for i := range c.columns {
			col := &c.columns[i]
			r := float64(col.cost)
			for _, v := range col.customers {
				r -= u[v]
			}
			if r < 0 {
				bound += r
				for _, v := range col.customers {
					times[v]++
				}
			}
		}
		since++
		if bound > c.lower {
			c.lower, since = bound, 0
			copy(c.price, u)
		}
		if since >= 15 {
			scale, since = scale/2, 0
			if scale < 1e-4 {
				break
			}
			copy(u, c.price)
			continue
		}
		norm := 0
		for _, t := range times[1:] {
			norm += int(1-t) * int(1-t)
		}
		if norm == 0 {
			break
		}
		size := scale * max(float64(c.upper)-bound, 1) * 1.05 / float64(norm)
		for v := 1; v < c.nodes; v++ {
			u[v] += size * float64(1-times[v])
		}
	}
}

// shares is multipliers near the truth: each customer pays its share of the cheapest route that it
// is on.
func (c *coverer) shares(u []float64) {
	for i := range u {
		u[i] = -1
	}
	for _, col := range c.columns {
		share := float64(col.cost) / float64(len(col.customers))
		for _, v := range col.customers {
			if u[v] < 0 || share < u[v] {
				u[v] = share
			}
		}
	}
	for i := range u {
		u[i] = max(u[i], 0)
	}
	u[0] = 0
}

// reduce keeps the columns that a better solution may use.
func (c *coverer) reduce() {
	kept := c.columns[:0]
	for _, col := range c.columns {
		col.reduced = float64(col.cost)
		for _, v := range col.customers {
			col.reduced -= c.price[v]
		}
		if c.lower+max(col.reduced, 0) < float64(c.upper) {
			kept = append(kept, col)
		}
	}
	slices.SortFunc(kept, func(a, b column) int {
		return cmp.Or(cmp.Compare(a.reduced, b.reduced), cmp.Compare(a.cost, b.cost), slices.Compare(a.customers, b.customers))
	})
	c.columns = kept[:min(len(kept), coverColumns)]
}

func (c *coverer) search() ([][]int32, int64) {
	c.byRow = make([][]int32, c.nodes)
	for i := range c.columns {
		col := &c.columns[i]
		if c.nodes <= coverBits {
			col.set = make([]uint64, (c.nodes+63)/64)
		}
		for _, v := range col.customers {
			if col.set != nil {
				col.set[v/64] |= 1 << (v % 64)
			}
			c.byRow[v] = append(c.byRow[v], int32(i))
		}
	}
	c.covered = make([]uint64, max(2, (c.nodes+63)/64))
	if c.nodes <= 128 {
		c.masks = make([]mask, len(c.columns))
		for i := range c.columns {
			col := &c.columns[i]
			c.masks[i] = mask{a: col.set[0], reduced: max(col.reduced, 0)}
			if len(col.set) > 1 {
				c.masks[i].b = col.set[1]
			}
		}
	}
	c.order = make([]int32, 0, c.nodes)
	for v := int32(1); int(v) < c.nodes; v++ {
		c.order = append(c.order, v)
	}
	if c.sorted {
		slices.SortStableFunc(c.order, func(a, b int32) int { return cmp.Compare(len(c.byRow[a]), len(c.byRow[b])) })
	}
	upper := c.upper
	for _, part := range c.parts {
		// A solution this near to the bound is found soon, where there is one.
		c.upper = int64(c.lower + part*(float64(upper)-c.lower))
		if c.descend(c.nodes-1, 0, c.lower); c.best != nil || c.stopped {
			break
		}
		c.upper = upper
	}
	if c.best == nil && !c.stopped {
		c.descend(c.nodes-1, 0, c.lower)
	}
	if c.best == nil {
		return nil, 0
	}
	var routes [][]int32
	for _, i := range c.best {
		routes = append(routes, slices.Clone(c.columns[i].customers))
	}
	return routes, c.upper
}

// descend covers one more customer in every way: the one with the fewest ways left.
func (c *coverer) descend(left int, cost int64, bound float64) {
	if left == 0 {
		if cost < c.upper {
			c.upper = cost
			c.best = append(c.best[:0], c.chosen...)
		}
		return
	}
	if len(c.chosen) == c.most {
		return
	}
	row, fewest := int32(0), int(1<<30)
	for _, v := range c.order {
		if c.covered[v/64]>>(v%64)&1 != 0 {
			continue
		}
		if ways := c.ways(v, fewest, float64(c.upper)-bound); ways < fewest {
			row, fewest = v, ways
		}
		if fewest == 0 {
			return
		}
		if fewest == 1 {
			break
		}
	}
	for _, i := range c.byRow[row] {
		col := &c.columns[i]
		next := bound + max(col.reduced, 0)
		if next >= float64(c.upper) {
			return
		}
		if !c.fits(col) || !c.hire(col, -1) {
			continue
		}
		if c.tries--; c.tries <= 0 || (c.tries%64 == 0 || c.nodes > coverBits) && c.stop() {
			c.stopped = true
		}
		if c.stopped {
			return
		}
		c.flip(col)
		c.chosen = append(c.chosen, i)
		c.descend(left-len(col.customers), cost+col.cost, next)
		c.chosen = c.chosen[:len(c.chosen)-1]
		c.flip(col)
		c.hire(col, 1)
		if c.stopped {
			return
		}
	}
}

// ways counts the columns below a reduced cost that may still cover a customer, up to most.
func (c *coverer) ways(v int32, most int, below float64) (n int) {
	if c.masks == nil {
		for _, i := range c.byRow[v] {
			col := &c.columns[i]
			if max(col.reduced, 0) >= below {
				break // and those behind it cost more
			}
			if c.fits(col) {
				if n++; n >= most {
					break
				}
			}
		}
		return n
	}
	a, b := c.covered[0], c.covered[1]
	for _, i := range c.byRow[v] {
		m := &c.masks[i]
		if m.reduced >= below {
			break
		}
		if m.a&a|m.b&b == 0 {
			if n++; n >= most {
				break
			}
		}
	}
	return n
}

func (c *coverer) fits(col *column) bool {
	if col.set == nil {
		for _, v := range col.customers {
			if c.covered[v/64]>>(v%64)&1 != 0 {
				return false
			}
		}
		return true
	}
	for i, w := range col.set {
		if w&c.covered[i] != 0 {
			return false
		}
	}
	return true
}

// hire takes a column's vehicle from those left (-1) or gives it back (1); false where none is.
func (c *coverer) hire(col *column, by int) bool {
	if c.vehicles == nil || col.kind < 0 {
		return true
	}
	if by < 0 && (c.vehicles[col.kind] == 0 || c.routes == 0) {
		return false
	}
	c.vehicles[col.kind] += by
	c.routes += by
	return true
}

// flip covers a column's customers, or uncovers them.
func (c *coverer) flip(col *column) {
	if col.set == nil {
		for _, v := range col.customers {
			c.covered[v/64] ^= 1 << (v % 64)
		}
		return
	}
	for i, w := range col.set {
		c.covered[i] ^= w
	}
}
