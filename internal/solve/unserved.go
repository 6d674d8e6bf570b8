package solve

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"haul/internal/vrp"
)

// Why customers are not served. What a reader could break: a reason is what the validator says of
// routes with the customer in them, and no guess about the solver.

// A customer is tried in every place of the routes that come nearest to it. These bound the work,
// so that it takes a fraction of a second whatever the problem; customers beyond them get the
// reason of routes of their own.
const (
	nearRoutes  = 4
	mostReasons = 200
	mostTrials  = 4_000
)

// left lists the customers on no route, in order.
func left(p *vrp.Problem, s vrp.Solution) []int32 {
	served := make([]bool, len(p.Demand))
	for _, r := range s.Routes {
		for _, v := range r {
			served[v] = true
		}
	}
	var out []int32
	for v := p.DepotCount(); v < len(served); v++ {
		if !served[v] {
			out = append(out, int32(v))
		}
	}
	return out
}

// missing are those of them that are required: neither optional, nor in a group, of which one
// stands for the others.
func missing(p *vrp.Problem, list []int32) (out []int32) {
	grouped := members(p)
	for _, v := range list {
		if !grouped[v] && (p.Optional == nil || !p.Optional[v]) {
			out = append(out, v)
		}
	}
	return out
}

// members is who is in a group.
func members(p *vrp.Problem) []bool {
	in := make([]bool, len(p.Demand))
	for _, g := range p.Groups {
		for _, v := range g.Members {
			in[v] = true
		}
	}
	return in
}

// relaxed is the problem without the duty to serve some customers, for judging what was served.
func relaxed(p *vrp.Problem, without []int32) *vrp.Problem {
	if len(without) == 0 {
		return p
	}
	q := *p
	q.Optional = make([]bool, len(p.Demand))
	copy(q.Optional, p.Optional)
	for _, v := range without {
		q.Optional[v] = true
	}
	return &q
}

// Reasons says of customers on no route why, as far as the validator can tell: what keeps them from
// a route of their own, else the least of what would break in the place that comes nearest.
func Reasons(p *vrp.Problem, s vrp.Solution) map[int32]string {
	return reasons(p, s, time.Time{})
}

// late is whether the clock has passed a moment; the zero one never comes.
func late(until time.Time) bool { return !until.IsZero() && time.Now().After(until) }

// reasons is Reasons that tries no more customers from a moment on.
func reasons(p *vrp.Problem, s vrp.Solution, until time.Time) map[int32]string {
	list := left(p, s)
	if len(list) == 0 {
		return nil
	}
	why := map[int32]string{}
	for _, u := range p.UnservableOf(list) {
		_, reason, _ := strings.Cut(u.Reason, ": ")
		why[u.Customer] = reason
		if other, ok := partner(p, u.Customer); ok {
			why[other] = reason
		}
	}
	duty := missing(p, list)
	needed, grouped := map[int32]bool{}, members(p)
	for _, v := range duty {
		needed[v] = true
	}
	trials, validator := 0, vrp.NewRouteValidator(p)
	for i, v := range list {
		switch {
		case why[v] != "":
		case !needed[v] && grouped[v]:
			why[v] = "another one of its group is visited"
		case !needed[v]:
			why[v] = "it costs more than its prize"
		case i < mostReasons && trials < mostTrials && !late(until):
			why[v] = nearest(validator, p, s, v, &trials)
		default:
			why[v] = "no place was found for it beside the others; which limit binds was not tried"
		}
	}
	return why
}

// partner is the other half of a customer's shipment.
func partner(p *vrp.Problem, v int32) (int32, bool) {
	for _, s := range p.Shipments {
		switch v {
		case s.Pickup:
			return s.Delivery, true
		case s.Delivery:
			return s.Pickup, true
		}
	}
	return 0, false
}

// places tries the customer in every place of the routes near it, and on a vehicle that has none:
// try is told the route with it, the vehicle's type and which of the solution's routes it is, -1
// for a new one.
func places(p *vrp.Problem, s vrp.Solution, v int32, trials *int, try func(route []int32, kind, at int)) {
	types, used := p.Types(), make([]int, len(p.Types()))
	for i := range s.Routes {
		used[typeOf(s, i)]++
	}
	other, paired := partner(p, v)
	if paired && isDelivery(p, v) {
		v, other = other, v
	}
	counted := func(route []int32, kind, at int) {
		*trials++
		try(route, kind, at)
	}
	for _, i := range routesNear(p, s, v) {
		r := s.Routes[i]
		for k := 0; k <= len(r) && *trials < mostTrials; k++ {
			with := slices.Insert(slices.Clone(r), k, v)
			if !paired {
				counted(with, typeOf(s, i), i)
				continue
			}
			for m := k + 1; m <= len(with) && *trials < mostTrials; m++ {
				counted(slices.Insert(slices.Clone(with), m, other), typeOf(s, i), i)
			}
		}
	}
	for kind, t := range types {
		if t.Count == 0 || used[kind] < t.Count {
			alone := []int32{v}
			if paired {
				alone = append(alone, other)
			}
			counted(alone, kind, -1)
		}
	}
}

