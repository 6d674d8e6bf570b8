package vrp

import (
	"fmt"
	"math"
	"math/bits"
)

// What a reader could break: costs in here are int64 fixed point, the unit a power of two chosen so
// that the longest distance has 55 bits. Three things rest on it: sums are exact, so that any
// order of adding gives the same optimum and a solution is read back by testing for equality; an
// integer min compiles to a conditional move where a floating one branches; and infinite plus any
// real cost does not overflow. A distance loses up to 2^-56 of the longest one: the optimum is
// exact to N+K such steps, and legs shorter than that beside a very long one count as none.
//
// A set is a word of bits; bits number the customers by growing demand (node says which), because
// a set that does not fit then rules out long runs of larger ones in split.

// MaxExactN is the most customers the exact method takes: past it the partition step, which visits
// up to 3^(N-1)/2 pairs of sets, outgrows patience before the tables outgrow a gibibyte.
const MaxExactN = 22

const (
	infinite = int64(1) << 61
	distBits = 55 // 2·MaxExactN legs of 55 bits stay below infinite
	rowWidth = 32 // a power of two above MaxExactN, so that a masked index needs no bounds check
)

// ExactSolver finds optimal routes by dynamic programming over sets of customers: the best tour of
// every set that fits a vehicle, then the best partition into such sets. It is scratch for one
// goroutine; solving allocates nothing but the routes that Solve returns.
type ExactSolver struct {
	n       int             // customers it has room for
	node    [rowWidth]int32 // bit -> customer
	demand  [rowWidth]int64
	from    [rowWidth]int64 // depot -> bit
	toDepot [rowWidth]int64 // bit -> depot
	// into[b][a]: leg a -> b, so that one row serves one last customer
	into [rowWidth][rowWidth]int64
	dist [rowWidth * rowWidth]float64 // by node, as the problem has it
	unit float64                      // fixed-point steps in a distance of 1

	load []int64  // total demand of a set
	at   []uint32 // where a feasible set's paths start
	// by set, then by member: the shortest way from the depot through the set that ends there
	path []int64
	tour []int64 // the shortest tour of a set, infinite when it does not fit
	// by set without bit 0, halved: its cheapest partition into tours; stale where partition skips it
	best []int64

	halt <-chan struct{} // closed to abandon a solve; nil never does
}

// ExactMemory is the bytes of tables that NewExact(n) takes.
func ExactMemory(n int) int64 {
	sets := int64(1) << n
	return sets/2*int64(n)*8 + sets*(8+4+8) + sets/2*8
}

// NewExact makes a solver for problems of up to n customers.
func NewExact(n int) (*ExactSolver, error) {
	if n < 1 {
		return nil, fmt.Errorf("exact method: %d customers: at least 1 is needed", n)
	}
	if n > MaxExactN {
		return nil, fmt.Errorf("exact method: %d customers is too many: time and memory grow as 3^N and N·2^N, the largest N that fits is %d (%d MiB); use savings",
			n, MaxExactN, ExactMemory(MaxExactN)>>20)
	}
	sets := 1 << n
	return &ExactSolver{n: n,
		load: make([]int64, sets), at: make([]uint32, sets), path: make([]int64, sets/2*n),
		tour: make([]int64, sets), best: make([]int64, sets/2)}, nil
}

// Solve returns an optimal solution and its cost under the problem's metric; distances need not be
// symmetric, but must be finite and not negative. Of a problem with one vehicle it is the best tour
// of all. A customer that fits no vehicle, or all that do not fit the one, makes the cost +Inf,
// without routes. It panics when the problem has more customers than the solver has room for.
func (e *ExactSolver) Solve(p *Problem) (float64, Solution) {
	n := p.N()
	e.checkRoom(n)
	for i := range n + 1 {
		for j := range n + 1 {
			e.dist[i*rowWidth+j] = p.Dist(i, j)
		}
		e.dist[i*rowWidth+i] = 0 // no route uses it, and some files put a huge number there
	}
	single := p.Vehicles == 1 && n > 0
	if e.run(n, p.Demand, p.Capacity, single) == infinite {
		return math.Inf(1), Solution{}
	}
	var s Solution
	if single {
		s.Routes = [][]int32{e.route(uint32(1)<<n - 1)}
	} else {
		s = e.routes(n)
	}
	return p.Cost(s), s
}

