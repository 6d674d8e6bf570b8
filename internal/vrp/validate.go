package vrp

// What a reader could break: this is the validator. It shares nothing with the code that makes
// routes (no masks, no carried loads, no costs) and looks only at what was visited, in order.

// validateTour checks one visit sequence: it starts and ends at the depot, visits every customer
// once, and no route between two depot visits carries more than the capacity. Repeated depot visits
// (padding) are empty routes and are allowed. The error is a *Violation.
func validateTour(tour, demand []int32, capacity int32) error {
	if len(tour) == 0 {
		return violation(StartsAtDepot, 0, 0, "the tour is empty: it must start and end at the depot")
	}
	if tour[0] != 0 {
		return violation(StartsAtDepot, tour[0], 0, "the tour starts at node %d, not at the depot", tour[0])
	}
	r := newReferee(demand, capacity)
	for _, node := range tour {
		if v := r.visit(node); v != nil {
			return v
		}
	}
	if end := len(tour) - 1; tour[end] != 0 {
		return violation(EndsAtDepot, tour[end], end, "the tour ends at customer %d (position %d), not at the depot", tour[end], end)
	}
	return r.finish()
}

// Validate checks a solution of a problem that passes Check; the depot at both ends of a route is
// implied, so a route that lists it is a violation, but where its vehicle reloads there. The error
// is the first *Violation; Violations lists all.
func Validate(p *Problem, s Solution) error {
	if p.Limited() != nil {
		if all := Violations(p, s); len(all) > 0 {
			return all[0]
		}
		return nil
	}
	r := newReferee(p.Demand, p.Capacity)
	for i, route := range s.Routes {
		if v := r.visit(0); v != nil {
			return v
		}
		for stop, node := range route {
			if node == 0 {
				return violation(RouteOfCustomers, 0, r.position, "route %d lists the depot as stop %d: routes list customers only", i+1, stop+1)
			}
			if v := r.visit(node); v != nil {
				return v
			}
		}
	}
	if v := r.visit(0); v != nil {
		return v
	}
	if err := r.finish(); err != nil {
		return err
	}
	return validateLimits(p, s)
}

// validateLimits checks what limits routes beside the capacity: how long one may take, and how many
// there may be.
func validateLimits(p *Problem, s Solution) error {
	used := 0
	for _, route := range s.Routes {
		if len(route) == 0 {
			continue
		}
		used++
		if p.Vehicles > 0 && used > p.Vehicles {
			return violation(WithinFleet, route[0], 0, "there are more routes than vehicles: route %d, %d vehicles", used, p.Vehicles)
		}
		if p.MaxDuration == 0 {
			continue
		}
		took, last := 0.0, int32(0)
		for _, v := range route {
			took += p.Dist(int(last), int(v))
			if p.Service != nil {
				took += p.Service[v]
			}
			last = v
		}
		if !p.Open {
			took += p.Dist(int(last), 0)
		}
		if took > p.MaxDuration*(1+durationSlack) {
			return violation(WithinDuration, last, 0, "route %d takes %.6g, the limit is %.6g", used, took, p.MaxDuration)
		}
	}
	return nil
}

// durationSlack forgives the rounding of a sum of float64 legs.
const durationSlack = 1e-9

// referee follows a vehicle from visit to visit.
type referee struct {
	demand   []int32
	capacity int64
	seen     []int // position of each customer's visit, 0 for none: position 0 is the depot's
	position int
	route    int
	load     int64
	out      bool // the vehicle has left the depot
}

func newReferee(demand []int32, capacity int32) *referee {
	return &referee{demand: demand, capacity: int64(capacity), seen: make([]int, len(demand))}
}

func (r *referee) visit(node int32) *Violation {
	at := r.position
	r.position++
	if node < 0 || int(node) >= len(r.demand) {
		return violation(KnownNode, node, at, "node %d at position %d does not exist: nodes are 0 to %d", node, at, len(r.demand)-1)
	}
	if node == 0 {
		r.load, r.out = 0, false
		return nil
	}
	if !r.out {
		r.out = true
		r.route++
	}
	if first := r.seen[node]; first != 0 {
		return violation(VisitedOnce, node, at, "customer %d visited twice: positions %d and %d", node, first, at)
	}
	r.seen[node] = at
	if r.load += int64(r.demand[node]); r.load > r.capacity {
		return violation(WithinCapacity, node, at, "route %d carries %d, capacity %d (at customer %d)", r.route, r.load, r.capacity, node)
	}
	return nil
}

// finish returns an error, not a *Violation: a nil pointer in an interface would not be nil.
func (r *referee) finish() error {
	for node := 1; node < len(r.seen); node++ {
		if r.seen[node] == 0 {
			return violation(VisitedAtAll, int32(node), r.position, "customer %d is never visited", node)
		}
	}
	return nil
}