// nearest tells of the place where the least breaks.
func nearest(validator *vrp.RouteValidator, p *vrp.Problem, s vrp.Solution, v int32, trials *int) string {
	least, reason := math.Inf(1), "no vehicle is left for it"
	places(p, s, v, trials, func(route []int32, kind, _ int) {
		sum, first := 0.0, ""
		for _, broken := range validator.Violations(route, kind) {
			sum += broken.By
			if first == "" {
				first = broken.Error()
			}
		}
		if first == "" && least > 0 {
			least, reason = 0, "it would fit, and the time was too short to find that: give it more time"
		}
		if sum < least {
			_, text, _ := strings.Cut(first, ": ")
			least, reason = sum, "in the place that comes nearest, "+text
		}
	})
	return reason
}

// fit inserts required customers that the validator allows in: a search in fixed
// point cannot tell a limit that is touched to the last digit from one that is broken, and one
// that was short may have overlooked them. Each goes where its ways cost least of the places that
// are tried.
func fit(p *vrp.Problem, s vrp.Solution, until time.Time) vrp.Solution {
	trials, validator := 0, vrp.NewRouteValidator(p)
	types := p.Types()
	ways := func(route []int32, kind int) (sum float64) { // what its ways cost, without a walk over all places
		t := &types[kind]
		last := t.Start
		for _, v := range append(slices.Clip(route), int32(t.End)) {
			if last != vrp.None && v != vrp.None {
				sum += p.DistanceOf(t.Profile, last, int(v))
			}
			last = int(v)
		}
		return sum * max(t.DistanceCost, 1e-9)
	}
	for i, v := range missing(p, left(p, s)) {
		if i >= mostReasons || trials >= mostTrials || i > 0 && late(until) {
			break
		}
		if slices.ContainsFunc(s.Routes, func(r []int32) bool { return slices.Contains(r, v) }) {
			continue // with the other half of its shipment
		}
		least, best, of, to := math.Inf(1), []int32(nil), 0, -1
		places(p, s, v, &trials, func(route []int32, kind, at int) {
			if len(validator.Violations(route, kind)) > 0 {
				return
			}
			cost := ways(route, kind)
			if at >= 0 {
				cost -= ways(s.Routes[at], kind)
			} else {
				cost += types[kind].FixedCost
			}
			if cost < least {
				least, best, of, to = cost, route, kind, at
			}
		})
		switch {
		case best == nil:
		case to >= 0:
			s.Routes = slices.Clone(s.Routes)
			s.Routes[to] = best
		default:
			if s.Types == nil && len(p.Types()) > 1 {
				s.Types = make([]int32, len(s.Routes))
			}
			if s.Routes = append(slices.Clip(s.Routes), best); s.Types != nil {
				s.Types = append(slices.Clip(s.Types), int32(of))
			}
		}
	}
	return s
}

// routesNear are the routes that come nearest to a customer, the nearest first: on the map, where
// there is one, which is quicker than by its distances.
func routesNear(p *vrp.Problem, s vrp.Solution, v int32) []int {
	types, list := p.Types(), make([]int, len(s.Routes))
	far := make([]float64, len(s.Routes))
	flat := p.Profiles == nil && p.Metric != vrp.Explicit && p.Metric != vrp.GreatCircle
	for i, r := range s.Routes {
		list[i], far[i] = i, math.Inf(1)
		for _, u := range r {
			if flat {
				dx, dy := p.X[u]-p.X[v], p.Y[u]-p.Y[v]
				far[i] = min(far[i], float64(dx*dx)+float64(dy*dy))
			} else {
				far[i] = min(far[i], p.DistanceOf(types[typeOf(s, i)].Profile, int(u), int(v)))
			}
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(far[a], far[b]) })
	return list[:min(nearRoutes, len(list))]
}

func isDelivery(p *vrp.Problem, v int32) bool {
	return slices.ContainsFunc(p.Shipments, func(s vrp.Shipment) bool { return s.Delivery == v })
}

func typeOf(s vrp.Solution, route int) int {
	if s.Types == nil {
		return 0
	}
	return int(s.Types[route])
}