// SolveBatch returns the optimal cost of instance i of a batch, +Inf as Solve does. It allocates
// nothing.
func (e *ExactSolver) SolveBatch(b *Batch, i int) float64 {
	n := b.N
	e.checkRoom(n)
	lo, hi := i*(n+1), (i+1)*(n+1)
	x, y := b.X[lo:hi], b.Y[lo:hi]
	for i := range x {
		for j := range i {
			dx, dy := float64(x[i])-float64(x[j]), float64(y[i])-float64(y[j])
			d := math.Sqrt(float64(dx*dx) + float64(dy*dy))
			e.dist[i*rowWidth+j], e.dist[j*rowWidth+i] = d, d
		}
		e.dist[i*rowWidth+i] = 0
	}
	cost := e.run(n, b.Demand[lo:hi], b.Capacity, false)
	if cost == infinite {
		return math.Inf(1)
	}
	return float64(cost) / e.unit
}

func (e *ExactSolver) checkRoom(n int) {
	if n > e.n {
		panic("vrp: exact: more customers than the solver has room for")
	}
}

// run solves what dist holds, for one vehicle alone where single is set, and returns the optimum in
// fixed point: infinite when a customer fits no vehicle, all do not fit the one, or when halted.
func (e *ExactSolver) run(n int, demand []int32, capacity int32, single bool) int64 {
	if n < 1 {
		return 0
	}
	e.order(n, demand)
	e.fix(n)
	if e.demand[n-1] > int64(capacity) || !e.tours(n, int64(capacity)) {
		return infinite
	}
	if single {
		return e.tour[1<<n-1]
	}
	return e.partition(n, int64(capacity))
}

// order numbers the customers by growing demand.
func (e *ExactSolver) order(n int, demand []int32) {
	for i := range n {
		d := demand[i+1]
		b := i
		for ; b > 0 && demand[e.node[b-1]] > d; b-- {
			e.node[b] = e.node[b-1]
		}
		e.node[b] = int32(i + 1)
	}
	for b, v := range e.node[:n] {
		e.demand[b] = int64(demand[v])
	}
}

// fix brings the distances to fixed point.
func (e *ExactSolver) fix(n int) {
	longest := 0.0
	for i := range n + 1 {
		for _, d := range e.dist[i*rowWidth : i*rowWidth+n+1] {
			longest = max(longest, d)
		}
	}
	_, exp := math.Frexp(longest)
	e.unit = math.Ldexp(1, distBits-exp)
	fixed := func(i, j int32) int64 { return int64(e.dist[i*rowWidth+j]*e.unit + 0.5) }
	for b, v := range e.node[:n] {
		e.from[b], e.toDepot[b] = fixed(0, v), fixed(v, 0)
		for a, u := range e.node[:n] {
			e.into[b][a] = fixed(u, v)
		}
	}
}

// tours fills load, path and tour for every set, smaller numbers first: a set's subsets precede it.
// It reports false when halted.
func (e *ExactSolver) tours(n int, capacity int64) bool {
	load, at, tour := e.load[:1<<n], e.at[:1<<n], e.tour[:1<<n]
	load[0] = 0
	next := 0
	for set := 1; set < len(load); set++ {
		if set&0xffff == 0 && e.halted() {
			return false
		}
		lowest := bits.TrailingZeros32(uint32(set))
		load[set] = load[set&(set-1)] + e.demand[lowest]
		if load[set] > capacity {
			tour[set] = infinite
			continue
		}
		at[set] = uint32(next)
		size := bits.OnesCount32(uint32(set))
		ends := e.path[next : next+size]
		next += size
		if size == 1 {
			ends[0] = e.from[lowest]
			tour[set] = ends[0] + e.toDepot[lowest]
			continue
		}
		tour[set] = e.extend(ends, uint32(set))
	}
	return true
}

