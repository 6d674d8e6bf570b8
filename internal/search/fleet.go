package search

import (
	"context"
	"math"
	"time"
)

// Searching within a limit of vehicles. While routes are being removed, some customers are in no
// route. They are in absent, and every iteration tries to insert them.

// budget is a number of iterations, or a deadline where that is 0.
type budget struct {
	iterations int
	deadline   time.Time
}

// rebuild puts all customers into fewer routes, greedily.
func (c *chain) rebuild() {
	c.begin()
	c.slot, c.load = c.slot[:0], c.load[:0]
	c.free = c.free[:0]
	for i := range c.slots {
		c.free = append(c.free, int32(i))
	}
	c.before = 0
	for v := 1; v < c.nodes; v++ {
		c.route[v] = -1
		c.removed = append(c.removed, int32(v))
	}
	c.order.sort(&c.Stream, c.IntN(11), c.removed)
	for _, v := range c.removed {
		c.insert(v, math.MaxInt64)
	}
	c.journal = c.journal[:0]
	c.set(c.present())
}

// reduce brings the routes down to most: it gives up the route with the fewest customers and
// searches until all of them have a place in the others (the result is how many are left without
// one), weighing a customer by how often it was left out (the fleet minimisation of Christiaens and
// Vanden Berghe, 2020).
func (c *chain) reduce(ctx context.Context, most int, b budget) int {
	left := make([]int64, c.nodes) // how often each was left out
	var absent []int32
	done := 0
	for len(c.load) > most || len(absent) > 0 {
		if len(absent) == 0 {
			absent = c.giveUp()
		}
		c.most = len(c.load)
		for ; len(absent) > 0; done++ {
			if done%clockEach == 0 && (ctx.Err() != nil || b.iterations == 0 && !time.Now().Before(b.deadline)) || b.iterations > 0 && done >= b.iterations {
				return len(absent)
			}
			absent = c.squeeze(absent, left)
		}
	}
	c.set(c.present())
	return 0
}

// giveUp closes the route with the fewest customers and returns them.
func (c *chain) giveUp() []int32 {
	r := 0
	for i := range c.load {
		if len(c.slots[c.slot[i]].stops) < len(c.slots[c.slot[r]].stops) {
			r = i
		}
	}
	var out []int32
	stops := c.slots[c.slot[r]].stops
	for _, s := range stops[1 : len(stops)-1] {
		out = append(out, s.node)
		c.route[s.node] = -1
	}
	c.slots[c.slot[r]].stops = append(stops[:0], stop{}, stop{})
	c.load[r] = 0
	c.dropEmpty()
	return out
}

// squeeze is an iteration that tries the absent customers too, and keeps what leaves out less.
func (c *chain) squeeze(absent []int32, left []int64) []int32 {
	c.begin()
	c.ruin()
	for _, v := range absent {
		c.home[v] = -1
		c.removed = append(c.removed, v)
	}
	c.order.sort(&c.Stream, c.IntN(11), c.removed)
	var out []int32
	for _, v := range c.removed {
		if !c.insert(v, math.MaxInt64) {
			out = append(out, v)
		}
	}
	weight := func(list []int32) (sum int64) {
		for _, v := range list {
			sum += 1 + left[v]
		}
		return sum
	}
	better := len(out) < len(absent) || weight(out) <= weight(absent)
	for _, v := range out {
		left[v]++
	}
	if !better {
		c.undo()
		return absent
	}
	c.emptied = false // an empty route is a vehicle that still may be filled
	c.keep()
	return out
}
