// Package cover finds the best solution that can be combined from routes: a set partitioning
// problem. Lagrange multipliers of the customers give every route a reduced cost (Beasley, 1987, by
// subgradients; Barahona and Anbil, 2000, by the volume algorithm). Routes that no better solution
// can contain are dropped, and a depth-first search over the rest tries the least reduced cost
// first.
//
// All work is bounded by counts, so that a result depends on the routes alone.
package cover

import (
	"cmp"
	"slices"
)

// Costs in a set partitioning problem are whole numbers.
const (
	Units    = 1e6     // in a typical leg
	MostCost = 1 << 50 // of a solution
	Same     = 100     // units that the rounding of all routes comes to, at most
)

// Parts are parts of the way from the bound to the best cost. A cover of a small problem looks
// for solutions below each of them in turn: the search is the faster the nearer its limit is to the
// bound, and otherwise spends its time below the first routes that it takes.
var Parts = []float64{0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9}

const (
	coverSteps   = 600  // of the subgradient
	coverColumns = 6000 // routes of least reduced cost that it may choose from
	coverBits    = 4096 // nodes up to which a route is compared with others by all their bits
)

type Column struct {
	Customers []int32
	Cost      int64
	reduced   float64
	set       []uint64 // of the customers, as bits; nil past coverBits nodes
	Kind      int32    // of its vehicle; below 0: no route
	Id        int32    // the caller's
}

// mask is a column as ways reads it.
type mask struct {
	a, b    uint64
	reduced float64 // 0 at least
}

type Problem struct {
	Columns []Column
	Nodes   int
	Upper   int64 // what a solution must stay below
	Most    int
	// Vehicles left by kind, and routes left where kinds count; nil: neither counts.
	Vehicles []int
	Routes   int
	Price    []float64 // multiplier of each customer
	Lower    float64   // bound at those multipliers

	Parts   []float64 // of the way from the bound to upper that are searched first
	Sorted  bool      // customers on the fewest routes come first
	order   []int32   // of the customers
	masks   []mask    // by column, where two words hold all customers
	byRow   [][]int32 // columns that visit each customer, least reduced cost first
	covered []uint64
	chosen  []int32
	Best    []int32
	Tries   int // left
	Stop    func() bool
	stopped bool
}

// Relax raises the lower bound by subgradient steps and keeps the best multipliers.
func (c *Problem) Relax() {
	u := make([]float64, c.Nodes)
	c.shares(u)
	times := make([]int32, c.Nodes)
	scale, since := 1.0, 0
	c.Lower = -1e300
	for step := range coverSteps {
		if step%16 == 0 && c.Stop() {
			break
		}
		clear(times)
		bound := 0.0
		for _, x := range u {
			bound += x
		}
		for i := range c.Columns {
			col := &c.Columns[i]
			r := float64(col.Cost)
			for _, v := range col.Customers {
				r -= u[v]
			}
			if r < 0 {
				bound += r
				for _, v := range col.Customers {
					times[v]++
				}
			}
		}
		since++
		if bound > c.Lower {
			c.Lower, since = bound, 0
			copy(c.Price, u)
		}
		if since >= 15 {
			scale, since = scale/2, 0
			if scale < 1e-4 {
				break
			}
			copy(u, c.Price)
			continue
		}
		norm := 0
		for _, t := range times[1:] {
			norm += int(1-t) * int(1-t)
		}
		if norm == 0 {
			break
		}
		size := scale * max(float64(c.Upper)-bound, 1) * 1.05 / float64(norm)
		for v := 1; v < c.Nodes; v++ {
			u[v] += size * float64(1-times[v])
		}
	}
}