// extend finds the shortest paths through a set from those through the set without its last
// customer, and returns the set's tour. It is apart from tours to keep its loop in registers.
func (e *ExactSolver) extend(ends []int64, set uint32) int64 {
	// others lists the members without the one at q, in order, as that subset's paths are.
	var others [rowWidth]uint8
	size := 0
	for s := set & (set - 1); s != 0; s &= s - 1 {
		others[size&(rowWidth-1)] = uint8(bits.TrailingZeros32(s))
		size++
	}
	closed := infinite
	left := set
	for q := range ends {
		last := bits.TrailingZeros32(left) & (rowWidth - 1)
		left &= left - 1
		start := e.at[set&^(1<<last)]
		shortest := shortestWay(e.path[start:int(start)+size], others[:size], &e.into[last])
		ends[q] = shortest
		closed = min(closed, shortest+e.toDepot[last])
		others[q&(rowWidth-1)] = uint8(last)
	}
	return closed
}

func shortestWay(ways []int64, others []uint8, into *[rowWidth]int64) int64 {
	shortest := infinite
	others = others[:len(ways)]
	for r, way := range ways {
		shortest = min(shortest, way+into[others[r]&(rowWidth-1)])
	}
	return shortest
}

// partition returns the cheapest way to cut all customers into tours. A set's lowest bit rides in
// some tour, so only tours that hold it are tried. What is left after some tours is therefore a set
// without bit 0; and when the c lowest bits are gone from it, at most c tours went before, each
// with one of them as its lowest: a set whose complement outweighs c vehicles never arises.
func (e *ExactSolver) partition(n int, capacity int64) int64 {
	all := uint32(1)<<n - 1
	total := e.load[all]
	e.best[0] = 0
	for set := uint32(2); set < all; set += 2 {
		if set&0x3ffe == 0 && e.halted() {
			return infinite
		}
		if total-e.load[set] <= capacity*int64(bits.TrailingZeros32(set)) {
			e.best[set/2] = e.split(set)
		}
	}
	return e.split(all)
}

// split returns the cheapest partition of a set, given those of its subsets. It counts upwards
// through the subsets of rest that may ride with the lowest bit; where one does not fit, neither do
// the same with lower bits added, which come next.
func (e *ExactSolver) split(set uint32) int64 {
	lowest := set & -set
	rest := set ^ lowest
	tour, best := e.tour, e.best
	cheapest := tour[lowest] + best[rest/2]
	for with := rest & -rest; with != 0; with = (with - rest) & rest {
		c := tour[with|lowest]
		if c == infinite {
			with |= (with&-with - 1) & rest
			continue
		}
		cheapest = min(cheapest, c+best[(rest^with)/2])
	}
	return cheapest
}

func (e *ExactSolver) halted() bool {
	select {
	case <-e.halt:
		return true
	default:
		return false
	}
}

// routes reads an optimal solution back from the tables: whatever attains a minimum is the choice.
func (e *ExactSolver) routes(n int) Solution {
	var s Solution
	for set := uint32(1)<<n - 1; set != 0; {
		cost := e.best[set/2]
		if set&1 != 0 { // all customers: their cost has no entry
			cost = e.split(set)
		}
		lowest := set & -set
		rest := set ^ lowest
		with := rest
		for e.tour[with|lowest]+e.best[(rest^with)/2] != cost {
			if with == 0 {
				panic("vrp: no partition has the cost of the tables")
			}
			with = (with - 1) & rest
		}
		s.Routes = append(s.Routes, e.route(with|lowest))
		set = rest ^ with
	}
	return s
}

// route reads the shortest tour of a feasible set back, last customer first.
func (e *ExactSolver) route(set uint32) []int32 {
	route := make([]int32, bits.OnesCount32(set))
	want, onward := e.tour[set], e.toDepot[:]
	for i := len(route) - 1; i >= 0; i-- {
		ways := e.path[e.at[set]:]
		left, r := set, 0
		for ways[r]+onward[bits.TrailingZeros32(left)] != want {
			left &= left - 1
			r++
		}
		last := bits.TrailingZeros32(left)
		route[i] = e.node[last]
		want, onward = ways[r], e.into[last][:]
		set &^= 1 << last
	}
	return route
}
