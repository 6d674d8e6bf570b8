package vrp

import (
	"cmp"
	"slices"
)

// Customers at the depot's place. What a reader could break: a route to them costs nothing, so a
// solver that looks at costs only has no reason to avoid one, but people pay for a vehicle.
// MergeAtDepot never makes routes more expensive, and never makes more of them.

// MergeAtDepot puts customers at the depot's place (or as near as the metric can tell) into routes
// that have room for them, so that none has a vehicle to itself for want of a reason. The routes
// are s where that leaves no fewer; the others stay as they are.
func (p *Problem) MergeAtDepot(s Solution) Solution {
	var here []int32
	for v := 1; v < len(p.Demand); v++ {
		if p.Dist(0, v) == 0 && p.Dist(v, 0) == 0 {
			here = append(here, int32(v))
		}
	}
	if len(here) == 0 {
		return s
	}
	best := s
	// First those that are on no route of others, which moves least; then all that can be moved.
	for _, all := range []bool{false, true} {
		if g := p.gather(s, here, all); used(g) < used(best) && p.Cost(g) <= p.Cost(s) && Validate(p, g) == nil {
			best = g
		}
	}
	return best
}

// used is the number of routes with a customer.
func used(s Solution) (n int) {
	for _, r := range s.Routes {
		if len(r) > 0 {
			n++
		}
	}
	return n
}

// gather takes the customers that are here out of their routes and packs them, the largest first,
// each into the fullest route that takes it at no cost.
func (p *Problem) gather(s Solution, here []int32, all bool) (out Solution) {
	moves := make([]bool, len(p.Demand))
	for _, v := range here {
		moves[v] = true
	}
	var loose []int32
	for _, r := range s.Routes {
		kept, gone := p.part(r, moves)
		if len(kept) > 0 && !all {
			kept, gone = slices.Clone(r), nil
		}
		if len(kept) > 0 {
			out.Routes = append(out.Routes, kept)
		}
		loose = append(loose, gone...)
	}
	slices.SortFunc(loose, func(a, b int32) int { return cmp.Or(cmp.Compare(p.Demand[b], p.Demand[a]), cmp.Compare(a, b)) })
	load, took := make([]int64, len(out.Routes)), make([]float64, len(out.Routes))
	for i, r := range out.Routes {
		load[i], took[i] = p.burden(r)
	}
	for _, v := range loose {
		demand, service := p.burden([]int32{v})
		to := -1
		for i, r := range out.Routes {
			fits := load[i]+demand <= int64(p.Capacity) && (p.MaxDuration == 0 || took[i]+service <= p.MaxDuration)
			if fits && (to < 0 || load[i] > load[to]) && p.Dist(int(v), int(r[0])) <= p.Dist(0, int(r[0])) {
				to = i
			}
		}
		if to < 0 {
			to = len(out.Routes)
			out.Routes, load, took = append(out.Routes, nil), append(load, 0), append(took, 0)
		}
		out.Routes[to] = slices.Insert(out.Routes[to], 0, v)
		load[to] += demand
		took[to] += service
	}
	return out
}

// part takes the customers that move out of a route, where leaving one out makes it no longer.
func (p *Problem) part(route []int32, moves []bool) (kept, gone []int32) {
	last := 0
	for i, v := range route {
		next := 0
		if i+1 < len(route) {
			next = int(route[i+1])
		}
		if moves[v] && (last == next || p.Leg(last, next) <= p.Leg(last, int(v))+p.Leg(int(v), next)) {
			gone = append(gone, v)
			continue
		}
		kept = append(kept, v)
		last = int(v)
	}
	return kept, gone
}

// burden is what a route carries, and how long it takes.
func (p *Problem) burden(route []int32) (load int64, took float64) {
	last := 0
	for _, v := range route {
		load += int64(p.Demand[v])
		took += p.Leg(last, int(v))
		if p.Service != nil {
			took += p.Service[v]
		}
		last = int(v)
	}
	return load, took + p.Leg(last, 0)
}
