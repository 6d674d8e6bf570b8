package search

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"haul/internal/vrp"
)

// Proofs that routes cost least, for problems whose windows allow few routes. Column generation
// bounds the cost of all solutions (rich_price, simplex), all routes that a better solution
// could contain are listed, cuts raise the bound over these routes, and branches find the best
// choice (rich_branch). What a reader could break: the list contains every route of any solution
// below bound + gap, and says nothing about other solutions. Without a clock all work is
// counted. A search that was stopped has proven nothing.

const (
	// Of the first cycle, the part that is annealed before, and how long that takes at most.
	proveAfter   = 0.1
	proveSoon    = 50 * time.Millisecond
	proveShare   = 0.6 // of what is left of the budget, at most
	proveLongest = 20 * time.Second
	proveLate    = 0.3     // of that, to look among the routes that there are by then
	proveWork    = 2000    // numbers looked at per iteration, where iterations are the budget
	proveFirst   = 0.001   // of the bound: the gap to which all routes are listed first
	proveWider   = 2       // and how much wider it is each time that no solution is found in it
	proveRoutes  = 150_000 // listed of each kind, at most
	proveEach    = 2       // routes by first customer, kind and round of pricing
	proveCuts    = 30      // per round
	proveRounds  = 20      // of cuts with pricing between them
	proveRows    = 300     // of cuts that bind, at most
	proveExceeds = 0.02    // of a cut's right side
	proveShown   = 2000    // routes that later covers get, where nothing was proven
)

// listed is a route of the linear programme, in rows from 0.
type listed struct {
	line []int32
	kind int32 // -1: the task is left out
}

// prover is the linear programme of a model's routes.
type prover struct {
	*lp
	m       *model
	routes  []listed // by column
	byKey   map[uint64]int32
	pricers []*pricer
	stop    func() bool
	same    float64 // costs that differ by less are the same
}

// provable is whether a chain's problem has few routes: it has windows that no route comes back in.
func (c *rchain) provable() bool { return c.prompt && c.prices() }

// newProver begins with every task left out; nil where routes might return to a customer.
func newProver(m *model, stop func() bool) *prover {
	x := &prover{m: m, byKey: map[uint64]int32{}}
	for i := range m.kinds {
		p := newPricer(m, i)
		if p == nil || p.again {
			return nil
		}
		x.pricers = append(x.pricers, p)
	}
	alone := make([]float64, len(m.tasks))
	for i, v := range m.tasks {
		alone[i] = m.places[v].price
		x.routes = append(x.routes, listed{[]int32{int32(i)}, -1})
	}
	x.lp = newLP(alone, 1e-7*m.leg)
	x.stop, x.same = stop, coverSame/coverUnits*m.leg
	return x
}

// spent is the work done so far.
func (x *prover) spent() int {
	sum := x.work
	for _, p := range x.pricers {
		sum += 4 * p.work
	}
	return sum
}

// offer adds a route unless the same customers are had for no more.
func (x *prover) offer(line []int32, kind int32, cost float64, active bool) bool {
	var key uint64
	for _, v := range line {
		key += mix(v + 1)
	}
	if j, known := x.byKey[key]; known && x.cost[j] <= cost+1e-12 {
		return false
	}
	x.byKey[key] = int32(len(x.routes))
	x.routes = append(x.routes, listed{slices.Clone(line), kind})
	x.add(cost, line, active)
	return true
}

// tariff is the present prices; false where more cuts bind than endings can count.
func (x *prover) tariff() (*tariff, bool) {
	t := &tariff{price: slices.Clone(x.price[:x.tasks]), cuts: make([]uint64, x.tasks)}
	for k, set := range x.sets {
		if y := x.price[x.tasks+k]; y < -x.tol {
			if len(t.fines) == 64 {
				return nil, false
			}
			for _, v := range set {
				t.cuts[v] |= 1 << len(t.fines)
			}
			t.fines = append(t.fines, -y)
		}
	}
	return t, true
}

// generate adds routes until none is worth more than its customers' prices.
func (x *prover) generate() (*tariff, bool) {
	type pick struct {
		id   int32
		cost float64
	}
	var picks []pick
	var line []int32
	for loose := true; ; {
		x.primal(x.stop)
		t, few := x.tariff()
		if !few || x.stop() {
			return nil, false
		}
		added := false
		for _, p := range x.pricers {
			if !p.fill(t, loose, x.stop) {
				return nil, false
			}
			picks = picks[:0]
			for v := range p.at {
				n := 0
				for _, id := range p.at[v] {
					if cost, ok := p.whole(&p.ends[id]); ok && cost < -x.tol {
						picks = append(picks, pick{id, cost})
						n++
					}
					if n == proveEach {
						break
					}
				}
			}
			slices.SortFunc(picks, func(a, b pick) int { return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.id, b.id)) })
			for _, a := range picks[:min(len(picks), x.tasks)] {
				line = line[:0]
				for id := a.id; id >= 0; id = p.ends[id].next {
					line = append(line, p.ends[id].node)
				}
				added = x.offer(line, p.kind, p.k.fixed+float64(float64(p.ends[a.id].dist+int64(p.out[line[0]]))*p.k.perDist), true) || added
			}
		}
		if added {
			continue
		}
		if !loose {
			return t, true
		}
		loose = false
	}
}

