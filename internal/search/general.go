package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// The course of a search for problems with any constraints: routes are built greedily, then reduced
// to few vehicles or to a short longest route if the objective asks for it, and annealed. With a
// budget of iterations there is one chain and no clock, whatever the number of workers. The result
// passes vrp's validator and is never worse than the start.

// Temperatures are in mean legs of the start.
const (
	generalStart        = 1.0  // where annealing begins, given iterations enough
	generalStartFlat    = 1.5  // the same for a small problem in flat routes, which has twice as many
	generalReheat       = 0.1  // where later cycles begin
	generalEnd          = 0.01 // where it ends
	generalLeast        = 0.2  // of generalStart, at least: the greedy start is far from a good one
	measureShare        = 0.02 // of the time, to see how many iterations it holds
	generalItersPerTask = 400  // iterations per task under which the first temperature is lower
	// Iterations per task of a cycle. One slow annealing is worth more than several quick ones, but
	// for small problems, each of whose cycles begins anew and takes so many iterations at most.
	generalCycle, generalCycleSmall = 32 * generalItersPerTask, 9 * generalItersPerTask / 8
	generalCycleMost                = 22_500
	generalCycles                   = 8 // at most
	generalCyclesSmall              = 16
	// A small problem's pool gets routes more often and at higher temperatures, and its covers take
	// longer: each joins what many short annealings found.
	coverShareSmall = 0.06
	poolBelowSmall  = 0.3
	// generalShare is the part of the budget that goes to fewer vehicles or a shorter longest route.
	generalShare = 0.4
	generalRound = 20 * time.Millisecond // between two looks at what is told
)

// generalDriver is one search.
type generalDriver struct {
	search
	m *model.Compiled

	start    *vrp.Solution
	locks    []int32
	bestCost float64 // by the chains' arithmetic
	most     int
	longest  int64
	// the first routes are runs joined by their savings, which a full melt would lose
	joined bool
	built  float64 // what the first routes cost, where they are no caller's
	moves  int64
}

func solveGeneral(ctx context.Context, p *vrp.Problem, o Options, begun time.Time) (*Result, error) {
	d := &generalDriver{search: search{p: p, o: o, begun: begun}, most: len(p.Demand), longest: model.Endless}
	// A search that is interrupted at once still gives routes.
	soon, cancel := d.startContext(ctx)
	defer cancel()
	d.m = compileNear(soon, p)
	c := newCandidate(d.m, model.NewStream(o.Seed, 1<<62))
	c.ended = func() bool { return ctx.Err() != nil || o.Time > 0 && elapsed(begun) >= o.Time }
	if err := d.begin(soon, c); err != nil {
		return nil, err
	}
	switch p.Objective {
	case vrp.FewestVehicles:
		d.fewest(ctx, c)
	case vrp.ShortestRoute:
		d.shorten(ctx, c)
	}
	d.anneal(ctx, c)
	d.notifyLast()
	return d.result(ctx)
}

// begin sets the start: the caller's routes, or greedy ones, the better the longer ctx lasts.
func (d *generalDriver) begin(ctx context.Context, c *candidate) error {
	var from vrp.Solution
	if d.o.Start != nil {
		from = *d.o.Start
		if bad := broken(d.p, from); bad != nil {
			return fmt.Errorf("the start is not a solution of this problem: %w", bad)
		}
		d.start = d.o.Start
		if d.o.Fixed != nil {
			if len(d.o.Fixed) != len(from.Routes) {
				return fmt.Errorf("search: %d routes are fixed of a start with %d", len(d.o.Fixed), len(from.Routes))
			}
			for i, n := range d.o.Fixed {
				if n < 0 || int(n) > len(from.Routes[i]) {
					n = int32(len(from.Routes[i])) + 1 // the way home too
				}
				d.locks = append(d.locks, n)
			}
		}
	} else if d.o.Fixed != nil {
		return fmt.Errorf("search: routes are fixed, and there is no start that has them")
	}
	if d.o.Start == nil && d.p.Limited() == nil && len(d.p.Demand) > model.TableNodes {
		from.Routes = d.withinFleet(ctx)
	} else if d.o.Start == nil && c.savesRuns() {
		from.Routes = c.joinRuns(ctx)
		d.joined = from.Routes != nil
	}
	fits := c.set(from.Routes, from.Types, d.locks)
	if !fits && d.o.Fixed != nil {
		return fmt.Errorf("search: the start leaves less than a unit to one of its limits, and routes of it are fixed")
	}
	if !fits {
		// The start touches a limit to the last digit, which fixed point cannot tell from breaking
		// it.
		c.set(nil, nil, nil)
	}
	// Where customers may be left out, no routes at all may be better than those that serve whoever
	// fits. Annealing begins with the latter: to lose a route that does not pay is easy, to find
	// one that does takes dozens of customers at once.
	d.take(c)
	if len(c.absent) > 0 {
		c.build(ctx)
	}
	d.take(c)
	began := time.Now()
	d.p.Cost(d.best)
	d.reserve(time.Since(began), c.leavesOutRequired())
	d.notify(true)
	c.typicalLeg()
	if d.start == nil && opensFlat(d.p) {
		d.built = d.p.Cost(d.best)
	}
	return nil
}

