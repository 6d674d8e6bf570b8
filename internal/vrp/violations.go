package vrp

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// The validator of problems with any constraints. What a reader could break: it checks the given
// routes with Evaluate's clock and loads, and asks no solver. Each rule reports where it is
// broken and by how much; one broken rule hides no other.

// Violations lists every rule that a solution breaks, in the order of the routes; nil: it is valid.
// The problem must pass Check.
func Violations(p *Problem, s Solution) []*Violation {
	r := &report{evaluator: newEvaluator(p)}
	if v := r.known(s); v != nil {
		return []*Violation{v}
	}
	seen := make([]int, len(p.Demand)) // 1 + the route that serves it first
	for i, route := range s.Routes {
		if len(route) > 0 {
			r.route(i, route, typeOf(s, i), seen)
		}
	}
	r.fleet(s)
	r.missing(seen)
	return r.list
}

// RouteValidator checks single routes of a problem, without asking who is on none: for trying many.
// It is not safe for concurrent use.
type RouteValidator struct {
	evaluator *evaluator
	seen      []int
}

// NewRouteValidator makes one for a problem that passes Check.
func NewRouteValidator(p *Problem) *RouteValidator {
	return &RouteValidator{newEvaluator(p), make([]int, len(p.Demand))}
}

// Violations lists every rule that a route of existing places breaks by itself, driven by a vehicle
// of a type.
func (j *RouteValidator) Violations(route []int32, kind int) []*Violation {
	r := &report{evaluator: j.evaluator}
	r.route(0, route, kind, j.seen)
	for _, v := range route {
		j.seen[v] = 0
	}
	return r.list
}

type report struct {
	*evaluator
	list []*Violation
}

func (r *report) add(rule Rule, route int, place int32, by float64, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if route > 0 {
		text = fmt.Sprintf("route %d: %s", route, text)
	}
	r.list = append(r.list, &Violation{Rule: rule, Node: place, Route: route, By: by, text: text})
}

// num prints a time or an amount without the noise of its last bits.
func num(x float64) string { return strconv.FormatFloat(x, 'g', 10, 64) }

// route checks one route.
func (r *report) route(i int, route []int32, kind int, seen []int) {
	p, t, number := r.p, &r.types[kind], i+1
	stops, reloads := 0, 0
	for _, v := range route {
		if int(v) < p.DepotCount() {
			reloads++
			if !slices.Contains(t.Reloads, int(v)) {
				r.add(RouteOfCustomers, number, v, 1, "lists %s, where its vehicle does not reload: the depots at a route's ends are implied", p.called(int(v)))
			}
			continue
		}
		stops++
		if first := seen[v]; first > 0 {
			r.add(VisitedOnce, number, v, 1, "%s is visited twice, first by route %d", p.called(int(v)), first)
		} else {
			seen[v] = number
		}
		if t.Allowed != nil && !slices.Contains(t.Allowed, v) {
			r.add(AllowedCustomer, number, v, 1, "%s may not be served by its vehicle", p.called(int(v)))
		}
		if p.Needs != nil {
			for _, k := range p.Needs[v] {
				if !slices.Contains(t.Skills, k) {
					r.add(Skilled, number, v, 1, "%s needs skill %s, which its vehicle does not have", p.called(int(v)), p.skill(k))
				}
			}
		}
	}
	if t.MaxStops > 0 && stops > t.MaxStops {
		r.add(WithinStops, number, None, float64(stops-t.MaxStops), "it has %d stops, the limit is %d", stops, t.MaxStops)
	}
	if t.MaxReloads > 0 && t.Reloads != nil && reloads > t.MaxReloads {
		r.add(WithinReloads, number, None, float64(reloads-t.MaxReloads), "it reloads %d times, the limit is %d", reloads, t.MaxReloads)
	}
	r.order(number, route)
	r.times(number, r.plan(route, kind), t)
}