// shares is multipliers near the truth: each customer pays its share of the cheapest route that it
// is on.
func (c *Problem) shares(u []float64) {
	for i := range u {
		u[i] = -1
	}
	for _, col := range c.Columns {
		share := float64(col.Cost) / float64(len(col.Customers))
		for _, v := range col.Customers {
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

// Reduce keeps the columns that a better solution may use.
func (c *Problem) Reduce() {
	kept := c.Columns[:0]
	for _, col := range c.Columns {
		col.reduced = float64(col.Cost)
		for _, v := range col.Customers {
			col.reduced -= c.Price[v]
		}
		if c.Lower+max(col.reduced, 0) < float64(c.Upper) {
			kept = append(kept, col)
		}
	}
	slices.SortFunc(kept, func(a, b Column) int {
		return cmp.Or(cmp.Compare(a.reduced, b.reduced), cmp.Compare(a.Cost, b.Cost), slices.Compare(a.Customers, b.Customers))
	})
	c.Columns = kept[:min(len(kept), coverColumns)]
}

func (c *Problem) Search() ([][]int32, int64) {
	c.byRow = make([][]int32, c.Nodes)
	for i := range c.Columns {
		col := &c.Columns[i]
		if c.Nodes <= coverBits {
			col.set = make([]uint64, (c.Nodes+63)/64)
		}
		for _, v := range col.Customers {
			if col.set != nil {
				col.set[v/64] |= 1 << (v % 64)
			}
			c.byRow[v] = append(c.byRow[v], int32(i))
		}
	}
	c.covered = make([]uint64, max(2, (c.Nodes+63)/64))
	if c.Nodes <= 128 {
		c.masks = make([]mask, len(c.Columns))
		for i := range c.Columns {
			col := &c.Columns[i]
			c.masks[i] = mask{a: col.set[0], reduced: max(col.reduced, 0)}
			if len(col.set) > 1 {
				c.masks[i].b = col.set[1]
			}
		}
	}
	c.order = make([]int32, 0, c.Nodes)
	for v := int32(1); int(v) < c.Nodes; v++ {
		c.order = append(c.order, v)
	}
	if c.Sorted {
		slices.SortStableFunc(c.order, func(a, b int32) int { return cmp.Compare(len(c.byRow[a]), len(c.byRow[b])) })
	}
	upper := c.Upper
	for _, part := range c.Parts {
		// A solution this near to the bound is found soon, where there is one.
		c.Upper = int64(c.Lower + part*(float64(upper)-c.Lower))
		if c.descend(c.Nodes-1, 0, c.Lower); c.Best != nil || c.stopped {
			break
		}
		c.Upper = upper
	}
	if c.Best == nil && !c.stopped {
		c.descend(c.Nodes-1, 0, c.Lower)
	}
	if c.Best == nil {
		return nil, 0
	}
	var routes [][]int32
	for _, i := range c.Best {
		routes = append(routes, slices.Clone(c.Columns[i].Customers))
	}
	return routes, c.Upper
}

// descend covers one more customer in every way: the one with the fewest ways left.
func (c *Problem) descend(left int, cost int64, bound float64) {
	if left == 0 {
		if cost < c.Upper {
			c.Upper = cost
			c.Best = append(c.Best[:0], c.chosen...)
		}
		return
	}
	if len(c.chosen) == c.Most {
		return
	}
	row, fewest := int32(0), int(1<<30)
	for _, v := range c.order {
		if c.covered[v/64]>>(v%64)&1 != 0 {
			continue
		}
		if ways := c.ways(v, fewest, float64(c.Upper)-bound); ways < fewest {
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
		col := &c.Columns[i]
		next := bound + max(col.reduced, 0)
		if next >= float64(c.Upper) {
			return
		}
		if !c.fits(col) || !c.hire(col, -1) {
			continue
		}
		if c.Tries--; c.Tries <= 0 || (c.Tries%64 == 0 || c.Nodes > coverBits) && c.Stop() {
			c.stopped = true
		}
		if c.stopped {
			return
		}
		c.flip(col)
		c.chosen = append(c.chosen, i)
		c.descend(left-len(col.Customers), cost+col.Cost, next)
		c.chosen = c.chosen[:len(c.chosen)-1]
		c.flip(col)
		c.hire(col, 1)
		if c.stopped {
			return
		}
	}
}

// ways counts the columns below a reduced cost that may still cover a customer, up to most.
func (c *Problem) ways(v int32, most int, below float64) (n int) {
	if c.masks == nil {
		for _, i := range c.byRow[v] {
			col := &c.Columns[i]
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

func (c *Problem) fits(col *Column) bool {
	if col.set == nil {
		for _, v := range col.Customers {
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
func (c *Problem) hire(col *Column, by int) bool {
	if c.Vehicles == nil || col.Kind < 0 {
		return true
	}
	if by < 0 && (c.Vehicles[col.Kind] == 0 || c.Routes == 0) {
		return false
	}
	c.Vehicles[col.Kind] += by
	c.Routes += by
	return true
}

// flip covers a column's customers, or uncovers them.
func (c *Problem) flip(col *Column) {
	if col.set == nil {
		for _, v := range col.Customers {
			c.covered[v/64] ^= 1 << (v % 64)
		}
		return
	}
	for i, w := range col.set {
		c.covered[i] ^= w
	}
}
