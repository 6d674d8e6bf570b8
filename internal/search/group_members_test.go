package search

import (
	"math"
	"slices"
	"testing"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// grouped is groups of three at random places, each of which asks for one.
func grouped(groups int) *vrp.Problem {
	p := &vrp.Problem{Metric: vrp.Exact, Capacity: 6, Demand: make([]int32, 3*groups+1), X: make([]float64, 3*groups+1), Y: make([]float64, 3*groups+1)}
	s := model.NewStream(6, uint64(groups))
	for v := range p.X {
		p.X[v], p.Y[v] = 100*s.Float(), 100*s.Float()
		if v > 0 {
			p.Demand[v] = 1
		}
		if v%3 == 1 {
			p.Groups = append(p.Groups, vrp.Group{Members: []int32{int32(v), int32(v + 1), int32(v + 2)}, Required: true})
		}
	}
	return p
}

// TestChooseMembers: a route gets the members with which it is shortest in its order, and what is
// taken back leaves no trace.
func TestChooseMembers(t *testing.T) {
	p := grouped(20)
	c := newCandidate(compileNear(t.Context(), p), model.NewStream(2, 2))
	if !c.Traits.Moves.Has(model.ChooseMembers) || c.Traits.Scan != model.ScanSimple {
		t.Fatal("members are not chosen anew")
	}
	consistent := func(when string) {
		sum, on := 0.0, map[int32]int32{}
		for r, id := range c.routes {
			s := &c.states[id]
			sum += s.cost
			for _, at := range s.stops[1 : len(s.stops)-1] {
				on[at.node] = int32(r) + 1
			}
		}
		for v := int32(1); int(v) < c.Nodes; v++ {
			if c.links[v].route != on[v]-1 {
				t.Fatalf("%s: customer %d is in route %d, taken for %d", when, v, on[v]-1, c.links[v].route)
			}
		}
		if math.Abs(sum-c.cost) > 1e-6*sum {
			t.Fatalf("%s: routes cost %g, taken for %g", when, sum, c.cost)
		}
	}
	c.set(nil, nil, nil)
	c.build(t.Context())
	c.typicalLeg()
	c.penalty = 0
	changed := 0
	for i := range 300 {
		if c.Traits.Moves &^= model.ChooseMembers; i%2 == 0 {
			c.Traits.Moves |= model.ChooseMembers
		}
		c.iterate(c.Leg)
		consistent("after an iteration")
		c.begin()
		for r := range int32(len(c.routes)) {
			was := c.states[c.routes[r]].dist
			c.chooseMembers(r)
			s := &c.states[c.routes[r]]
			var shortest func(last int32, i int) int64
			shortest = func(last int32, i int) int64 {
				v := s.stops[i].node
				if i == len(s.stops)-1 {
					return int64(c.Types[0].Distances.At(last, v))
				}
				least := int64(math.MaxInt64)
				for _, w := range c.Members[c.Locations[v].Representative] {
					least = min(least, int64(c.Types[0].Distances.At(last, w))+shortest(w, i+1))
				}
				return least
			}
			if want := shortest(0, 1); s.dist != want {
				t.Fatalf("route %d is %d long, the shortest is %d", r, s.dist, want)
			}
			if s.dist < was {
				changed++
			}
		}
		if i%3 == 0 {
			c.keep()
			consistent("after choosing")
		} else {
			c.undo()
			consistent("after taking back")
		}
	}
	if changed < 5 {
		t.Errorf("%d routes were changed", changed)
	}
}

// TestChooseOnlyEquals: members who differ in more than their place are not chosen anew.
func TestChooseOnlyEquals(t *testing.T) {
	for name, change := range map[string]func(p *vrp.Problem){
		"demands": func(p *vrp.Problem) { p.Demand[2] = 2 },
		"prizes":  func(p *vrp.Problem) { p.Prize = make([]float64, len(p.Demand)); p.Prize[2] = 5 },
		"windows": func(p *vrp.Problem) {
			p.Windows = make([][]vrp.Window, len(p.Demand))
			p.Windows[2] = []vrp.Window{{From: 0, To: 90}}
		},
		"vehicles": func(p *vrp.Problem) {
			k := vrp.NewVehicleType(p.Capacity)
			k.Allowed = []int32{1, 3}
			p.Fleet = []vrp.VehicleType{vrp.NewVehicleType(p.Capacity), k}
		},
		"no groups": func(p *vrp.Problem) { p.Groups = nil },
	} {
		p := grouped(20)
		change(p)
		if compileNear(t.Context(), p).Traits.Moves.Has(model.ChooseMembers) {
			t.Errorf("%s: members are chosen", name)
		}
	}
}

// TestGroupsLookEverywhere: an insertion looks at every position where groups are few, however many
// members they have.
func TestGroupsLookEverywhere(t *testing.T) {
	for _, x := range []struct {
		groups int
		full   bool
	}{{model.FullGroups - 1, true}, {model.FullGroups, true}, {model.FullGroups + 1, false}} {
		if c := newCandidate(compileNear(t.Context(), grouped(x.groups)), model.NewStream(1, 1)); c.Traits.Scan.All() != x.full {
			t.Errorf("%d groups: %v", x.groups, c.Traits.Scan.All())
		}
	}
}

// TestChosenMembersStay: after every iteration that chooses members, no route has a shorter choice.
func TestChosenMembersStay(t *testing.T) {
	c := newCandidate(compileNear(t.Context(), grouped(20)), model.NewStream(2, 2))
	c.set(nil, nil, nil)
	c.build(t.Context())
	c.typicalLeg()
	for range 100 {
		c.iterate(c.Leg)
		c.begin()
		for r := range int32(len(c.routes)) {
			was := c.states[c.routes[r]].dist
			if c.chooseMembers(r); c.states[c.routes[r]].dist != was && c.states[c.routes[r]].count > 1 {
				t.Fatalf("route %d gets from %d to %d", r, was, c.states[c.routes[r]].dist)
			}
		}
		c.undo()
	}
}

// TestFixedMembersStay: routes that are fixed keep their members, shorter ones or not.
func TestFixedMembersStay(t *testing.T) {
	p := grouped(20)
	start := vrp.Solution{}
	for lead := int32(1); int(lead) < len(p.Demand); lead += 12 {
		start.Routes = append(start.Routes, []int32{lead, lead + 4, lead + 8, lead + 9})
	}
	fixed := make([]int32, len(start.Routes))
	fixed[0], fixed[1] = -1, 2
	r, err := Solve(t.Context(), p, Options{Iterations: 2000, Seed: 1, Start: &start, Fixed: fixed})
	if err != nil {
		t.Fatal(err)
	}
	whole, begins := false, false
	for _, route := range r.Solution.Routes {
		whole = whole || slices.Equal(route, start.Routes[0])
		begins = begins || len(route) > 1 && slices.Equal(route[:2], start.Routes[1][:2])
	}
	if !whole || !begins {
		t.Errorf("of %v the first and the beginning of the second are fixed: %v", start.Routes, r.Solution.Routes)
	}
}