// times checks what the plan of a route shows: windows, shift, breaks, loads and limits.
func (r *report) times(number int, plan planned, t *VehicleType) {
	p := r.p
	for _, v := range plan.never {
		r.add(WithinShift, number, v, 0, "%s is never open within the vehicle's shift", p.called(int(v)))
	}
	for i, s := range plan.Stops {
		if s.Warp <= slackOf(s.Arrival) {
			continue
		}
		if i == 0 && t.Start != None {
			r.add(WithinShift, number, s.Place, s.Warp, "it can leave %s at %s, and must by %s: late by %s", p.called(int(s.Place)), p.TimeText(s.Arrival), p.TimeText(s.Begin), p.SpanText(s.Warp))
			continue
		}
		rule, limit := WithinWindow, "its window closes at"
		if i == len(plan.Stops)-1 && t.End != None && s.Begin >= t.Shift.To {
			rule, limit = WithinShift, "the shift ends at"
		}
		r.add(rule, number, s.Place, s.Warp, "%s is reached at %s, %s %s: late by %s", p.called(int(s.Place)), p.TimeText(s.Arrival), limit, p.TimeText(s.Begin), p.SpanText(s.Warp))
	}
	if plan.missing > 0 {
		r.add(BreakTaken, number, None, float64(plan.missing), "%d of its breaks find no place", plan.missing)
	}
	for _, trip := range plan.trips {
		for d, l := range trip.most {
			if d < len(t.Capacity) && l > int64(t.Capacity[d]) {
				what := ""
				if d > 0 {
					what = " of " + quoteShort(p.Dimensions[d-1].Name)
				}
				r.add(WithinCapacity, number, trip.at, float64(l-int64(t.Capacity[d])), "it carries %s%s, the capacity is %s (behind %s)", num(p.Amount(d, l)), what, num(p.Amount(d, int64(t.Capacity[d]))), p.called(int(trip.at)))
			}
		}
	}
	if d := plan.Duration - plan.Warp; d > t.MaxDuration+slackOf(t.MaxDuration) {
		r.add(WithinDuration, number, None, d-t.MaxDuration, "it takes %s, the limit is %s", p.SpanText(d), p.SpanText(t.MaxDuration))
	}
	if plan.Distance > t.MaxDistance+slackOf(t.MaxDistance) {
		r.add(WithinDistance, number, None, plan.Distance-t.MaxDistance, "it is %s long, the limit is %s", num(plan.Distance), num(t.MaxDistance))
	}
}

// order checks the order of stops: backhauls, and shipments.
func (r *report) order(number int, route []int32) {
	p := r.p
	back, begun := int32(None), false // the trip's first pickup, and whether anybody was served before
	var aboard []int32                // shipments on board, which stay there through a reload
	for _, v := range route {
		if int(v) < p.DepotCount() {
			back, begun = None, false
			continue
		}
		if p.Backhauls != Mixed {
			switch {
			case p.picksUp(int(v)):
				if p.Backhauls == LinehaulFirst && !begun {
					r.add(BackhaulOrder, number, v, 1, "it begins with %s, a pickup: a delivery comes first", p.called(int(v)))
				}
				back = v
			case p.delivers(int(v)) && back != None:
				r.add(BackhaulOrder, number, v, 1, "%s is delivered after the pickup at %s: pickups come last", p.called(int(v)), p.called(int(back)))
			}
		}
		begun = true
		if r.ship == nil || r.ship[v] == 0 {
			continue
		}
		n := r.ship[v]
		if n > 0 {
			aboard = append(aboard, n)
			continue
		}
		at := slices.Index(aboard, -n)
		from := p.Shipments[-n-1].Pickup
		switch {
		case at < 0:
			r.add(PairOrder, number, v, 1, "%s is delivered what was not picked up before, at %s", p.called(int(v)), p.called(int(from)))
			continue
		case p.LIFO && at != len(aboard)-1:
			over := p.Shipments[aboard[len(aboard)-1]-1].Pickup
			r.add(LastInFirstOut, number, v, 1, "%s is delivered before what was picked up later, at %s", p.called(int(v)), p.called(int(over)))
		}
		aboard = slices.Delete(aboard, at, at+1)
	}
	for _, n := range aboard {
		s := p.Shipments[n-1]
		r.add(PairOrder, number, s.Pickup, 1, "what is picked up at %s is not delivered at %s in the same route", p.called(int(s.Pickup)), p.called(int(s.Delivery)))
	}
}

