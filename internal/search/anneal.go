package search

import (
	"context"
	"math"
	"sync"
	"time"

	"haul/internal/search/cover"
	"haul/internal/search/model"
	"haul/internal/vrp"
)

// The course of a search for plain problems: cycles of annealing, each ended by the best choice
// among all routes seen (cover.go). Workers exchange results only between rounds. They share no
// chain, no pool and no random stream, and the result of a part depends only on its routes, its
// temperature and its number.

// Temperatures are in mean legs of the start.
const (
	startTemperature  = 1.0  // where the first cycle begins
	reheatTemperature = 0.2  // where later cycles begin, from the best routes
	endTemperature    = 0.02 // where a cycle ends
	poolBelow         = 0.15 // the temperature under which routes go to the pool
)

const (
	rounds     = 100 // per cycle
	speed      = 4e5 // iterations per second, about
	clockEach  = 32  // iterations between looks at the clock
	roundShort = 5 * time.Millisecond
	// a target met is seen, and the line moves, this often at least
	roundLong  = 50 * time.Millisecond
	roundMost  = 20_000                // the same, in iterations
	partsRound = 20 * time.Millisecond // what several workers' rounds last at least
	partsEach  = 10                    // iterations per customer in a round of parts, at least
	coverShare = 0.03                  // of the time, for the cover at a cycle's end
	// iterations per customer under which a start at startTemperature does not come back
	itersPerCustomer = 400
	// the same, under which a problem of several parts is annealed once
	onceEach     = 4000
	coverWork    = 2_000_000 // tries times nodes of a cover, with a budget of iterations
	coverLongest = 5 * time.Second
)

// cycle is one annealing: the part of the budget up to which it runs, and where it begins.
type cycle struct {
	until float64
	hot   float64
}

// cycles cuts the budget. A small problem is melted and annealed again and again, as often as the
// budget holds n³/10 iterations, and the cover joins what the annealings found; a larger one is
// melted once, and its best routes are reheated. One that is cut into parts and has few iterations
// for each customer is annealed once, slowly: its routes are too many for a cover to join, and what
// a reheating melts is not regained.
func (d *driver) cycles() []cycle {
	if n := d.p.N(); n <= model.SmallMost {
		iterations := float64(d.o.Iterations)
		if d.o.Iterations == 0 {
			iterations = speed * d.o.Time.Seconds()
		}
		count := int(max(1, min(8, iterations*10/math.Pow(float64(n), 3))))
		var out []cycle
		for i := range count {
			out = append(out, cycle{float64(i+1) / float64(count), startTemperature})
		}
		return out
	}
	if n := d.p.N(); n > model.PartMost && d.expected() > 0 && d.expected() < float64(onceEach*n) {
		return []cycle{{1, startTemperature}}
	}
	return []cycle{{0.4, startTemperature}, {0.6, reheatTemperature}, {0.8, reheatTemperature}, {1, reheatTemperature}}
}

func (d *driver) anneal(ctx context.Context) {
	if d.p.N() < 2 || d.near.K == 0 { // of one customer, or there was no time for lists
		return
	}
	number := uint64(0)
	if !d.probe(ctx, 1<<31) {
		return
	}
	for i, cy := range d.cycles() {
		if d.over(ctx) {
			break
		}
		if i > 0 {
			d.present = clone(d.best.Routes)
		}
		from := d.spent()
		t := phase{from: from, until: cy.until - coverShare*(cy.until-from), hot: d.firstTemperature(cy.hot), cold: endTemperature}
		if d.parts() == 1 {
			if !d.tabulate() {
				return
			}
			number++
			d.cycleOfChains(ctx, t, number)
		} else {
			for x := from; x < t.until && !d.over(ctx); x = d.spent() {
				number++
				if !d.roundOfParts(ctx, t.at(x), t.share(), number) {
					return
				}
			}
		}
		d.cover(ctx, cy.until)
	}
}

// phase is one annealing between two parts of the budget.
type phase struct{ from, until, hot, cold float64 }

// at is the temperature when x of the budget is spent.
func (t phase) at(x float64) float64 {
	return t.hot * math.Pow(t.cold/t.hot, min(1, (x-t.from)/(t.until-t.from)))
}

// share is the part of the budget that a round takes.
func (t phase) share() float64 { return (t.until - t.from) / rounds }

// firstTemperature lowers the first temperature of a short budget: from a full melt it would not
// get back to its start.
func (d *driver) firstTemperature(hot float64) float64 {
	if n := d.expected(); n > 0 {
		hot *= min(1, n/float64(itersPerCustomer*d.p.N()))
	}
	return max(hot, 2*endTemperature)
}