// list adds all routes below a reduced cost at some prices; false where they are too many.
func (x *prover) list(t *tariff, below float64) bool {
	for _, p := range x.pricers {
		if !p.fill(t, false, x.stop) {
			return false
		}
		n := 0
		if !p.all(below, x.stop, func(line []int32, dist int64) bool {
			x.offer(line, p.kind, p.k.fixed+float64(float64(dist)*p.k.perDist), false)
			n++
			return n < proveRoutes
		}) {
			return false
		}
	}
	return true
}

// close adds cuts until the bound of the routes listed comes to upper, or no more are found. It is
// true where no solution of them costs less than upper.
func (x *prover) close(upper float64) bool {
	for x.rows < x.tasks+proveRows {
		if x.primal(x.stop); x.stop() {
			return false
		}
		gap := upper - x.bound()
		if gap < 0 {
			return true
		}
		x.keep(gap)
		sets := x.violated()
		if len(sets) == 0 {
			break
		}
		x.cut(sets)
		if end := x.dual(math.Inf(1), math.MaxInt, x.stop); end != lpDone {
			return end == lpEmpty
		}
	}
	return false
}

// keep drops the routes that no solution within a gap of the bound has.
func (x *prover) keep(gap float64) {
	stays := make([]bool, len(x.cost)) // by prices that belong to the rows before purge
	for j := range stays {
		stays[j] = x.reduced(int32(j)) < gap
	}
	x.purge()
	kept := x.routes[:0]
	x.rebuild(func(j int32) bool { return stays[j] }, func(j int32) { kept = append(kept, x.routes[j]) })
	clear(x.routes[len(kept):])
	x.routes = kept
	clear(x.byKey)
	for j, r := range x.routes {
		if r.kind >= 0 {
			var key uint64
			for _, v := range r.line {
				key += mix(v + 1)
			}
			x.byKey[key] = int32(j)
		}
	}
}

// violated is sets of three tasks of which the routes of the linear programme's solution serve two
// or three more than once in sum (subset rows; Jepsen et al., 2008), the most exceeded first.
func (x *prover) violated() [][]int32 {
	n := x.tasks
	pair := make([]float64, n*n) // how often two tasks share a route
	near := make([][]int32, n)
	type part struct {
		set [2]uint64
		x   float64
	}
	var parts []part
	for i, j := range x.base {
		if j < 0 || x.x[i] < 1e-6 || x.x[i] > 1-1e-6 {
			continue
		}
		f := part{x: x.x[i]}
		for _, a := range x.routes[j].line {
			f.set[a>>6] |= 1 << (a & 63)
			for _, b := range x.routes[j].line {
				if a != b {
					if pair[int(a)*n+int(b)] == 0 {
						near[a] = append(near[a], b)
					}
					pair[int(a)*n+int(b)] += x.x[i]
				}
			}
		}
		parts = append(parts, f)
	}
	type found struct {
		set  []int32
		over float64
	}
	var cuts []found
	look := func(a, b, c int32) {
		sum := pair[int(a)*n+int(b)] + pair[int(a)*n+int(c)] + pair[int(b)*n+int(c)]
		if sum <= 1+proveExceeds {
			return
		}
		var set [2]uint64
		for _, v := range [3]int32{a, b, c} {
			set[v>>6] |= 1 << (v & 63)
		}
		for _, f := range parts {
			if f.set[0]&set[0] == set[0] && f.set[1]&set[1] == set[1] {
				sum -= 2 * f.x // counted three times
			}
		}
		if sum > 1+proveExceeds {
			cuts = append(cuts, found{[]int32{a, b, c}, sum - 1})
		}
	}
	for a := range int32(n) {
		for _, b := range near[a] {
			// Each set once: from a task that shares routes with both others, the least if all do.
			for _, c := range near[a] {
				if b < c && (pair[int(b)*n+int(c)] == 0 || a < b) {
					look(a, b, c)
				}
			}
		}
	}
	slices.SortFunc(cuts, func(a, b found) int { return cmp.Or(cmp.Compare(b.over, a.over), slices.Compare(a.set, b.set)) })
	x.work += n * n
	var sets [][]int32
	for _, c := range cuts[:min(len(cuts), proveCuts)] {
		sets = append(sets, c.set)
	}
	return sets
}