// withinFleet is routes of the savings method, or along a curve where ctx ends before, strung
// together as long as the fleet is too small for them and a vehicle holds both; nil if that does
// not do.
func (d *generalDriver) withinFleet(ctx context.Context) [][]int32 {
	free := *d.p
	free.Vehicles = 0
	if free.Plain() != nil {
		return nil
	}
	plain := &driver{search: search{p: &free, o: d.o, begun: d.begun}}
	var err error
	if plain.near, err = plain.lists(context.WithoutCancel(ctx)); err != nil {
		return nil
	}
	s := plain.first(ctx)
	load := func(route []int32) (sum int64) {
		for _, v := range route {
			sum += int64(d.p.Demand[v])
		}
		return sum
	}
	slices.SortStableFunc(s.Routes, func(a, b []int32) int { return cmp.Compare(load(a), load(b)) })
	for len(s.Routes) > d.p.Vehicles {
		// the two lightest, in turn
		both := append(slices.Clone(s.Routes[0]), s.Routes[1]...)
		if load(both) > int64(d.p.Capacity) {
			return nil
		}
		at, _ := slices.BinarySearchFunc(s.Routes[2:], load(both), func(r []int32, x int64) int { return cmp.Compare(load(r), x) })
		s.Routes = slices.Insert(s.Routes[2:], at, both)
	}
	return s.Routes
}

// typicalLeg takes the unit of temperature from the routes, the mean cost of a leg, and the first
// price of overload, what routes cost per amount that they carry.
func (c *candidate) typicalLeg() {
	var sum, whole float64
	legs, count := 0, 0
	for _, id := range c.routes {
		s := &c.states[id]
		k := &c.Types[s.kind]
		cost := float64(float64(s.dist) * k.PerDist)
		if k.PerDist == 0 {
			cost = float64(float64(s.dur) * k.PerDur)
		}
		sum += cost
		whole += s.cost
		legs += len(s.stops) - 1
		count += s.count
	}
	if sum > 0 {
		c.Leg = sum / float64(legs)
	}
	c.PenaltyUnit = max(whole/float64(max(1, count)), 1e-9) / model.MeanAmount
	c.penalty = c.PenaltyUnit
}

// broken is the first rule that a solution breaks beside leaving out customers.
func broken(p *vrp.Problem, s vrp.Solution) error {
	for _, v := range vrp.Violations(p, s) {
		if v.Rule != vrp.VisitedAtAll && v.Rule != vrp.GroupServed {
			return v
		}
	}
	return nil
}

// build gives all absent tasks their cheapest insertions, in an order drawn. None that fits is left
// out: which of them do not pay is seen from routes, not one by one. From the end of ctx on it is
// out of time.
func (c *candidate) build(ctx context.Context) {
	c.begin()
	for _, lead := range c.absent {
		c.removedAt[lead], c.removedFrom[lead] = c.tick, -1
		c.removed = append(c.removed, lead)
		c.costChange -= c.Locations[lead].Price
	}
	c.stage, c.soon = building, ctx
	c.recreate(c, math.Inf(1), 0)
	c.stage, c.soon = annealing, nil
	c.keep()
	c.remember()
}