// probe makes a round of parts at the lowest temperature, which loses nothing, to learn how many
// iterations the time holds; false: none. A problem that is annealed whole has enough of them.
func (d *driver) probe(ctx context.Context, number uint64) bool {
	if d.o.Iterations > 0 || d.p.N() <= model.PartMost || d.parts() == 1 {
		return true
	}
	began := time.Now()
	some := d.roundOfParts(ctx, endTemperature, 0, number)
	d.speed = float64(d.iterations) / time.Since(began).Seconds()
	return some
}

// parts is how many pieces a round is cut into. With a budget of iterations it must not depend on
// the workers.
func (d *driver) parts() int {
	parts := 1
	if n := d.p.N(); n > model.PartMost {
		parts = (n + model.PartMost/2 - 1) / (model.PartMost / 2)
	}
	if d.o.Iterations == 0 && d.p.N() > model.ChainMost {
		parts = max(parts, d.o.Workers)
	}
	return max(1, min(parts, len(d.present)/2))
}

// round is how far a chain goes at one temperature: iterations, or a time where those are 0.
func (d *driver) round(share float64, parts int) (iterations int, length time.Duration) {
	if d.o.Iterations > 0 {
		iterations, most := max(100, int(share*float64(d.o.Iterations))), roundMost
		if parts > 1 { // making the parts takes as long as some iterations for each customer
			iterations, most = max(iterations, partsEach*d.p.N()), max(most, partsEach*d.p.N())
		}
		iterations = min(iterations, most, d.o.Iterations-d.iterations)
		return (iterations + parts - 1) / parts, 0
	}
	length = max(roundShort, min(roundLong, time.Duration(share*float64(d.o.Time))))
	if parts > 1 {
		length = max(length, partsRound*time.Duration((parts+d.o.Workers-1)/d.o.Workers))
	}
	return 0, min(length, d.o.Time-time.Since(d.begun))
}

// cycleOfChains anneals the whole problem, each worker a chain of its own. They meet at a cycle's
// end: in the cover over what all of them saw, and in the best routes, from which all go on.
func (d *driver) cycleOfChains(ctx context.Context, t phase, number uint64) {
	workers := d.o.Workers
	if d.o.Iterations > 0 {
		workers = 1 // more would be more iterations, or others
	}
	var (
		wg sync.WaitGroup
		mu sync.Mutex // guards the driver
	)
	pools := make([]*cover.Pool, workers)
	for w := range workers {
		pools[w] = cover.NewPool()
		wg.Go(func() {
			c := newChain(d.all, d.most, model.NewStream(d.o.Seed, number|uint64(w)<<32))
			c.pool = pools[w]
			c.set(d.present)
			mu.Lock()
			defer mu.Unlock()
			for x := d.spent(); x < t.until && !d.over(ctx); x = d.spent() {
				hot := t.at(x)
				iterations, length := d.round(t.share(), 1)
				mu.Unlock()
				done := c.anneal(ctx, d.units(hot), hot < poolBelow, iterations, time.Now().Add(length))
				routes, cost := c.bestRoutes()
				mu.Lock()
				d.iterations += done
				d.notify(d.offer(routes, cost))
			}
			d.draws += c.State
		})
	}
	wg.Wait()
	for _, p := range pools {
		d.pool.Take(p)
	}
}

func (d *driver) units(hot float64) float64 { return hot * d.leg }

// roundOfParts cuts the present routes into parts that are annealed apart, by as many workers as
// there are. It is false where the time is too short to make any of the parts.
func (d *driver) roundOfParts(ctx context.Context, hot, share float64, number uint64) bool {
	parts := d.parts()
	iterations, length := d.round(share, parts)
	s := model.NewStream(d.o.Seed, number)
	groups := d.split(&s, parts)
	workers := min(d.o.Workers, len(groups))
	slice := length * time.Duration(workers) / time.Duration(len(groups))
	end := d.begun.Add(d.o.Time)
	for len(d.local) < workers {
		d.local = append(d.local, make([]int32, d.m.nodes))
	}
	found := make([]annealed, len(groups))
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(groups); i += workers {
				if ctx.Err() != nil || !d.makes(groups[i]) {
					found[i] = annealed{best: groups[i], present: groups[i], cost: d.price(groups[i])}
					continue
				}
				began := time.Now()
				c := d.part(groups[i], d.local[w], model.NewStream(d.o.Seed, number|uint64(i+1)<<32))
				c.pool = cover.NewPool()
				d.made(c.nodes, time.Since(began))
				until := time.Now().Add(slice)
				if until.After(end) {
					until = end
				}
				f := annealed{pool: c.pool, done: c.anneal(ctx, d.units(hot), hot < poolBelow, iterations, until)}
				f.draws = c.State
				f.best, f.cost = c.bestRoutes()
				f.best, f.present = c.global(f.best), c.global(c.present())
				found[i] = f
			}
		})
	}
	wg.Wait()
	d.present = d.present[:0]
	var best [][]int32
	var cost int64
	some := false
	for _, f := range found {
		best = append(best, f.best...)
		cost += f.cost
		d.present = append(d.present, f.present...)
		d.iterations += f.done
		d.draws += f.draws
		if f.pool != nil {
			some = true
			d.pool.Take(f.pool) // in the order of the parts, whoever made them
		}
	}
	d.notify(d.offer(best, cost))
	return some
}

