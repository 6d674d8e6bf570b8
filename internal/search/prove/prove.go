// Package prove proves that routes cost least, for problems whose windows allow few routes. Column
// generation (price, simplex) bounds the cost of all solutions. All routes that a better solution
// could contain are listed (enumerate; Baldacci, Christofides and Mingozzi, 2008), subset-row cuts
// (Jepsen and others, 2008) raise the bound over these routes, and branches find the best choice.
//
// The list contains every route of any solution below bound + gap, and says nothing about other
// solutions. All work is counted, so that a proof does not depend on a clock. A prover that was
// stopped has proven nothing.
package prove

import (
	"cmp"
	"math"
	"slices"

	"haul/internal/search/cover"
	"haul/internal/search/model"
	"haul/internal/vrp"
)

const (
	proveFirst   = 0.001   // of the bound: the gap to which all routes are listed first
	proveWider   = 2       // and how much wider it is each time that no solution is found in it
	proveRoutes  = 150_000 // listed of each kind, at most
	proveEach    = 2       // routes by first customer, kind and round of pricing
	proveCuts    = 30      // per round
	proveRounds  = 20      // of cuts with pricing between them
	proveRows    = 300     // of cuts that bind, at most
	proveExceeds = 0.02    // of a cut's right side
)

// Listed is a route of the linear programme, in rows from 0.
type Listed struct {
	line []int32
	kind int32 // -1: the task is left out
}

// Prover is the linear programme of a model's routes.
type Prover struct {
	*lp
	m       *model.Compiled
	Routes  []Listed // by column
	byKey   map[uint64]int32
	pricers []*pricer
	stop    func() bool
	same    float64 // costs that differ by less are the same
}

// NewProver begins with every task left out; nil if routes might return to a customer.
func NewProver(m *model.Compiled, stop func() bool) *Prover {
	x := &Prover{m: m, byKey: map[uint64]int32{}}
	for i := range m.Types {
		p := newPricer(m, i)
		if p == nil || p.again {
			return nil
		}
		x.pricers = append(x.pricers, p)
	}
	alone := make([]float64, len(m.Tasks))
	for i, v := range m.Tasks {
		alone[i] = m.Locations[v].Price
		x.Routes = append(x.Routes, Listed{[]int32{int32(i)}, -1})
	}
	x.lp = newLP(alone, 1e-7*m.Leg)
	x.stop, x.same = stop, cover.Same/cover.Units*m.Leg
	return x
}

// Spent is the work done so far.
func (x *Prover) Spent() int {
	sum := x.work
	for _, p := range x.pricers {
		sum += 4 * p.work
	}
	return sum
}

// Offer adds a route unless the same customers are had for no more.
func (x *Prover) Offer(line []int32, kind int32, cost float64, active bool) bool {
	var key uint64
	for _, v := range line {
		key += model.Mix(v + 1)
	}
	if j, known := x.byKey[key]; known && x.Cost[j] <= cost+1e-12 {
		return false
	}
	x.byKey[key] = int32(len(x.Routes))
	x.Routes = append(x.Routes, Listed{slices.Clone(line), kind})
	x.add(cost, line, active)
	return true
}

// duals is the present prices; false where more cuts bind than endings can count.
func (x *Prover) duals() (*duals, bool) {
	t := &duals{price: slices.Clone(x.price[:x.tasks]), cuts: make([]uint64, x.tasks)}
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
func (x *Prover) generate() (*duals, bool) {
	type pick struct {
		id   int32
		cost float64
	}
	var picks []pick
	var line []int32
	for loose := true; ; {
		x.primal(x.stop)
		t, few := x.duals()
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
				added = x.Offer(line, p.kind, p.k.Fixed+float64(float64(p.ends[a.id].dist+int64(p.out[line[0]]))*p.k.PerDist), true) || added
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
func (x *Prover) list(t *duals, below float64) bool {
	for _, p := range x.pricers {
		if !p.fill(t, false, x.stop) {
			return false
		}
		n := 0
		if !p.all(below, x.stop, func(line []int32, dist int64) bool {
			x.Offer(line, p.kind, p.k.Fixed+float64(float64(dist)*p.k.PerDist), false)
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
func (x *Prover) close(upper float64) bool {
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
func (x *Prover) keep(gap float64) {
	stays := make([]bool, len(x.Cost)) // by prices that belong to the rows before purge
	for j := range stays {
		stays[j] = x.reduced(int32(j)) < gap
	}
	x.purge()
	kept := x.Routes[:0]
	x.rebuild(func(j int32) bool { return stays[j] }, func(j int32) { kept = append(kept, x.Routes[j]) })
	clear(x.Routes[len(kept):])
	x.Routes = kept
	clear(x.byKey)
	for j, r := range x.Routes {
		if r.kind >= 0 {
			var key uint64
			for _, v := range r.line {
				key += model.Mix(v + 1)
			}
			x.byKey[key] = int32(j)
		}
	}
}

// violated is sets of three tasks of which the routes of the linear programme's solution serve two
// or three more than once in sum (subset rows; Jepsen et al., 2008), the most exceeded first.
func (x *Prover) violated() [][]int32 {
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
		for _, a := range x.Routes[j].line {
			f.set[a>>6] |= 1 << (a & 63)
			for _, b := range x.Routes[j].line {
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
func (x *Prover) raise(upper float64) (bound float64, at *duals, ok bool) {
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

// Prove looks for better routes than those that cost upper, and takes them as it finds them. It is
// true where none cost less than the last of these. Where it is stopped, late has it go on for a
// while, to look among the routes that there are.
func (x *Prover) Prove(upper float64, late func(), take func([]Listed)) bool {
	upper -= x.same
	choose := func(limit float64) bool {
		best, cost, all := x.branch(limit)
		if best != nil {
			var routes []Listed
			for _, j := range best {
				routes = append(routes, x.Routes[j])
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

// Solution is listed routes in the model's places. A task on two of them stays on the first.
func (x *Prover) Solution(routes []Listed) (s vrp.Solution) {
	seen := make([]bool, x.tasks)
	for _, r := range routes {
		if r.kind < 0 {
			continue
		}
		var stops []int32
		for _, v := range r.line {
			if !seen[v] {
				seen[v] = true
				stops = append(stops, x.m.Tasks[v])
			}
		}
		if len(stops) > 0 {
			s.Routes, s.Types = append(s.Routes, stops), append(s.Types, r.kind)
		}
	}
	return s
}
