package vrp

import (
	"context"
	"math"
	"slices"

	"haul/internal/rng"
)

// Ruin and recreate: take strings of customers out of neighbouring routes, put each back where it
// is cheapest, keep or undo by simulated annealing (slack induction by string removals,
// Christiaens and Vanden Berghe, 2020). What a reader could break: a route is saved in the journal
// before its first change of an iteration, or undo restores something else. The budget counts
// iterations, never seconds, and iteration i draws from Philox counter i, so a result is a
// function of the problem and the budget.

// The method's own constants.
const (
	removedMean   = 10    // customers an iteration removes, on average
	stringMax     = 10    // the longest string removed
	splitChance   = 0.5   // of keeping a few customers inside a removed string
	splitDeeper   = 0.99  // of not keeping one more
	blinkChance   = 0.01  // of overlooking a position while inserting
	hotShare      = 1     // first temperature, in mean legs
	coldShare     = 0.005 // last temperature
	meltEach      = 200   // iterations a customer that a start at the first temperature takes
	searchSeed    = 0
	ctxIterations = 64 // how often cancellation is asked for
)

// draws is the stream of one iteration.
type draws struct {
	index uint64
	draw  uint32
	words [4]uint32
	left  int
}

func (g *draws) word() uint32 {
	if g.left == 0 {
		g.words = rng.At(searchSeed, g.index, g.draw, rng.Search)
		g.draw++
		g.left = 4
	}
	g.left--
	return g.words[3-g.left]
}

func (g *draws) below(n int) int       { return int(rng.Below(g.word(), uint32(n))) }
func (g *draws) chance(p float32) bool { return rng.Float(g.word()) < p }

// 1..floor(limit)
func (g *draws) upTo(limit float64) int { return 1 + int(float64(rng.Float(g.word()))*limit) }
func (g *draws) start(iteration int)    { *g = draws{index: uint64(iteration)} }

type savedRoute struct {
	r        int
	from, to int // in the journal's buffer
}

// ruin anneals the routes of tours.
type ruin struct {
	*tours
	draws
	saved  []savedRoute
	buffer []int32
	stamp  []int // iteration that last saved the route
	cut    []int // iteration that last took a string from the route
	out    []int32
	keys   []uint32 // order of reinsertion
	change float64
	used   int // routes with customers
}

// run spends the budget and leaves the best routes found in tours.
func (a *ruin) run(ctx context.Context, budget int) error {
	n := a.n - 1
	if n < 3 || budget <= 0 {
		return nil
	}
	a.keys = make([]uint32, a.n)
	legs := n
	for _, r := range a.routes {
		if len(r) > 0 {
			a.used++
			legs++
		}
	}
	best := a.solution()
	cost := a.p.Cost(best)
	// A short budget starts colder: from a full melt it would not get back to where it began.
	heat := min(1, float64(budget)/float64(meltEach*n))
	bestCost, hot := cost, heat*hotShare*cost/float64(legs)
	cooling := math.Pow(coldShare/hotShare, 1/float64(budget))
	slack := 1e-12 * cost
	for it := 1; it <= budget; it++ {
		if it%ctxIterations == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		a.start(it)
		a.saved, a.buffer, a.out, a.change = a.saved[:0], a.buffer[:0], a.out[:0], 0
		used := a.used
		a.remove(it)
		a.recreate(it)
		// ln of a number in (0, 1]: an uphill step of size -T ln(u) is accepted.
		if a.change < -hot*math.Log(1-float64(rng.Float(a.word()))) {
			cost += a.change
			if cost < bestCost-slack {
				bestCost = cost
				best = a.copyInto(best)
			}
		} else {
			a.undo()
			a.used = used
		}
		hot *= cooling
	}
	a.set(best)
	return nil
}

// copyInto is solution, reusing the memory of an older one.
func (a *ruin) copyInto(sol Solution) Solution {
	k := 0
	for _, r := range a.routes {
		if len(r) == 0 {
			continue
		}
		if k == len(sol.Routes) {
			sol.Routes = append(sol.Routes, nil)
		}
		sol.Routes[k] = append(sol.Routes[k][:0], r...)
		k++
	}
	sol.Routes = sol.Routes[:k]
	return sol
}

// save notes route r in the journal once per iteration.
func (a *ruin) save(r, it int) {
	for len(a.stamp) < len(a.routes) {
		a.stamp, a.cut = append(a.stamp, 0), append(a.cut, 0)
	}
	if a.stamp[r] == it {
		return
	}
	a.stamp[r] = it
	from := len(a.buffer)
	a.buffer = append(a.buffer, a.routes[r]...)
	a.saved = append(a.saved, savedRoute{r, from, len(a.buffer)})
}

