package vrp

import (
	"errors"
	"fmt"
	"math"
)

// Several depots in a batch. What a reader could break: in a batch, and in the visits of a
// policy, the first depot is 0, customers are 1 to N and further depots N+1 and above, so that a
// customer's number does not depend on the depots. In a Problem all depots come first. A depot
// among the visits is where the next vehicle starts; the previous vehicle returns to its own
// depot. The first vehicle starts at the depot that is nearest to its first customer, unless a
// depot comes first.

// EachRoute calls route for each route of visits as a policy makes them: its depot, and its
// customers by the policy's numbers, a part of visits.
func (p *Problem) EachRoute(visits []int32, route func(depot int32, customers []int32)) {
	depots, n := int32(p.DepotCount()), int32(p.N())
	own, chosen, from := int32(0), depots == 1, 0
	for k := 0; k <= len(visits); k++ {
		if k < len(visits) && visits[k] > 0 && visits[k] <= n {
			if !chosen {
				own, chosen = p.nearestDepot(int(visits[k]-1+depots)), true
			}
			continue
		}
		if k > from {
			route(own, visits[from:k])
		}
		if from = k + 1; k < len(visits) {
			own, chosen = max(0, visits[k]-n), chosen || k > 0
		}
	}
}

// FromVisits cuts visits as a policy makes them into routes of the problem, each with a vehicle of
// its depot.
func (p *Problem) FromVisits(visits []int32) Solution {
	depots := int32(p.DepotCount())
	if depots == 1 {
		return FromTour(visits)
	}
	types := p.depotTypes()
	var s Solution
	p.EachRoute(visits, func(depot int32, customers []int32) {
		route := make([]int32, len(customers))
		for k, v := range customers {
			route[k] = v - 1 + depots
		}
		s.Routes, s.Types = append(s.Routes, route), append(s.Types, types[depot])
	})
	return s
}

// depotTypes are the vehicle types that leave from each depot.
func (p *Problem) depotTypes() []int32 {
	types := make([]int32, p.DepotCount())
	for k, t := range p.Types() {
		if t.Start >= 0 {
			types[t.Start] = int32(k)
		}
	}
	return types
}

// Visits is what FromVisits cuts into the routes of s.
func (p *Problem) Visits(s Solution) []int32 {
	depots := int32(p.DepotCount())
	if depots == 1 {
		return s.Tour()
	}
	out := []int32{0}
	for i, route := range s.Routes {
		from := 0
		if s.Types != nil {
			from = p.Types()[s.Types[i]].Start
		}
		if from > 0 {
			from += p.N()
		}
		out = append(out, int32(from))
		for _, c := range route {
			out = append(out, c+1-depots)
		}
	}
	return append(out, 0)
}

// nearestDepot is the first of those that are nearest to a place by their coordinates.
func (p *Problem) nearestDepot(place int) (best int32) {
	x, y := p.Plane()
	least := math.Inf(1)
	for d := range p.DepotCount() {
		if way := math.Hypot(x[d]-x[place], y[d]-y[place]); way < least {
			best, least = int32(d), way
		}
	}
	return best
}

// depotsAlike says in one line what keeps a problem with several depots from being one in which a
// vehicle returns to the depot that it left, and nothing else depends on the depot; nil if nothing.
func (p *Problem) depotsAlike() error {
	if depots := p.DepotCount(); depots > mixDepots {
		return fmt.Errorf("it has %d depots, and no policy here has learned more than %d", depots, mixDepots)
	}
	types := p.Types()
	first, left := types[0], make([]bool, p.DepotCount())
	for _, t := range types {
		if t.Start == None || left[t.Start] || t.End != t.Start && t.End != None || (t.End == None) != (first.End == None) {
			return errors.New("its vehicles are not one type per depot, of which each returns to its own or all end anywhere, and no policy here has learned others")
		}
		left[t.Start] = true
		t.Start, t.End, t.Name, t.Count = first.Start, first.End, first.Name, first.Count
		if fmt.Sprint(t) != fmt.Sprint(first) {
			return errors.New("its vehicles differ from depot to depot, which no policy here has learned")
		}
	}
	for d, seen := range left {
		if !seen {
			return fmt.Errorf("no vehicle leaves from depot %s, which no policy here has learned", p.ID(d))
		}
		if p.Windows != nil && fmt.Sprint(p.Windows[d]) != fmt.Sprint(p.Windows[0]) || p.Service != nil && p.Service[d] != p.Service[0] {
			return errors.New("its depots differ in their times, which no policy here has learned")
		}
	}
	return nil
}
