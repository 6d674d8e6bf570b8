package search

import (
	"slices"
	"testing"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// TestJoinRuns: routes joined by savings keep every limit, are no more than there are vehicles, and
// leave out nobody whom a vehicle can serve as long as there are enough; nobody joins whom none can
// serve.
func TestJoinRuns(t *testing.T) {
	p := windows(700)
	p.X[9], p.Y[9], p.Windows[9] = 5000, 5000, []vrp.Window{{From: 0, To: 1}}
	p.Windows[0] = []vrp.Window{{From: 0, To: 6000}} // the way back counts
	p.Fleet, p.Capacity = []vrp.VehicleType{vrp.NewVehicleType(p.Capacity)}, 0
	c := vast(t, p)
	if !c.savesRuns() {
		t.Fatal("savings are not taken")
	}
	free := 0
	for _, less := range []int{0, -1, 0, 1, 20} {
		if c.Types[0].Count = c.Nodes; free > 0 {
			c.Types[0].Count = free - less
		}
		routes := c.joinRuns(t.Context())
		if free == 0 {
			free = len(routes)
		}
		if want := min(free, free-less); len(routes) != want {
			t.Errorf("%d routes for %d vehicles, without a limit %d", len(routes), free-less, free)
		}
		if !c.set(routes, nil, nil) {
			t.Error("the routes break a limit")
		}
		if bad := broken(p, vrp.Solution{Routes: routes}); bad != nil {
			t.Error(bad)
		}
		if less <= 0 && !slices.Equal(c.absent, []int32{9}) {
			t.Errorf("left out: %v", c.absent)
		}
	}
	c.Types[0].Count = c.Nodes
	c.set(c.joinRuns(t.Context()), nil, nil)
	joined := c.cost
	c.set(nil, nil, nil)
	if c.build(t.Context()); joined > 0.8*c.cost {
		t.Errorf("joined routes cost %g, inserted ones %g", joined-c.Upper, c.cost-c.Upper)
	}
	for name, change := range map[string]func(p *vrp.Problem){
		"optional": func(p *vrp.Problem) { p.Optional = make([]bool, len(p.Demand)); p.Optional[3] = true },
		"groups":   func(p *vrp.Problem) { p.Groups = []vrp.Group{{Members: []int32{1, 2}, Required: true}} },
		"backhauls": func(p *vrp.Problem) {
			p.Backhauls, p.Pickup = vrp.LinehaulFirst, make([]int32, len(p.Demand))
			p.Pickup[4], p.Demand[4] = 1, 0
		},
		"durations": func(p *vrp.Problem) { p.Fleet[0].MaxDuration = 5000 },
		"distances": func(p *vrp.Problem) { p.Fleet[0].MaxDistance = 5000 },
		"allowed":   func(p *vrp.Problem) { p.Fleet[0].Allowed = []int32{1, 2, 3} },
		"loaded":    func(p *vrp.Problem) { p.Fleet[0].InitialLoad = []int32{2} },
		"two kinds": func(p *vrp.Problem) { p.Fleet = append(p.Fleet, p.Fleet[0]); p.Fleet[1].FixedCost = 3 },
	} {
		q := windows(200)
		q.Fleet, q.Capacity = []vrp.VehicleType{vrp.NewVehicleType(q.Capacity)}, 0
		change(q)
		if vast(t, q).savesRuns() {
			t.Errorf("%s: what savings know nothing of is left to them", name)
		}
	}
}

// TestJoinRunsOfMany: with a table of distances, runs are joined from SavesLeast places on.
func TestJoinRunsOfMany(t *testing.T) {
	for _, places := range []int{model.SavesLeast - 1, model.SavesLeast} {
		c := newCandidate(compileNear(t.Context(), windows(places-1)), model.NewStream(1, 1))
		if got := c.savesRuns(); c.Traits.Scan == model.ScanNearRoutes || got != (places == model.SavesLeast) {
			t.Fatalf("%d places: vast %v, joined %v", places, c.Traits.Scan == model.ScanNearRoutes, got)
		}
		if places < model.SavesLeast {
			continue
		}
		if !c.set(c.joinRuns(t.Context()), nil, nil) || len(c.absent) > 0 {
			t.Errorf("%d are left out", len(c.absent))
		}
	}
}

// TestJoinRunsKeepsLimits: pickups fill a vehicle as deliveries do, a vehicle may be limited to a
// few stops, and where vehicles or routes are few, the runs with the most customers stay whole.
func TestJoinRunsKeepsLimits(t *testing.T) {
	p := windows(700)
	p.Pickup = make([]int32, len(p.Demand))
	for v := range p.Demand {
		p.Pickup[v], p.Demand[v] = p.Demand[v], 0
	}
	c := vast(t, p)
	if !c.savesRuns() {
		t.Fatal("savings are not taken")
	}
	routes := c.joinRuns(t.Context())
	if !c.set(routes, nil, nil) || len(c.absent) > 0 {
		t.Errorf("pickups: %d are left out", len(c.absent))
	}
	c.Types[0].MaxStops = 5
	routes = c.joinRuns(t.Context())
	longest, shortest := 0, len(p.Demand)
	for _, r := range routes {
		longest, shortest = max(longest, len(r)), min(shortest, len(r))
	}
	if longest != 5 || shortest == 5 {
		t.Fatalf("routes have %d to %d customers", shortest, longest)
	}
	c.most = len(routes) / 2
	few := c.joinRuns(t.Context())
	if len(few) != c.most || len(few[0]) != 5 || len(few[len(few)-1]) < shortest+1 {
		t.Errorf("%d routes where %d may be, of %d to %d customers", len(few), c.most, len(few[len(few)-1]), len(few[0]))
	}
}

// TestJoinRunsCountsWaiting: a hundred of waiting for the customer who is nearer is worth twenty of
// distance, whatever the units of time and distance are.
func TestJoinRunsCountsWaiting(t *testing.T) {
	for _, speed := range []float64{1, 1. / 64, 64, 0.3} {
		for farther, want := range map[float64]int32{10: 3, 30: 2} {
			p := &vrp.Problem{Metric: vrp.Exact, Capacity: 2, Demand: []int32{0, 1, 1, 1}, X: []float64{0, 500, 500, 500}, Y: []float64{0, 0, 10, -10 - farther}, Speed: speed}
			first := vrp.Window{From: 500 / speed, To: 500/speed + 20}
			then := first.To + 10/speed + 100
			p.Windows = [][]vrp.Window{nil, {first}, {{From: then, To: then + 9}}, {{From: 0, To: 4 * then}}}
			c := vast(t, p)
			routes := c.joinRuns(t.Context())
			if len(routes) != 2 || !slices.Contains(routes[0], 1) || !slices.Contains(routes[0], want) {
				t.Errorf("speed %g, %g farther: routes %v, want 1 with %d", speed, farther, routes, want)
			}
		}
	}
}

// TestJoinedRoutesStayCold: annealing begins colder where savings made the first routes, and they
// are told from others.
func TestJoinedRoutesStayCold(t *testing.T) {
	m := compileNear(t.Context(), windows(60))
	for _, x := range []struct {
		joined bool
		want   float64
	}{{true, generalStartFlat / 16}, {false, generalStartFlat / 4}} {
		d := &generalDriver{search: search{o: Options{Iterations: len(m.Tasks) * generalItersPerTask / 16}}, m: m, joined: x.joined}
		if got := d.firstTemperature(); got != x.want {
			t.Errorf("joined %v: annealing begins at %g, want %g", x.joined, got, x.want)
		}
	}
}