// annealed is what became of a part, in the problem's numbers.
type annealed struct {
	best, present [][]int32
	cost          int64       // of best
	done          int         // iterations
	pool          *cover.Pool // nil: none was made
	draws         uint64
}

// part is a chain over the customers of some routes. local is scratch as region.part has it.
func (d *driver) part(routes [][]int32, local []int32, s model.Stream) *chain {
	var customers []int32
	for _, r := range routes {
		customers = append(customers, r...)
	}
	g := d.all.part(d.m, customers, local)
	at := int32(0)
	own := make([][]int32, len(routes))
	for i, r := range routes {
		for range r {
			at++
			own[i] = append(own[i], at)
		}
	}
	most := len(customers)
	if d.p.Vehicles > 0 {
		most = len(routes) // vehicles that this part does not use may be in use elsewhere
	}
	c := newChain(g, most, s)
	c.set(own)
	return c
}

// global gives routes of the region in the problem's numbers.
func (g *region) global(routes [][]int32) [][]int32 {
	out := make([][]int32, len(routes))
	for i, r := range routes {
		out[i] = make([]int32, len(r))
		for j, v := range r {
			out[i][j] = g.node[v]
		}
	}
	return out
}

// anneal runs at one temperature for a number of iterations, or to the deadline where that is 0.
func (c *chain) anneal(ctx context.Context, temperature float64, pool bool, iterations int, deadline time.Time) int {
	if c.nodes < 3 {
		return iterations // nothing to exchange; the budget is spent all the same
	}
	sample := 4 * c.nodes
	done := 0
	for ; iterations == 0 || done < iterations; done++ {
		if done%clockEach == 0 && (ctx.Err() != nil || iterations == 0 && !time.Now().Before(deadline)) {
			break
		}
		c.iterate(temperature)
		if pool && c.pool != nil && done%sample == sample-1 {
			c.scratch = c.scratch[:0]
			for r := range c.load {
				c.scratch = copyRoute(c.scratch, r, c.slots[c.slot[r]].stops)
			}
			c.region.pool(c.pool, c.scratch)
		}
	}
	return done
}

// pool offers routes of the region to a pool.
func (g *region) pool(p *cover.Pool, routes [][]int32) {
	p.Sample()
	for _, r := range routes {
		var key uint64
		var cost int64
		last := int32(0)
		for _, v := range r {
			key += model.Mix(g.node[v])
			cost += int64(g.out[int(last)*g.nodes+int(v)])
			last = v
		}
		if len(r) == 0 {
			continue
		}
		cost += int64(g.out[int(last)*g.nodes])
		if to := p.Offer(key, 0, float64(cost)); to != nil {
			to.Visits = to.Visits[:0]
			for _, v := range r {
				to.Visits = append(to.Visits, g.node[v])
			}
			to.Rows = to.Visits
		}
	}
}

// cover looks for better routes among all that were seen, until a part of the budget is spent.
func (d *driver) cover(ctx context.Context, until float64) {
	if d.over(ctx) {
		return
	}
	stop := func() bool { return ctx.Err() != nil }
	tries := max(100, coverWork/d.m.nodes)
	if d.o.Iterations == 0 {
		tries = math.MaxInt
		end := d.begun.Add(time.Duration(until * float64(d.o.Time)))
		if latest := time.Now().Add(coverLongest); end.After(latest) {
			end = latest
		}
		stop = func() bool { return ctx.Err() != nil || !time.Now().Before(end) }
	}
	c := &cover.Problem{Nodes: d.m.nodes, Upper: d.bestCost, Most: d.most, Price: make([]float64, d.m.nodes), Tries: tries, Stop: stop}
	if c.Add(func(cost float64) int64 { return int64(cost) }, d.pool); len(c.Columns) == 0 {
		return
	}
	c.Relax()
	c.Reduce()
	routes, cost := c.Search()
	if routes != nil && vrp.Validate(d.p, vrp.Solution{Routes: routes}) == nil {
		d.notify(d.offer(routes, cost))
	}
}
