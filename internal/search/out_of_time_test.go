package search

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// TestHastyRoutes: a start whose time is over when it begins serves everybody whom it would
// otherwise, whatever the parts of the problem, in valid routes.
func TestHastyRoutes(t *testing.T) {
	plain := windows(600)
	pairs := windows(600)
	for v := int32(1); v < 600; v += 2 {
		pairs.Shipments = append(pairs.Shipments, vrp.Shipment{Pickup: v, Delivery: v + 1, Amount: []int32{1}})
		pairs.Demand[v], pairs.Demand[v+1] = 0, 0
		pairs.Windows[v+1] = []vrp.Window{{From: pairs.Windows[v][0].From, To: 9000}}
	}
	depots := windows(600)
	depots.Depots = 3
	depots.Windows[1], depots.Windows[2], depots.Demand[1], depots.Demand[2] = nil, nil, 0, 0
	for d := range 3 {
		k := vrp.NewVehicleType()
		k.Start, k.End, k.Capacity = d, d, []int32{60}
		depots.Fleet = append(depots.Fleet, k)
	}
	grouped := windows(600)
	grouped.Groups = []vrp.Group{{Members: []int32{1, 2, 3}, Required: true}, {Members: []int32{7, 9}, Required: true}}
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	for name, p := range map[string]*vrp.Problem{"windows": plain, "shipments": pairs, "depots": depots, "groups": grouped} {
		if err := p.Check(); err != nil {
			t.Fatal(name, err)
		}
		c := newCandidate(compileNear(dead, p), model.NewStream(1, 1))
		c.set(nil, nil, nil)
		c.build(dead)
		if c.stage == outOfTime || c.stage != annealing || c.soon != nil {
			t.Errorf("%s: the chain stays hasty", name)
		}
		s := vrp.Solution{Routes: c.best, Types: c.bestKind}
		if err := vrp.Validate(p, s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		whole := newCandidate(compileNear(t.Context(), p), model.NewStream(1, 1))
		whole.set(nil, nil, nil)
		whole.build(t.Context())
		if x := whole.bestCost; c.bestCost > 2*x {
			t.Errorf("%s: cost %g in haste, %g with time", name, c.bestCost, x)
		}
	}
}

// TestInterruptedAtOnce: an interrupted search measures no list of neighbours and gives routes.
func TestInterruptedAtOnce(t *testing.T) {
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	p := windows(model.TableGeneral + 20)
	if m := compileNear(dead, p); len(m.Near) > 64*model.NearestGeneral {
		t.Errorf("%d neighbours were listed", len(m.Near))
	}
	r, err := Solve(dead, p, Options{Time: time.Hour, Workers: 1})
	if err != nil || !r.Interrupted || len(r.Unserved) > 0 {
		t.Errorf("%v %+v", err, r)
	}
}

// TestListsOfManyDepots: where there are too many places for a table, every customer is somebody's
// neighbour, those with the last numbers too: the tree held as many places as there are customers,
// counted from the second depot.
func TestListsOfManyDepots(t *testing.T) {
	p := windows(model.TableGeneral + 10)
	const depots = 6
	p.Depots = depots
	for d := range depots {
		p.Windows[d], p.Demand[d], p.Service[d] = nil, 0, 0
		k := vrp.NewVehicleType()
		k.Start, k.End, k.Capacity = d, d, []int32{60}
		p.Fleet = append(p.Fleet, k)
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	m := compileNear(t.Context(), p)
	named := make([]bool, m.Nodes)
	for _, v := range m.Near {
		named[v] = true
	}
	for v := m.Nodes - depots; v < m.Nodes; v++ {
		if !named[v] {
			t.Errorf("nobody is near customer %d of %d", v, m.Nodes)
		}
	}
	if slices.Contains(named[:depots], true) {
		t.Error("a depot is a neighbour")
	}
	for v := int32(depots); int(v) < m.Nodes; v++ {
		if len(m.NearOf(v)) != model.NearestGeneral {
			t.Fatalf("%d has %d neighbours", v, len(m.NearOf(v)))
		}
	}
}

// TestRuler: lengths measured quickly are those of the problem, also where the root lies next to a
// number at which rounding turns.
func TestRuler(t *testing.T) {
	n := model.TableGeneral + 1
	s := model.NewStream(3, 3)
	p := &vrp.Problem{Demand: make([]int32, n), X: make([]float64, n), Y: make([]float64, n)}
	for v := range n {
		switch v % 4 {
		case 0: // whole, and far away
			p.X[v], p.Y[v] = float64(s.IntN(1<<30))-1<<29, float64(s.IntN(1<<30))
		case 1:
			p.X[v], p.Y[v] = float64(s.IntN(1000))/2, 0 // halves on a line
		case 2:
			p.X[v], p.Y[v] = float64(s.IntN(1000)), float64(s.IntN(1000))
		default:
			p.X[v], p.Y[v] = 1000*s.Float(), 1000*s.Float()
		}
	}
	for _, metric := range []vrp.Metric{vrp.Rounded, vrp.Exact, vrp.Tenths, vrp.Ceil} {
		p.Metric = metric
		m := &model.Compiled{P: p, Nodes: n}
		for _, unit := range []float64{1, 10, 1000, 0.5, 1 << 15} {
			near := func(i, j int) int32 { return int32(min(math.Round(p.Dist(i, j)*unit), model.LongestLength)) }
			up := func(i, j int) int32 { return int32(min(model.UpUnits(p.Dist(i, j), unit), model.LongestLength)) }
			quick, quickUp := m.Ruled(unit, false, near), m.Ruled(unit, true, up)
			for range 20000 {
				i, j := s.IntN(n), s.IntN(n)
				if a, b := quick(i, j), near(i, j); a != b {
					t.Fatalf("metric %v, unit %g: %d, want %d", metric, unit, a, b)
				}
				if a, b := quickUp(i, j), up(i, j); a != b {
					t.Fatalf("metric %v, unit %g, up: %d, want %d", metric, unit, a, b)
				}
			}
		}
	}
}

// TestVentureIsCut: a route trial ends soon where the time is over.
func TestVentureIsCut(t *testing.T) {
	m := compileNear(t.Context(), optional(400, 2000))
	c := newCandidate(m, model.NewStream(3, 1))
	c.set(nil, nil, nil)
	for range 20 {
		if n := c.tryRoute(1, func() bool { return true }); n > 3 {
			t.Fatalf("%d iterations", n)
		}
	}
}

// TestChunk: where a clock decides, iterations between two looks at it are few where they are slow;
// where a budget does, they are as many as ever.
func TestChunk(t *testing.T) {
	for _, c := range []struct {
		o     Options
		speed float64
		done  int
		want  int
	}{
		{Options{Time: time.Second}, 1e6, 0, clockEach},
		{Options{Time: time.Second}, 500 * clockEach, 0, clockEach},
		{Options{Time: time.Second}, 5000, 0, 10},
		{Options{Time: 10 * time.Second}, 500, 0, 10},
		{Options{Time: time.Second}, 1, 0, 1},
		{Options{Time: time.Second}, 0, 0, 1},
		{Options{Iterations: 1000}, 1, 0, clockEach},
		{Options{Iterations: 1000}, 1, 990, 10},
	} {
		d := &generalDriver{search: search{o: c.o, speed: c.speed, iterations: c.done}}
		if got := d.chunk(clockEach); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestReserve: judging and reasons have a part of the time, a quarter at most; a budget of
// iterations has no time.
func TestReserve(t *testing.T) {
	for _, c := range []struct {
		time, took time.Duration
		short      bool
		want       time.Duration
	}{
		{time.Second, time.Millisecond, false, time.Second - judgements*time.Millisecond},
		{time.Second, time.Second, false, 750 * time.Millisecond},
		{time.Second, 0, true, 970 * time.Millisecond},
		{time.Minute, 0, true, time.Minute - reasonsMost},
		{0, time.Second, true, 0},
	} {
		d := &generalDriver{search: search{o: Options{Time: c.time}}}
		if d.reserve(c.took, c.short); d.o.Time != c.want {
			t.Errorf("%+v: %v", c, d.o.Time)
		}
	}
}

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

// TestShortTimeHasRoutes: a time that is over at once still gives routes, and no worse
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
