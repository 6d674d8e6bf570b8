package search

import (
	"slices"
	"testing"

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
		if c.kinds[0].count = c.nodes; free > 0 {
			c.kinds[0].count = free - less
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
	c.kinds[0].count = c.nodes
	c.set(c.joinRuns(t.Context()), nil, nil)
	joined := c.cost
	c.set(nil, nil, nil)
	if c.build(t.Context()); joined > 0.8*c.cost {
		t.Errorf("joined routes cost %g, inserted ones %g", joined-c.upper, c.cost-c.upper)
	}
	for name, change := range map[string]func(p *vrp.Problem){
		"optional": func(p *vrp.Problem) { p.Optional = make([]bool, len(p.Demand)); p.Optional[3] = true },
		"groups":   func(p *vrp.Problem) { p.Groups = []vrp.Group{{Members: []int32{1, 2}, Required: true}} },
		"backhauls": func(p *vrp.Problem) {
			p.Backhauls, p.Pickup = vrp.LinehaulFirst, make([]int32, len(p.Demand))
			p.Pickup[4], p.Demand[4] = 1, 0
		},
		"durations": func(p *vrp.Problem) { p.Fleet[0].MaxDuration = 5000 },
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
