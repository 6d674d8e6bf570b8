package search

import (
	"context"
	"testing"

	"haul/internal/vrp"
	"haul/internal/vrp/testset"
)

// A problem that asks little is searched draw by draw as any other, also where a route's beginning
// is fixed or it has all the stops that it may have.
func TestLeanFindsWhatSweepFinds(t *testing.T) {
	for _, name := range []string{"vrpb", "mdvrpbl", "vrptw", "mdovrpbltw"} {
		set, err := testset.RouteFinder(name, 50)
		if err != nil {
			t.Fatal(err)
		}
		for _, stops := range []int{0, 8} {
			p := *set.Problems[1]
			p.Fleet = append([]vrp.VehicleType(nil), p.Fleet...)
			for i := range p.Fleet {
				p.Fleet[i].MaxStops = stops
			}
			var chains [2]*rchain
			for i := range chains {
				m, err := compile(context.Background(), &p)
				if err != nil {
					t.Fatal(err)
				}
				c := newRichChain(m, newStream(3, 1))
				if !c.lean {
					t.Fatalf("%s: it asks for more", name)
				}
				c.lean = i == 0
				c.set(nil, nil, nil)
				c.build()
				c.typicalLeg()
				if stops > 0 {
					locks := make([]int32, len(c.best))
					locks[0] = 2
					c.set(clone(c.best), append([]int32(nil), c.bestKind...), locks)
				}
				chains[i] = c
			}
			for step := range 60 {
				for _, c := range chains {
					c.ease(20)
					for range 20 {
						c.iterate(c.leg / 2)
					}
				}
				if a, b := chains[0], chains[1]; a.cost != b.cost || a.state != b.state || a.moves != b.moves {
					t.Fatalf("%s: after %d iterations the routes cost %g, and %g otherwise", name, 20*(step+1), a.cost, b.cost)
				}
			}
		}
	}
}

// Prices that differ by vehicle, customers of one vehicle alone and backhauls that are never first
// ask for more.
func TestLeanLeavesTheRest(t *testing.T) {
	for name, ask := range map[string]func(p *vrp.Problem){
		"prices":    func(p *vrp.Problem) { p.Fleet[1].DistanceCost = 2 },
		"customers": func(p *vrp.Problem) { p.Fleet[1].Allowed = []int32{5, 6, 7} },
		"linehauls": func(p *vrp.Problem) { p.Backhauls = vrp.LinehaulFirst },
		"durations": func(p *vrp.Problem) { p.Fleet[1].MaxDuration = 9 },
		"sizes": func(p *vrp.Problem) {
			p.Fleet = append(p.Fleet, p.Fleet[1])
			p.Fleet[len(p.Fleet)-1].Capacity = []int32{7}
		},
	} {
		set, err := testset.RouteFinder("mdvrpb", 50)
		if err != nil {
			t.Fatal(err)
		}
		p := set.Problems[0]
		ask(p)
		m, err := compile(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		if newRichChain(m, newStream(3, 1)).lean {
			t.Errorf("%s: they are taken for little", name)
		}
	}
}