func (a *ruin) undo() {
	for _, s := range a.saved {
		a.routes[s.r] = append(a.routes[s.r][:0], a.buffer[s.from:s.to]...)
		a.renumber(s.r, 0)
	}
}

// remove takes one string from each of a few routes near a random customer.
func (a *ruin) remove(it int) {
	n := a.n - 1
	longest := min(stringMax, float64(n)/float64(a.used))
	strings := a.upTo(4*removedMean/(1+longest) - 1)
	seed := int32(1 + a.below(n))
	a.removeString(seed, longest, it)
	for _, c := range a.near.of(seed) {
		if strings == 1 {
			return
		}
		if r := a.route[c]; r >= 0 && !a.wasCut(int(r), it) {
			a.removeString(c, longest, it)
			strings--
		}
	}
}

func (a *ruin) wasCut(r, it int) bool { return r < len(a.cut) && a.cut[r] == it }

// removeString takes a run of customers around c out of its route; sometimes a longer run from
// which a few in the middle stay.
func (a *ruin) removeString(c int32, longest float64, it int) {
	r := int(a.route[c])
	a.save(r, it)
	a.cut[r] = it
	route := a.routes[r]
	size := a.upTo(min(longest, float64(len(route))))
	keep := 0
	if size > 1 && size < len(route) && a.chance(splitChance) {
		for keep = 1; size+keep < len(route) && !a.chance(splitDeeper); keep++ {
		}
	}
	span := size + keep
	p := int(a.pos[c])
	lo := max(0, p-span+1)
	lo += a.below(min(p, len(route)-span) - lo + 1)
	hole := lo + span // kept customers are [hole, hole+keep); none by default
	if keep > 0 {
		hole = lo + 1 + a.below(size-1)
	}
	a.change -= a.legs(route, lo, lo+span)
	end := lo
	for i := lo; i < lo+span; i++ {
		v := route[i]
		if i >= hole && i < hole+keep {
			route[end] = v
			end++
			continue
		}
		a.route[v] = -1
		a.out = append(a.out, v)
	}
	a.routes[r] = append(route[:end], route[lo+span:]...)
	a.renumber(r, lo)
	a.change += a.legs(a.routes[r], lo, end)
	if len(a.routes[r]) == 0 {
		a.used--
	}
}

// legs is the length of the legs from before index lo to index hi of a route.
func (a *ruin) legs(route []int32, lo, hi int) float64 {
	var sum float64
	last := a.at(route, lo-1)
	for i := lo; i <= hi; i++ {
		v := a.at(route, i)
		sum += a.d(last, v)
		last = v
	}
	return sum
}

// recreate puts every removed customer back at its cheapest position.
func (a *ruin) recreate(it int) {
	a.order()
	for _, c := range a.out {
		r, at, cost := -1, 0, a.d(0, c)+a.d(c, 0)
		room := int64(a.p.Capacity) - int64(a.p.Demand[c])
		for _, w := range a.near.of(c) {
			k := int(a.route[w])
			if k < 0 || a.load[k] > room || a.chance(blinkChance) {
				continue
			}
			route, i := a.routes[k], int(a.pos[w])
			prev, next := a.at(route, i-1), a.at(route, i+1)
			if d := a.d(prev, c) + a.d(c, w) - a.d(prev, w); d < cost {
				r, at, cost = k, i, d
			}
			if d := a.d(w, c) + a.d(c, next) - a.d(w, next); d < cost {
				r, at, cost = k, i+1, d
			}
		}
		if r < 0 {
			r = a.emptyRoute()
			a.used++
		}
		a.save(r, it)
		a.routes[r] = slices.Insert(a.routes[r], at, c)
		a.renumber(r, at)
		a.change += cost
	}
}

// emptyRoute is the index of a route without customers.
func (a *ruin) emptyRoute() int {
	for r, route := range a.routes {
		if len(route) == 0 {
			return r
		}
	}
	a.routes, a.load = append(a.routes, nil), append(a.load, 0)
	return len(a.routes) - 1
}

// order sorts the removed customers: at random, by demand, far first or near first, with the
// weights 4, 4, 2, 1. The random key also settles ties.
func (a *ruin) order() {
	rule := a.below(11)
	for _, c := range a.out {
		a.keys[c] = a.word()
	}
	slices.SortFunc(a.out, func(v, w int32) int {
		var d float64
		switch {
		case rule < 4:
		case rule < 8:
			d = float64(a.p.Demand[w]) - float64(a.p.Demand[v])
		case rule < 10:
			d = a.d(0, w) - a.d(0, v)
		default:
			d = a.d(0, v) - a.d(0, w)
		}
		switch {
		case d < 0 || d == 0 && (a.keys[v] < a.keys[w] || a.keys[v] == a.keys[w] && v < w):
			return -1
		case v == w:
			return 0
		}
		return 1
	})
}