// take makes a chain's best routes the search's, where they are better.
func (d *generalDriver) take(c *candidate) bool {
	if d.best.Routes != nil && c.bestCost >= d.bestCost-1e-9 {
		return false
	}
	d.best = vrp.Solution{Routes: clone(c.best), Types: append([]int32(nil), c.bestKind...)}
	d.bestCost = c.bestCost
	return true
}

// measureSpeed measures how many iterations a second has, on a chain that only improves meanwhile.
func (d *generalDriver) measureSpeed(ctx context.Context, c *candidate) {
	if d.o.Iterations > 0 {
		return
	}
	share := measureShare
	if c.provable() {
		share = min(share, d.soon())
	}
	from, until := d.spent(), d.spent()+share
	done := 0
	for ; d.spent() < until && !d.over(ctx) || done == 0; done++ {
		c.step(generalEnd * c.Leg)
	}
	d.iterations += done
	d.speed = float64(done) / max(1e-9, (d.spent()-from)*d.o.Time.Seconds())
}

// firstTemperature is where annealing begins: lower where few iterations are left for each task.
func (d *generalDriver) firstTemperature() float64 {
	x := d.expected() / float64(generalItersPerTask*max(1, len(d.m.Tasks)))
	hot := generalStart
	if d.m.Traits.Store == model.Packed && d.m.Small() {
		hot = generalStartFlat
	}
	if d.joined {
		return hot * max(2*generalEnd, min(1, x))
	}
	return hot * max(generalLeast, min(1, math.Sqrt(x)))
}

// cycles cuts the rest of the budget: several annealings where there are iterations enough.
func (d *generalDriver) cycles() []cycle {
	iterations := d.expected()
	n := float64(len(d.m.Tasks))
	hot := d.firstTemperature()
	each, most := generalCycle*n, float64(generalCycles)
	if d.m.Small() {
		each, most = min(generalCycleSmall*n, generalCycleMost), generalCyclesSmall
	}
	count := int(max(1, min(most, iterations/each)))
	from := d.spent()
	var out []cycle
	for i := range count {
		out = append(out, cycle{from + (1-from)*float64(i+1)/float64(count), hot})
		if !d.m.Small() {
			hot = generalReheat
		}
	}
	return out
}

// anneal runs the cycles. Each worker has a chain of its own; all go on from the best at a cycle's
// end.
func (d *generalDriver) anneal(ctx context.Context, first *candidate) {
	workers := d.o.Workers
	if d.o.Iterations > 0 {
		workers = 1
	}
	chains := []*candidate{first}
	for len(chains) < workers {
		c := newCandidate(d.m, model.NewStream(d.o.Seed, uint64(len(chains))))
		c.ended = first.ended
		chains = append(chains, c)
	}
	d.measureSpeed(ctx, first)
	for i, cy := range d.cycles() {
		if d.over(ctx) {
			break
		}
		from := d.spent()
		share := coverShare
		if d.m.Small() {
			share = coverShareSmall
		}
		t := phase{from: from, until: cy.until - share*(cy.until-from), hot: cy.hot, cold: generalEnd}
		fresh := i == 0
		if fresh && first.provable() {
			d.stretch(ctx, chains, phase{from: from, until: from + min(proveAfter*(t.until-from), d.soon()), hot: cy.hot, cold: generalEnd}, true)
			d.prove(ctx, chains)
			if d.over(ctx) {
				break
			}
			fresh, t.from = false, d.spent()
		}
		d.stretch(ctx, chains, t, fresh)
		d.cover(ctx, chains, cy.until)
		// What the cover leaves of the cycle goes to its routes, cold.
		d.stretch(ctx, chains, phase{from: d.spent(), until: cy.until, hot: generalEnd, cold: generalEnd}, false)
	}
}

// stretch anneals all chains from the best routes, the first from its own where it is fresh.
func (d *generalDriver) stretch(ctx context.Context, chains []*candidate, t phase, fresh bool) {
	var wg sync.WaitGroup
	var mu sync.Mutex // guards the driver
	for w, c := range chains {
		if !fresh || w > 0 {
			c.set(d.best.Routes, d.best.Types, d.locksOf(d.best))
		}
		c.most, c.longest, c.overloads, c.itersInPhase = d.most, d.longest, noOverload, 0
		c.penalty = c.PenaltyUnit
		wg.Go(func() { d.chain(ctx, c, t, &mu) })
	}
	wg.Wait()
}