// raise lifts the bound of all routes by cuts, as long as it is far from upper. It returns the
// bound with the prices that it holds at; false where not even the first was found.
func (x *prover) raise(upper float64) (bound float64, at *tariff, ok bool) {
	if at, ok = x.generate(); !ok {
		return 0, nil, false
	}
	bound = x.bound()
	for range proveRounds {
		if upper-bound < proveFirst*bound {
			break
		}
		x.keep(math.Inf(1))
		sets := x.violated()
		if len(sets) == 0 {
			break
		}
		x.cut(sets)
		if x.dual(math.Inf(1), math.MaxInt, x.stop) != lpDone {
			break
		}
		next, ok := x.generate()
		if !ok {
			break
		}
		at, bound = next, x.bound()
	}
	return bound, at, !x.stop()
}

// prove looks for better routes than those that cost upper, and takes them as it finds them. It is
// true where none cost less than the last of these. Where it is stopped, late has it go on for a
// while, to look among the routes that there are.
func (x *prover) prove(upper float64, late func(), take func([]listed)) bool {
	upper -= x.same
	choose := func(limit float64) bool {
		best, cost, all := x.branch(limit)
		if best != nil {
			var routes []listed
			for _, j := range best {
				routes = append(routes, x.routes[j])
			}
			take(routes)
			upper = cost
		}
		return all
	}
	bound, at, ok := x.raise(upper)
	for gap := min(upper-bound, proveFirst*bound); ok && gap > 0; gap = min(upper-bound, proveWider*gap) {
		if ok = x.list(at, gap); !ok {
			break
		}
		if ok = x.close(upper) || choose(min(upper, bound+gap)); ok && upper-bound <= gap {
			return true
		}
	}
	if !ok {
		late()
		choose(upper)
	}
	return ok
}

// soon is the part of the budget that passes before a proof is tried, at most.
func (d *richDriver) soon() float64 {
	if d.o.Iterations > 0 {
		return 1
	}
	return proveSoon.Seconds() / d.o.Time.Seconds()
}

// prove takes the best routes of all where it finds them within a part of the budget.
func (d *richDriver) prove(ctx context.Context, chains []*rchain) {
	c := chains[0]
	if d.over(ctx) || d.locks != nil || !c.provable() || len(d.best.Routes) == 0 {
		return
	}
	var x *prover
	begun, part := d.spent(), 1-proveLate
	limit := min(1<<50, proveShare*proveWork*float64(d.o.Iterations))
	stop := func() bool { return d.met || ctx.Err() != nil || float64(x.spent()) > part*limit }
	if d.o.Iterations == 0 {
		limit = min(proveShare*(1-begun), proveLongest.Seconds()/d.o.Time.Seconds())
		stop = func() bool {
			d.tell(false)
			return d.met || ctx.Err() != nil || d.spent() >= begun+part*limit
		}
	}
	if x = newProver(d.m, stop); x == nil {
		return
	}
	var line []int32
	for _, c := range chains {
		for i := range c.pool.routes {
			r := &c.pool.routes[i]
			line = line[:0]
			for _, row := range r.rows {
				line = append(line, row-1)
			}
			x.offer(line, r.kind, r.cost, true)
		}
	}
	kept := true
	d.proven = x.prove(d.bestCost, func() { part = 1 }, func(routes []listed) {
		s := x.solution(routes)
		cost := d.bestCost
		kept = len(d.m.kinds) > 1 || len(s.Routes) <= d.m.kinds[0].count
		if kept = kept && c.set(s.Routes, s.Types, nil); kept && d.take(c) {
			d.tell(true)
		}
		kept = kept && d.bestCost < cost
	}) && kept
	if !d.proven {
		// What was found is of use to the covers of the cycles that follow.
		for _, j := range x.active[:min(len(x.active), proveShown)] {
			if r := x.solution([]listed{x.routes[j]}); len(r.Routes) > 0 {
				c.pool.see(c, r.Types[0], x.cost[j], r.Routes[0])
			}
		}
	}
}

// solution is listed routes in the model's places. A task on two of them stays on the first.
func (x *prover) solution(routes []listed) (s vrp.Solution) {
	seen := make([]bool, x.tasks)
	for _, r := range routes {
		if r.kind < 0 {
			continue
		}
		var stops []int32
		for _, v := range r.line {
			if !seen[v] {
				seen[v] = true
				stops = append(stops, x.m.tasks[v])
			}
		}
		if len(stops) > 0 {
			s.Routes, s.Types = append(s.Routes, stops), append(s.Types, r.kind)
		}
	}
	return s
}
