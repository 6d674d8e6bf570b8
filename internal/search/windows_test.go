package search

import (
	"context"
	"testing"

	"haul/internal/search/model"
	"haul/internal/vrp"
	"haul/internal/vrp/testset"
)

// Where windows alone bind, ready and due find what segments of time find: the same routes after
// the same iterations, whether insertions look at every position or beside the nearest customers.
func TestPromptFindsWhatSegmentsFind(t *testing.T) {
	problems := map[string]*vrp.Problem{"long routes": windows(90), "beside the nearest": windows(180)}
	problems["long routes"].Capacity = 1000
	for v := 1; v <= 90; v++ {
		problems["long routes"].Windows[v][0].To *= 3
	}
	for _, name := range []string{"vrptw", "mdovrpbltw", "ovrpmbtw"} {
		set, err := testset.RouteFinder(name, 50)
		if err != nil {
			t.Fatal(err)
		}
		problems[name] = set.Problems[0]
	}
	prizes := windows(60)
	prizes.Optional, prizes.Prize = make([]bool, 61), make([]float64, 61)
	for v := 1; v <= 60; v++ {
		prizes.Optional[v], prizes.Prize[v] = true, float64(100+7*v)
	}
	problems["prizes"] = prizes
	for name, p := range problems {
		var chains [2]*candidate
		for i := range chains {
			m := compileNear(context.Background(), p)
			if m.Traits.Time != model.WindowsOnly {
				t.Fatalf("%s: windows are not all that binds", name)
			}
			if m.Traits.Scan, m.Traits.Store = model.ScanTable, model.RoutesOnly; i > 0 {
				m.Traits.Time = model.TimeSegments
			}
			c := newCandidate(m, model.NewStream(3, 1))
			c.targetLow, c.targetHigh = targetFeasibleLow, targetFeasibleHigh
			c.set(nil, nil, nil)
			c.build(t.Context())
			c.typicalLeg()
			chains[i] = c
		}
		for step := range 60 {
			for _, c := range chains {
				c.scheduleOverload(20)
				for range 20 {
					c.iterate(c.Leg / 2)
				}
			}
			if a, b := chains[0], chains[1]; a.cost != b.cost || a.State != b.State {
				t.Fatalf("%s: after %d iterations the routes cost %g, and %g by segments", name, 20*(step+1), a.cost, b.cost)
			}
		}
	}
}

// A limit of duration, a price of time and a release need segments.
func TestPromptLeavesDurationsToSegments(t *testing.T) {
	for name, bind := range map[string]func(p *vrp.Problem){
		"a limit":   func(p *vrp.Problem) { p.MaxDuration = 3000 },
		"a price":   func(p *vrp.Problem) { p.Fleet = p.Types(); p.Fleet[0].DurationCost = 1; p.Capacity = 0 },
		"a release": func(p *vrp.Problem) { p.Release = make([]float64, len(p.Demand)); p.Release[3] = 5 },
	} {
		p := windows(20)
		bind(p)
		m := compileNear(context.Background(), p)
		if m.Traits.Time == model.WindowsOnly {
			t.Errorf("%s: windows are taken for all that binds", name)
		}
	}
}
