package search

import (
	"testing"
	"time"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// far is a cluster of optional customers whose prizes pay for the way there together, and for none
// of them alone; beside it lies one that never pays.
func far() *vrp.Problem {
	p := &vrp.Problem{Capacity: 10, Metric: vrp.Exact}
	add := func(x, y, prize float64, from, to float64) {
		p.X, p.Y, p.Demand = append(p.X, x), append(p.Y, y), append(p.Demand, 1)
		p.Prize, p.Optional = append(p.Prize, prize), append(p.Optional, true)
		p.Windows = append(p.Windows, []vrp.Window{{From: from, To: to}})
	}
	add(0, 0, 0, 0, 230)
	p.Demand[0], p.Optional[0] = 0, false
	for i := range 8 {
		add(100+float64(i), 0, 40, 100+2*float64(i), 110+2*float64(i))
	}
	add(-200, 0, 40, 0, 1000)
	// These would pay best, if only their vehicle were back in time.
	for range 6 {
		add(130, 0, 500, 150, 1000)
	}
	return p
}

// TestTourOpensARoute: one programme finds the whole route, in the order of its windows.
func TestTourOpensARoute(t *testing.T) {
	p := far()
	m := compileNear(t.Context(), p)
	c := newRichChain(m, model.NewStream(1, 1))
	if c.labelling == nil {
		t.Fatal("prizes, windows and one load are what the programme knows")
	}
	c.set(nil, nil, nil)
	openAll(c)
	if len(c.best) != 1 || len(c.best[0]) != 8 {
		t.Fatalf("routes %v", c.best)
	}
	for i, v := range c.best[0] {
		if int(v) != i+1 {
			t.Errorf("routes %v", c.best)
			break
		}
	}
	if want := 107.0*2 + 40 + 6*500; !alike(c.cost, want) {
		t.Errorf("cost %v, want %v", c.cost, want)
	}
	// What the chain believes is what its routes cost.
	if s := (vrp.Solution{Routes: clone(c.best)}); vrp.Validate(p, s) != nil || !alike(p.Cost(s), c.cost) {
		t.Errorf("%v, cost %v, the chain's %v", vrp.Validate(p, s), p.Cost(s), c.cost)
	}
	// Who is served already is worth the way that its removal saves, and not its prize.
	c.candidateValues([]int32{9}, 0, -1, 100, 0)
	for _, v := range c.labelling.list {
		if want := map[bool]float64{true: 0, false: p.Prize[v]}[v < 8]; v != 8 && !alike(c.labelling.worth[v], want) {
			t.Errorf("customer %d is worth %v, not %v", v, c.labelling.worth[v], want)
		}
	}
	// A part of the route that lost its middle gets it back.
	c.set([][]int32{{1, 2, 7, 8}}, []int32{0}, nil)
	for range 50 {
		c.relabelRoute(0, false)
	}
	if !alike(c.cost, 107*2+40+6*500) {
		t.Errorf("a route of 4 became %v at cost %v", c.best, c.cost)
	}
}

// TestTourKeepsTheCost: through many programmes at any temperature, the cost that the chain keeps
// is that of its routes.
func TestTourKeepsTheCost(t *testing.T) {
	p := far()
	m := compileNear(t.Context(), p)
	c := newRichChain(m, model.NewStream(3, 1))
	c.set(nil, nil, nil)
	for i := range 400 {
		c.relabelRoute(40, i%3 == 0)
		c.iterate(40)
		was := c.cost
		var s vrp.Solution
		for r := range c.routes {
			stops := c.states[c.routes[r]].stops
			var route []int32
			for _, at := range stops[1 : len(stops)-1] {
				route = append(route, at.node)
			}
			s.Routes = append(s.Routes, route)
		}
		if bad := vrp.Validate(p, s); bad != nil || !alike(p.Cost(s), was) {
			t.Fatalf("after %d: %v, cost %v, kept %v", i, bad, p.Cost(s), was)
		}
	}
}

// TestTourAsksWhoMayServe: a customer whom no vehicle may visit is on no tour.
func TestTourAsksWhoMayServe(t *testing.T) {
	p := far()
	p.Needs = make([][]int32, len(p.Demand))
	p.Needs[4] = []int32{7}
	m := compileNear(t.Context(), p)
	c := newRichChain(m, model.NewStream(1, 1))
	c.set(nil, nil, nil)
	openAll(c)
	if s := (vrp.Solution{Routes: clone(c.best)}); len(c.best) != 1 || len(c.best[0]) != 7 || vrp.Validate(p, s) != nil {
		t.Errorf("routes %v: %v", c.best, vrp.Validate(p, s))
	}
}

// openAll opens routes as long as one of eight programmes pays.
func openAll(c *candidate) {
	for lost := 0; lost < 8 && len(c.absent) > 0; lost++ {
		was := c.cost
		if c.relabelRoute(0, true); c.cost < was-1e-9 {
			lost = -1
		}
	}
}

func alike(a, b float64) bool { return a-b < 0.1 && b-a < 0.1 }

// TestShortTimeHasRoutes: a time that ends before the first tour still gives routes, and no worse
// ones than none at all.
func TestShortTimeHasRoutes(t *testing.T) {
	was := elapsed
	defer func() { elapsed = was }()
	elapsed = func(time.Time) time.Duration { return time.Hour }
	p := far()
	for _, prize := range []float64{40, 3} { // which pays for the way, and which does not
		for v := 1; v <= 8; v++ {
			p.Prize[v] = prize
		}
		r, err := Solve(t.Context(), p, Options{Time: time.Second, Workers: 1, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if none := p.Cost(vrp.Solution{}); r.Cost > none || prize == 40 && r.Cost == none {
			t.Errorf("prizes of %v: cost %v, %v without routes", prize, r.Cost, none)
		}
	}
}