// locksOf returns the number of locked stops of each route of s, which keeps the locked beginnings
// of the start. Beginnings with a customer occur once. Those of depots alone may occur several
// times: they are looked for last, in routes of the same vehicle type that have no lock.
func (d *generalDriver) locksOf(s vrp.Solution) []int32 {
	if d.locks == nil {
		return nil
	}
	order := make([]int, len(d.locks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(d.locks[b], d.locks[a]) })
	out := make([]int32, len(s.Routes))
	for _, i := range order {
		n, from := d.locks[i], d.start.Routes[i]
		if n == 0 || len(from) == 0 {
			continue
		}
		begins := from[:min(int(n), len(from))]
		for j, r := range s.Routes {
			if out[j] == 0 && len(r) >= len(begins) && slices.Equal(r[:len(begins)], begins) && kindOf(s, j) == kindOf(*d.start, i) {
				out[j] = n
				break
			}
		}
	}
	return out
}

// kindOf is the vehicle type of a route.
func kindOf(s vrp.Solution, route int) int32 {
	if s.Types == nil {
		return 0
	}
	return s.Types[route]
}

// chain anneals one chain through a cycle.
func (d *generalDriver) chain(ctx context.Context, c *candidate, t phase, mu *sync.Mutex) {
	mu.Lock()
	defer mu.Unlock()
	most := clockEach
	if c.Traits.Time.IsWalked() {
		most = 4
	}
	round := time.Now()
	venturing := c.Traits.Moves.Has(model.RouteTrials) && d.locks == nil
	for x := d.spent(); x < t.until && !d.over(ctx); x = d.spent() {
		temperature := t.at(x) * c.Leg
		each := d.chunk(most)
		mu.Unlock()
		c.scheduleOverload(each)
		for range each {
			c.step(temperature)
		}
		done := each
		if c.sampled += each; c.sampled >= c.sampleEach && temperature < c.poolBelow*c.Leg {
			c.sampled = 0
			c.sample()
		}
		mu.Lock()
		if c.itersSinceTrial += each; venturing && c.itersSinceTrial >= trialEach && c.overload == 0 && (d.o.Iterations == 0 || d.o.Iterations-d.iterations-each >= trialMost) {
			c.itersSinceTrial = 0
			d.take(c)
			mu.Unlock()
			done += c.tryRoute(temperature, func() bool { return d.o.Iterations == 0 && d.over(ctx) })
			mu.Lock()
		}
		d.iterations += done
		if now := time.Now(); now.Sub(round) > generalRound {
			round = now
			d.notify(d.take(c))
		}
	}
	d.moves += c.moves
	d.draws += c.State
	c.moves = 0
	d.notify(d.take(c))
}

// result evaluates the best routes, and lists required customers that they leave out.
func (d *generalDriver) result(ctx context.Context) (*Result, error) {
	if bad := broken(d.p, d.best); bad != nil {
		return nil, fmt.Errorf("search: the routes found are invalid: %w", bad)
	}
	r := &Result{Solution: d.best, Iterations: d.iterations, Interrupted: ctx.Err() != nil && d.ending != targetMet, Moves: d.moves, Start: d.built, draws: d.draws}
	e, err := vrp.Evaluate(d.p, d.best)
	if err != nil {
		return nil, err
	}
	if d.start != nil {
		was, err := vrp.Evaluate(d.p, *d.start)
		if err != nil {
			return nil, err
		}
		r.Start = was.Cost
		if len(d.m.Without(was.Unserved)) <= len(d.m.Without(e.Unserved)) && !e.Better(was, d.p.Objective) {
			r.Solution, e = *d.start, was
		}
	}
	if r.Cost = e.Cost; d.p.Limited() == nil { // a plain problem's sum is in another order
		if r.Cost = d.p.Cost(r.Solution); d.start != nil {
			r.Start = d.p.Cost(*d.start)
		}
		r.Start = max(r.Start, r.Cost)
	}
	r.Unserved = d.m.Without(e.Unserved)
	r.Proven = d.ending == provenBest && len(r.Unserved) == 0
	r.Seconds = elapsed(d.begun).Seconds()
	return r, nil
}
