package search

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haul/internal/rng"
	"haul/internal/search/cover"
	"haul/internal/search/model"
	"haul/internal/search/neighbour"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
)

func load(t testing.TB, name string, o files.Options) *vrp.Problem {
	t.Helper()
	p, err := files.LoadProblem("../vrp/testdata/"+name+".vrp", o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func solve(t testing.TB, p *vrp.Problem, o Options) *Result {
	t.Helper()
	r, err := Solve(context.Background(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := vrp.Validate(p, r.Solution); err != nil {
		t.Fatal(err)
	}
	if r.Cost != p.Cost(r.Solution) || r.Cost > r.Start {
		t.Fatalf("cost %v of routes that cost %v, from %v", r.Cost, p.Cost(r.Solution), r.Start)
	}
	return r
}

func TestSolveReachesPublishedCosts(t *testing.T) {
	for _, c := range []struct {
		name       string
		exact      bool
		best, gap  float64
		iterations int
	}{
		{"E-n13-k4", false, 247, 0, 20000},
		{"E-n22-k4", false, 375, 0, 10000},
		{"X-n101-k25", false, 27591, 0.015, 60000},
		{"CMT6", true, 555.43, 0.015, 60000}, // durations and services
	} {
		o := files.Options{}
		if c.exact {
			o.Distance = files.ExactDistance
		}
		p := load(t, c.name, o)
		r := solve(t, p, Options{Iterations: c.iterations})
		if gap := r.Cost/c.best - 1; gap > c.gap || gap < -1e-4 {
			t.Errorf("%s: cost %v, %.2f %% above %v", c.name, r.Cost, 100*gap, c.best)
		}
	}
}

// Seed and iterations fix the routes, whatever the workers; another seed gives others.
func TestSolveDependsOnSeedAndIterationsAlone(t *testing.T) {
	large, iterations, several := uniform(2*model.PartMost, 3), 9000, []int{2, 5}
	// for the race detector: what workers share, on parts as small as there are
	if testing.Short() {
		large, iterations, several = uniform(model.PartMost+200, 3), 1500, []int{3}
	}
	for _, p := range []*vrp.Problem{load(t, "X-n101-k25", files.Options{}), large} {
		first := solve(t, p, Options{Iterations: iterations, Seed: 5, Workers: 1})
		for _, workers := range several {
			again := solve(t, p, Options{Iterations: iterations, Seed: 5, Workers: workers})
			if diff := cmp.Diff(first.Solution, again.Solution); diff != "" {
				t.Errorf("%d customers, %d workers: %s", p.N(), workers, diff)
			}
		}
		if other := solve(t, p, Options{Iterations: iterations, Seed: 6}); cmp.Equal(first.Solution, other.Solution) {
			t.Errorf("%d customers: the seed has no effect", p.N())
		}
	}
}

// uniform is n customers in the unit square, about ten to a route.
func uniform(n int, index uint64) *vrp.Problem {
	p := &vrp.Problem{Capacity: 50, Metric: vrp.Exact, X: make([]float64, n+1), Y: make([]float64, n+1), Demand: make([]int32, n+1)}
	for i := range n + 1 {
		w := rng.At(7, index, uint32(i), rng.Instances)
		p.X[i], p.Y[i] = float64(rng.Float(w[0])), float64(rng.Float(w[1]))
		if i > 0 {
			p.Demand[i] = int32(1 + rng.Below(w[2], 9))
		}
	}
	return p
}

// drawKind draws a problem of any kind: metrics, one-way distances, huge legs, limits, fleets, open
// routes, customers without demand.
func drawKind(t *rapid.T) *vrp.Problem {
	n := rapid.IntRange(1, 24).Draw(t, "n")
	p := &vrp.Problem{Name: "drawn", Capacity: rapid.Int32Range(9, 40).Draw(t, "capacity"),
		Metric: vrp.Metric(rapid.IntRange(int(vrp.Exact), int(vrp.Explicit)).Draw(t, "metric"))}
	p.Demand = append([]int32{0}, rapid.SliceOfN(rapid.Int32Range(0, 9), n, n).Draw(t, "demand")...)
	if p.Metric == vrp.Explicit {
		top := rapid.SampledFrom([]float64{1, 1000, 1e9}).Draw(t, "top")
		p.Weights = rapid.SliceOfN(rapid.Float64Range(0, top), (n+1)*(n+1), (n+1)*(n+1)).Draw(t, "weights")
	} else {
		coord := rapid.Float64Range(-1000, 1000)
		p.X, p.Y = rapid.SliceOfN(coord, n+1, n+1).Draw(t, "x"), rapid.SliceOfN(coord, n+1, n+1).Draw(t, "y")
	}
	p.Open = rapid.Bool().Draw(t, "open")
	if rapid.Bool().Draw(t, "limited") {
		if rapid.Bool().Draw(t, "services") {
			p.Service = append([]float64{0}, rapid.SliceOfN(rapid.Float64Range(0, 50), n, n).Draw(t, "service")...)
		}
		for v := 1; v <= n; v++ {
			need := p.Dist(0, v) + p.Leg(v, 0)
			if p.Service != nil {
				need += p.Service[v]
			}
			p.MaxDuration = max(p.MaxDuration, need)
		}
		p.MaxDuration *= rapid.Float64Range(1, 3).Draw(t, "slack")
	}
	if rapid.Bool().Draw(t, "fleet") {
		total := int32(0)
		for _, d := range p.Demand {
			total += d
		}
		p.Vehicles = int((total+p.Capacity-1)/p.Capacity) + rapid.IntRange(1, 4).Draw(t, "spare")
	}
	return p
}

// Whatever the kind, routes are valid and never worse than their start; a fleet that was not
// reached says so.
func TestSolveProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawKind(t)
		o := Options{Iterations: rapid.IntRange(1, 400).Draw(t, "iterations"), Seed: rapid.Uint64().Draw(t, "seed")}
		r, err := Solve(context.Background(), p, o)
		if err != nil {
			if p.Vehicles > 0 && strings.Contains(err.Error(), "no routes for") || p.Check() != nil {
				return
			}
			t.Fatal(err)
		}
		if err := vrp.Validate(p, r.Solution); err != nil {
			t.Fatal(err)
		}
		if r.Cost > r.Start {
			t.Fatalf("%v is worse than its start %v", r.Cost, r.Start)
		}
		from := r.Solution
		o.Start = &from
		again, err := Solve(context.Background(), p, o)
		if err != nil || again.Cost > r.Cost {
			t.Fatalf("from %v: %v (%v)", r.Cost, again, err)
		}
	})
}

// Small problems are solved to their optimum, and never below it.
func TestSolveAgainstTheOptimum(t *testing.T) {
	excess := 0.0
	for i := range uint64(40) {
		p := uniform(9, i)
		p.Capacity = 20
		best, _, err := vrp.OptimalSolutions(context.Background(), []*vrp.Problem{p}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		gap := solve(t, p, Options{Iterations: 2000}).Cost/best[0] - 1
		if gap < -1e-9 {
			t.Errorf("instance %d: %g below the optimum", i, gap)
		}
		excess += gap / 40
	}
	if excess > 1e-4 {
		t.Errorf("on average %.4f %% above the optimum", 100*excess)
	}
}

func TestSolveFleet(t *testing.T) {
	p := load(t, "X-n101-k25", files.Options{})
	p.Vehicles = 26 // savings alone needs more
	if r := solve(t, p, Options{Iterations: 50000}); len(r.Solution.Routes) > 26 {
		t.Errorf("%d routes", len(r.Solution.Routes))
	}
	p.Vehicles = 24
	_, err := Solve(context.Background(), p, Options{Iterations: 1000})
	if err == nil || !strings.Contains(err.Error(), "at least 25 vehicles are needed") {
		t.Errorf("got %v", err)
	}
}

// Customers at the depot's place had routes of their own, and every better solution that was told
// counted them.
func TestSolveGivesNoVehicleToCustomersAtTheDepot(t *testing.T) {
	p := uniform(40, 1)
	total := int32(0)
	for v := range p.Demand {
		if v > 30 {
			p.X[v], p.Y[v], p.Demand[v] = p.X[0], p.Y[0], 1
		}
		total += p.Demand[v]
	}
	needed := int((total + p.Capacity - 1) / p.Capacity)
	start := alone(p.N())
	for _, o := range []Options{{Iterations: 20000}, {Iterations: 1}, {Iterations: 20000, Start: &start}} {
		o.Progress = func(s Progress) {
			for _, r := range s.Best.Routes {
				if p.Cost(vrp.Solution{Routes: [][]int32{r}}) == 0 && len(s.Best.Routes) > needed {
					t.Errorf("told of a route %v of customers at the depot, one of %d, %d are needed", r, len(s.Best.Routes), needed)
				}
			}
		}
		if r := solve(t, p, o); len(r.Solution.Routes) > needed+1 {
			t.Errorf("%d routes, %d are needed: %v", len(r.Solution.Routes), needed, r.Solution.Routes)
		}
	}
	d := &driver{search: search{p: p}, m: newMetric(p), bestCost: math.MaxInt64}
	if d.offer(start.Routes, d.price(start.Routes)); len(d.best.Routes) != 30 || d.bestCost != d.price(start.Routes) {
		t.Errorf("%d routes of 30 customers elsewhere and 10 at the depot, at %d", len(d.best.Routes), d.bestCost)
	}
}

func TestSolveStopsAndTells(t *testing.T) {
	p := load(t, "X-n101-k25", files.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r, err := Solve(ctx, p, Options{Iterations: 1 << 40})
	if errors.Is(err, context.Canceled) {
		return // nothing was built yet
	}
	if err != nil || !r.Interrupted || vrp.Validate(p, r.Solution) != nil {
		t.Errorf("%+v, %v", r, err)
	}
	met := solve(t, p, Options{Iterations: 1 << 20, Target: 28200})
	if met.Cost > 28200 || met.Interrupted || met.Iterations == 1<<20 {
		t.Errorf("the target ended at %v", met.Cost)
	}
	last := math.Inf(1)
	solve(t, p, Options{Iterations: 5000, Progress: func(s Progress) {
		if s.Cost > last {
			t.Errorf("the best rose from %v to %v", last, s.Cost)
		}
		last = s.Cost
		if err := vrp.Validate(p, s.Best); err != nil || p.Cost(s.Best) != s.Cost {
			t.Errorf("the routes told cost %v, stated %v: %v", p.Cost(s.Best), s.Cost, err)
		}
	}})
	for _, o := range []Options{{}, {Time: -time.Second}, {Iterations: 5, Start: &vrp.Solution{Routes: [][]int32{{1}}}}} {
		if _, err := Solve(context.Background(), p, o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

// wholeOf is the region of all customers of a problem.
func wholeOf(p *vrp.Problem) (*region, error) {
	m := newMetric(p)
	near, err := neighbour.NewNeighbours(context.Background(), &model.FloatMatrix{P: p, N: m.nodes}, model.Nearest)
	return whole(m, near), err
}

// Cost as the chain keeps it is the cost of its routes, whatever was kept and undone.
func TestChainKeepsItsCost(t *testing.T) {
	p := load(t, "E-n22-k4", files.Options{})
	g, err := wholeOf(p)
	if err != nil {
		t.Fatal(err)
	}
	c := newChain(g, p.N(), model.NewStream(1, 1))
	c.set(alone(p.N()).Routes)
	for i := range 3000 {
		c.iterate(float64(i % 7 * 10))
		routes := c.present()
		if err := vrp.Validate(p, vrp.Solution{Routes: routes}); err != nil {
			t.Fatalf("iteration %d: %v", i, err)
		}
		if got := p.Cost(vrp.Solution{Routes: routes}); got != float64(c.cost) {
			t.Fatalf("iteration %d: cost %d of routes that cost %v", i, c.cost, got)
		}
		if best, cost := c.bestRoutes(); p.Cost(vrp.Solution{Routes: best}) != float64(cost) {
			t.Fatalf("iteration %d: the best costs %v, not %d", i, p.Cost(vrp.Solution{Routes: best}), cost)
		}
	}
}

// A customer is tried in every route of a small region, and of a larger one that has few routes;
// else in the routes of its nearest customers alone. Customer 1 lies amid 40 that one route serves,
// and on the way between two far ones that another does. A full route is none of them.
func TestInsertLooksInEveryRoute(t *testing.T) {
	for _, c := range []struct {
		nodes, routes int
		every, full   bool
	}{
		{scanNodes, model.ScanRoutes + 1, true, false},
		{scanNodes + 1, model.ScanRoutes, true, false},
		{scanNodes + 1, model.ScanRoutes + 1, false, false},
		{model.ScanMost, model.ScanRoutes, true, false},
		{model.ScanMost + 1, 3, false, false},
		{model.ScanMost + 1, 3, false, true},
	} {
		p := &vrp.Problem{Capacity: 1 << 20, Demand: make([]int32, c.nodes), X: make([]float64, c.nodes), Y: make([]float64, c.nodes)}
		p.X[0], p.X[42], p.X[43], p.Demand[1] = 1500, -1000, 1000, 1
		routes := make([][]int32, c.routes)
		routes[1] = []int32{42, 43}
		for v := range int32(c.nodes) {
			switch {
			case v > 1 && v < 42:
				p.X[v], p.Y[v] = 10*math.Cos(float64(v)), 10*math.Sin(float64(v))
				routes[0] = append(routes[0], v)
			case v > 43:
				p.Y[v] = 1e5 + float64(v)
				r := 2 + int(v)%(c.routes-2)
				routes[r] = append(routes[r], v)
			}
		}
		g, err := wholeOf(p)
		if err != nil {
			t.Fatal(err)
		}
		chain := newChain(g, p.N(), model.NewStream(1, 1))
		chain.set(routes)
		chain.route[1], chain.untilSkip = -1, math.MaxInt // none is overlooked
		want := int32(0)
		if c.every || c.full {
			want = 1
		}
		if c.full {
			chain.load[0] = chain.capacity
		}
		chain.begin()
		if !chain.insert(1, math.MaxInt64) || chain.route[1] != want {
			t.Errorf("%d nodes, %d routes: into route %d, want %d", c.nodes, c.routes, chain.route[1], want)
		}
	}
}

// The cover finds the one good choice among the routes of two bad solutions.
func TestCoverJoinsSolutions(t *testing.T) {
	p := uniform(8, 1)
	g, err := wholeOf(p)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		pool := cover.NewPool()
		for range rapid.IntRange(1, 6).Draw(t, "solutions") {
			order := rapid.Permutation([]int32{1, 2, 3, 4, 5, 6, 7, 8}).Draw(t, "order")
			cut := rapid.IntRange(1, 7).Draw(t, "cut")
			g.pool(pool, [][]int32{order[:cut], order[cut:]})
		}
		// Every pair of pooled routes that makes a partition, by hand.
		want := int64(math.MaxInt64)
		for i, a := range pool.Routes {
			for _, b := range pool.Routes[:i] {
				seen := map[int32]bool{}
				for _, v := range append(append([]int32{}, a.Visits...), b.Visits...) {
					seen[v] = true
				}
				if len(seen) == 8 && len(a.Visits)+len(b.Visits) == 8 {
					want = min(want, int64(a.Cost+b.Cost))
				}
			}
		}
		cheapest := func(below int64) ([][]int32, int64) {
			c := &cover.Problem{Nodes: g.nodes, Upper: below, Most: 2, Price: make([]float64, g.nodes), Tries: 1 << 30, Stop: func() bool { return false }}
			c.Add(func(cost float64) int64 { return int64(cost) }, pool)
			c.Relax()
			c.Reduce()
			return c.Search()
		}
		routes, got := cheapest(want + 1)
		if got != want || len(routes) != 2 {
			t.Fatalf("%v at %d, want %d", routes, got, want)
		}
		if routes, _ := cheapest(want); routes != nil {
			t.Fatalf("%v is no better than %d", routes, want)
		}
	})
}

func TestIterationsAllocateNothing(t *testing.T) {
	p := load(t, "X-n101-k25", files.Options{})
	g, err := wholeOf(p)
	if err != nil {
		t.Fatal(err)
	}
	c := newChain(g, p.N(), model.NewStream(1, 1))
	c.set(alone(p.N()).Routes)
	for range 20000 {
		c.iterate(20)
	}
	if n := testing.AllocsPerRun(2000, func() { c.iterate(20) }); n > 0.01 {
		t.Errorf("%v allocations per iteration", n)
	}
}

func BenchmarkIterate(b *testing.B) {
	for name, p := range map[string]*vrp.Problem{"X-n101-k25": load(b, "X-n101-k25", files.Options{}), "N=1000": uniform(1000, 1)} {
		b.Run(name, func(b *testing.B) {
			g, err := wholeOf(p)
			if err != nil {
				b.Fatal(err)
			}
			c := newChain(g, p.N(), model.NewStream(1, 1))
			s, err := Savings(context.Background(), p)
			if err != nil {
				b.Fatal(err)
			}
			c.set(s.Routes)
			hot := 0.1 * float64(c.cost) / float64(p.N())
			for b.Loop() {
				c.iterate(hot)
			}
		})
	}
}

// By the clock, with several workers: chains of their own, parts, and parts of parts.
func TestSolveByTheClockWithWorkers(t *testing.T) {
	for _, n := range []int{3, 60, model.ChainMost + 50, model.PartMost + 200} {
		r := solve(t, uniform(n, 2), Options{Time: 120 * time.Millisecond, Workers: 3, Progress: func(Progress) {}})
		if r.Interrupted {
			t.Errorf("%d customers: interrupted", n)
		}
	}
}

// TestAShortTimeIsNotMelted: a time that holds few iterations per customer begins as cold as the
// same budget of iterations does. It began at the full heat, and the best of a minute for a hundred
// thousand customers was the start.
func TestAShortTimeIsNotMelted(t *testing.T) {
	prepared := func(n int, o Options) *driver {
		d := &driver{search: search{p: uniform(n, 3), o: o, begun: time.Now()}}
		if err := errors.Join(d.prepare(t.Context()), d.begin(t.Context())); err != nil {
			t.Fatal(err)
		}
		d.o.Workers = 1
		return d
	}
	many := model.PartMost + 200
	d := prepared(many, Options{Time: time.Hour})
	cost := d.bestCost
	d.probe(t.Context(), 1)
	if d.speed <= 0 || d.bestCost > cost || d.iterations == 0 {
		t.Fatalf("a pace of %v after %d iterations, cost from %d to %d", d.speed, d.iterations, cost, d.bestCost)
	}
	for _, c := range []struct {
		each, want float64 // iterations per customer, and where startTemperature then is
	}{{itersPerCustomer / 4, startTemperature / 4}, {itersPerCustomer, startTemperature}, {itersPerCustomer * 9, startTemperature}, {1, 2 * endTemperature}} {
		d.speed = c.each * float64(many) / d.o.Time.Seconds()
		if got := d.firstTemperature(startTemperature); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v iterations per customer begin at %v, not at %v", c.each, got, c.want)
		}
		same := &driver{search: search{p: d.p, o: Options{Iterations: int(c.each) * many}}}
		if got := same.firstTemperature(startTemperature); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("as a number they begin at %v", got)
		}
	}
	// What is annealed whole has no such round, and a budget of iterations asks no clock.
	for _, o := range []*driver{prepared(model.PartMost, Options{Time: time.Hour}), prepared(many, Options{Iterations: 50})} {
		if o.probe(t.Context(), 1); o.speed != 0 || o.iterations != 0 {
			t.Errorf("%d customers: a pace of %v was measured", o.p.N(), o.speed)
		}
	}
}