// fleet checks how many vehicles of each type are used.
func (r *report) fleet(s Solution) {
	used := make([]int, len(r.types))
	for i, route := range s.Routes {
		if len(route) == 0 {
			continue
		}
		k := typeOf(s, i)
		used[k]++
		if count := r.types[k].Count; count > 0 && used[k] == count+1 {
			name := ""
			if len(r.types) > 1 {
				name = fmt.Sprintf(" of type %d", k)
			}
			r.add(WithinFleet, i+1, None, 1, "there are more routes than vehicles%s: %d vehicles", name, count)
		}
	}
}

// missing checks who is not served.
func (r *report) missing(seen []int) {
	p := r.p
	grouped := make([]bool, len(seen))
	for i, g := range p.Groups {
		visited := 0
		for _, v := range g.Members {
			grouped[v] = true
			if seen[v] > 0 {
				if visited++; visited > 1 {
					r.add(GroupOnce, seen[v], v, 1, "%s is a second one of group %d, of which one is visited", p.called(int(v)), i+1)
				}
			}
		}
		if g.Required && visited == 0 {
			r.add(GroupServed, 0, g.Members[0], 1, "nobody of group %d is visited (%s is one of it)", i+1, p.called(int(g.Members[0])))
		}
	}
	for v := p.DepotCount(); v < len(seen); v++ {
		if seen[v] == 0 && !grouped[v] && (p.Optional == nil || !p.Optional[v]) {
			r.add(VisitedAtAll, 0, int32(v), 1, "%s is never visited", p.called(v))
		}
	}
	for _, s := range p.Shipments {
		if a, b := seen[s.Pickup], seen[s.Delivery]; (a > 0) != (b > 0) && p.Optional != nil && p.Optional[s.Pickup] {
			v, other := s.Pickup, s.Delivery
			if a == 0 {
				v, other = other, v
			}
			r.add(PairOrder, seen[v], v, 1, "%s is visited and the other half of its shipment, %s, is not", p.called(int(v)), p.called(int(other)))
		}
	}
}

// Unservable is a customer that no vehicle serves, even alone, and why.
type Unservable struct {
	Customer int32
	Reason   string // of the vehicle type that comes nearest
}

// UnservableOf lists those of some customers that no vehicle type can serve on a route of their own
// (with the other half of their shipment, which is listed by its pickup): no solver can serve them
// where the ways obey the triangle inequality.
func (p *Problem) UnservableOf(customers []int32) []Unservable {
	j := newEvaluator(p)
	seen := make([]int, len(p.Demand))
	var out []Unservable
	for _, v := range customers {
		route := []int32{v}
		if j.ship != nil && j.ship[v] != 0 {
			if j.ship[v] < 0 {
				continue // told with its pickup
			}
			route = append(route, p.Shipments[j.ship[v]-1].Delivery)
		}
		if why := j.alone(route, seen); why != "" {
			out = append(out, Unservable{v, p.called(int(v)) + ": " + why})
		}
	}
	return out
}

// alone says why no type can drive a route, "" where one can. seen is scratch, all zero before and
// after.
func (j *evaluator) alone(route []int32, seen []int) string {
	least, why := math.Inf(1), ""
	for kind := range j.types {
		r := &report{evaluator: j}
		r.route(0, route, kind, seen)
		for _, v := range route {
			seen[v] = 0
		}
		if len(r.list) == 0 {
			return ""
		}
		var sum float64
		for _, v := range r.list {
			sum += v.By
			if v.Rule == Skilled || v.Rule == AllowedCustomer || v.Rule == BackhaulOrder {
				sum += 1e12 // no vehicle that may serve it comes after one that may
			}
		}
		if sum < least {
			least, why = sum, r.list[0].text[len("route 1: "):]
		}
	}
	return "no vehicle can serve it: " + why
}
