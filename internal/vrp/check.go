package vrp

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"haul/internal/schema"
)

// Checks of a problem before it is solved, written or validated. What a reader could break:
// every solver indexes slices and matrices by place without checking again, so each shape is
// checked here. Messages name a place as its file does.
//
// Check looks at the data, not at whether routes exist: Unservable names customers that no
// vehicle can serve, except in plain problems, where one comparison is enough.

// Check says in one line what makes the problem impossible to solve, or nil.
func (p *Problem) Check() error {
	for _, check := range []func() error{p.checkShapes, p.checkPlaces, p.checkDistances, p.checkLimits,
		p.checkWindows, p.checkTimes, p.checkDimensions, p.checkFleet, p.checkGroups, p.checkShipments, p.checkRules, p.checkSums} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// called is a place in words: by its id in the file, or its number.
func (p *Problem) called(v int) string {
	kind := "customer"
	if v < p.DepotCount() {
		if p.DepotCount() == 1 {
			return "the depot"
		}
		kind = "depot"
	}
	if p.IDs != nil {
		return kind + " " + quoteShort(p.IDs[v])
	}
	return fmt.Sprintf("%s %d", kind, v)
}

// PlaceError is a fault of one place: a reader of files can say where it was given.
type PlaceError struct {
	Node   int
	Called string // how the error names the place
	err    error
}

func (e *PlaceError) Error() string { return e.err.Error() }

// Unwrap is the fault.
func (e *PlaceError) Unwrap() error { return e.err }

func (p *Problem) fault(v int, format string, args ...any) error {
	return &PlaceError{v, p.called(v), fmt.Errorf(format, args...)}
}

// checkShapes checks the length of every slice by place.
func (p *Problem) checkShapes() error {
	n := len(p.Demand)
	if p.Depots < 0 {
		return fmt.Errorf("the number of depots is %d: expected at least 1", p.Depots)
	}
	if p.N() < 1 {
		return fmt.Errorf("the problem has no customers")
	}
	v := reflect.ValueOf(p).Elem()
	for _, part := range schema.Of(schema.Place) {
		if list := v.FieldByName(part.Fields[0]); part.Type != schema.Point && list.Len() != 0 && list.Len() != n {
			return fmt.Errorf("%d %s for %d nodes", list.Len(), part.Name, n)
		}
	}
	if p.Fractions != nil && len(p.Fractions) != 1+len(p.Dimensions) {
		return fmt.Errorf("%d fractions for %d dimensions of load", len(p.Fractions), 1+len(p.Dimensions))
	}
	for _, f := range p.Fractions {
		if f < 1 {
			return fmt.Errorf("amounts are cut into %d parts: expected at least 1", f)
		}
	}
	if !(p.Clock >= 0 && p.Clock <= math.MaxInt32) {
		return fmt.Errorf("a minute has %g units of time", p.Clock)
	}
	for _, d := range p.Dimensions {
		for _, a := range [][]int32{d.Delivery, d.Pickup} {
			if a != nil && len(a) != n {
				return fmt.Errorf("%d amounts of %s for %d nodes", len(a), quoteShort(d.Name), n)
			}
		}
	}
	return nil
}

// checkPlaces checks demands and coordinates.
func (p *Problem) checkPlaces() error {
	n := len(p.Demand)
	switch {
	case p.Fleet == nil && p.Capacity < 1:
		return fmt.Errorf("the capacity is %d: expected at least 1", p.Capacity)
	case (p.Metric != Explicit && p.Profiles == nil || p.X != nil || p.Y != nil) && (len(p.X) != n || len(p.Y) != n):
		return fmt.Errorf("%d x and %d y coordinates for %d nodes", len(p.X), len(p.Y), n)
	}
	for v, d := range p.Demand {
		if v < p.DepotCount() && d != 0 {
			return p.fault(v, "%s has demand %d: expected 0", p.called(v), d)
		}
		if d < 0 {
			return p.fault(v, "demand %d of %s is negative", d, p.called(v))
		}
		if p.Fleet == nil && d > p.Capacity {
			return p.fault(v, "demand %d of %s is over the capacity %d", d, p.called(v), p.Capacity)
		}
	}
	for v, d := range p.Pickup {
		if v < p.DepotCount() && d != 0 {
			return p.fault(v, "%s has a pickup of %d: expected 0", p.called(v), d)
		}
		if d < 0 {
			return p.fault(v, "pickup %d of %s is negative", d, p.called(v))
		}
		if p.Fleet == nil && d > p.Capacity {
			return p.fault(v, "pickup %d of %s is over the capacity %d", d, p.called(v), p.Capacity)
		}
	}
	for v := range p.X {
		if !(math.Abs(p.X[v])+math.Abs(p.Y[v]) <= math.MaxFloat64) {
			return fmt.Errorf("node %d has the coordinates (%g, %g)", v, p.X[v], p.Y[v])
		}
		if p.Metric == GreatCircle && (math.Abs(p.Y[v]) > 90 || math.Abs(p.X[v]) > 180) {
			return fmt.Errorf("node %d has longitude %g and latitude %g, outside ±180, ±90", v, p.X[v], p.Y[v])
		}
	}
	return nil
}

// checkDistances checks matrices: that of Explicit, and the profiles'.
func (p *Problem) checkDistances() error {
	n := len(p.Demand)
	if p.Metric < Exact || p.Metric > Att {
		return fmt.Errorf("there is no metric %d", p.Metric)
	}
	if p.Metric == Explicit && p.Profiles == nil {
		if len(p.Weights) != n*n {
			return fmt.Errorf("%d explicit distances for %d nodes: expected %d", len(p.Weights), n, n*n)
		}
		if err := p.checkMatrix("distance", p.Weights); err != nil {
			return err
		}
	}
	for i, f := range p.Profiles {
		name := fmt.Sprintf("profile %d", i)
		if f.Name != "" {
			name = "profile " + quoteShort(f.Name)
		}
		if len(f.Distance) != n*n {
			return fmt.Errorf("%s has %d distances for %d nodes: expected %d", name, len(f.Distance), n, n*n)
		}
		if f.Duration != nil && len(f.Duration) != n*n {
			return fmt.Errorf("%s has %d durations for %d nodes: expected %d", name, len(f.Duration), n, n*n)
		}
		if err := p.checkMatrix("distance", f.Distance); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := p.checkMatrix("duration", f.Duration); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if !(p.Speed >= 0 && p.Speed <= math.MaxFloat64) {
		return fmt.Errorf("the speed is %g: expected a number above 0", p.Speed)
	}
	return nil
}

func (p *Problem) checkMatrix(what string, m []float64) error {
	n := len(p.Demand)
	for i, w := range m {
		if !(w >= 0 && w <= math.MaxFloat64) {
			return fmt.Errorf("the %s from node %d to node %d is %g", what, i/n, i%n, w)
		}
	}
	return nil
}

// checkLimits checks what limits a route beside the capacity, where there is no fleet.
func (p *Problem) checkLimits() error {
	for v, s := range p.Service {
		if !(s >= 0 && s <= math.MaxFloat64) {
			return fmt.Errorf("the service time of node %d is %g", v, s)
		}
	}
	if !(p.MaxDuration >= 0 && p.MaxDuration <= math.MaxFloat64) {
		return fmt.Errorf("the limit of a route's duration is %g", p.MaxDuration)
	}
	if p.Vehicles < 0 {
		return fmt.Errorf("the fleet is %d vehicles: expected at least 1", p.Vehicles)
	}
	if p.Limited() != nil {
		return nil
	}
	if p.MaxDuration > 0 {
		for v := 1; v < len(p.Demand); v++ {
			need := p.Dist(0, v) + p.Leg(v, 0)
			if p.Service != nil {
				need += p.Service[v]
			}
			if need > p.MaxDuration {
				return p.fault(v, "%s alone takes %g there and back, the limit of a route is %g", p.called(v), need, p.MaxDuration)
			}
		}
	}
	return nil
}

// Shortage says in one line that a plain problem's vehicles together carry less than its customers
// demand, or nil. Routes of such a problem can still be validated: some customers stay without one.
func (p *Problem) Shortage() error {
	if p.Vehicles == 0 || p.Limited() != nil {
		return nil
	}
	var total int64
	for _, d := range p.Demand {
		total += int64(d)
	}
	if total <= int64(p.Vehicles)*int64(p.Capacity) {
		return nil
	}
	vehicles, carry := "vehicles", "carry"
	if p.Vehicles == 1 {
		vehicles, carry = "vehicle", "carries"
	}
	return fmt.Errorf("%d %s of capacity %d %s %d, the customers demand %d: at least %d vehicles are needed",
		p.Vehicles, vehicles, p.Capacity, carry, int64(p.Vehicles)*int64(p.Capacity), total, (total+int64(p.Capacity)-1)/int64(p.Capacity))
}

// checkWindows checks the windows of places, and that their times can be compared with distances.
func (p *Problem) checkWindows() error {
	for v, list := range p.Windows {
		if err := p.checkSpans(list); err != nil {
			return p.fault(v, "%s: %w", p.called(v), err)
		}
	}
	if p.Metric == GreatCircle && p.Profiles == nil && p.Speed == 0 && (p.Windows != nil || p.Release != nil) {
		return fmt.Errorf("its windows or release times are times and its distances metres: a speed is needed")
	}
	return nil
}

// checkTimes checks the numbers by place that are no times of service.
func (p *Problem) checkTimes() error {
	for _, s := range []struct {
		what   string
		values []float64
		depots bool // may have one
	}{{"setup time", p.Setup, false}, {"release time", p.Release, false}, {"prize", p.Prize, false}, {"price of lateness", p.Late, false}} {
		for v, x := range s.values {
			if !(x >= 0 && x <= math.MaxFloat64) {
				return p.fault(v, "the %s of %s is %g: expected a number from 0 on", s.what, p.called(v), x)
			}
			if v < p.DepotCount() && x != 0 {
				return p.fault(v, "%s has a %s of %g: expected 0", p.called(v), s.what, x)
			}
		}
	}
	for v := range p.DepotCount() {
		if p.Optional != nil && p.Optional[v] || p.Needs != nil && len(p.Needs[v]) > 0 || p.Priority != nil && p.Priority[v] != 0 {
			return p.fault(v, "%s is optional, needs a skill or has a priority: only customers can", p.called(v))
		}
	}
	for v, need := range p.Needs {
		for _, k := range need {
			if k < 0 {
				return p.fault(v, "%s needs skill %d: skills are numbers from 0 on", p.called(v), k)
			}
		}
	}
	return nil
}

// checkDimensions checks amounts of load beyond the first kind.
func (p *Problem) checkDimensions() error {
	for _, d := range p.Dimensions {
		for _, amounts := range [][]int32{d.Delivery, d.Pickup} {
			for v, a := range amounts {
				if a < 0 || v < p.DepotCount() && a != 0 {
					return fmt.Errorf("%s of %s is %d: expected a number from 0 on, and 0 at depots", quoteShort(d.Name), p.called(v), a)
				}
			}
		}
	}
	return nil
}

// checkGroups checks that groups are of customers, each in one group at most.
func (p *Problem) checkGroups() error {
	in := map[int32]int{}
	for i, g := range p.Groups {
		if len(g.Members) == 0 {
			return fmt.Errorf("group %d has no members", i+1)
		}
		for _, v := range g.Members {
			if !p.isCustomer(v) {
				return fmt.Errorf("group %d has member %d, which is no customer", i+1, v)
			}
			if j, twice := in[v]; twice {
				return fmt.Errorf("%s is in groups %d and %d", p.called(int(v)), j+1, i+1)
			}
			in[v] = i
		}
	}
	for i, s := range p.Shipments {
		for _, v := range []int32{s.Pickup, s.Delivery} {
			if g, ok := in[v]; ok {
				return fmt.Errorf("%s is in group %d and in shipment %d: expected one of them", p.called(int(v)), g+1, i+1)
			}
		}
	}
	return nil
}

// checkShipments checks that the two halves of a shipment agree.
func (p *Problem) checkShipments() error {
	in := map[int32]int{}
	for i, s := range p.Shipments {
		for _, v := range []int32{s.Pickup, s.Delivery} {
			if !p.isCustomer(v) {
				return fmt.Errorf("shipment %d has place %d, which is no customer", i+1, v)
			}
		}
		if s.Pickup == s.Delivery {
			return fmt.Errorf("shipment %d is picked up and delivered at %s", i+1, p.called(int(s.Pickup)))
		}
		for _, v := range []int32{s.Pickup, s.Delivery} {
			if j, twice := in[v]; twice {
				return fmt.Errorf("%s is in shipments %d and %d", p.called(int(v)), j+1, i+1)
			}
			in[v] = i
		}
		if len(s.Amount) > 1+len(p.Dimensions) {
			return fmt.Errorf("shipment %d has %d amounts for %d dimensions of load", i+1, len(s.Amount), 1+len(p.Dimensions))
		}
		for _, a := range s.Amount {
			if a < 0 {
				return fmt.Errorf("the amount of the shipment from %s to %s is %d", p.called(int(s.Pickup)), p.called(int(s.Delivery)), a)
			}
		}
		if p.Optional != nil && p.Optional[s.Pickup] != p.Optional[s.Delivery] {
			return fmt.Errorf("the halves of a shipment contradict: of %s and %s one is optional and one required", p.called(int(s.Pickup)), p.called(int(s.Delivery)))
		}
	}
	return nil
}

// checkRules checks the enumerated choices.
func (p *Problem) checkRules() error {
	if p.Backhauls < Mixed || p.Backhauls > LinehaulFirst {
		return fmt.Errorf("there is no rule %d of backhauls", p.Backhauls)
	}
	if p.Objective < MinCost || p.Objective > ShortestRoute {
		return fmt.Errorf("there is no objective %d", p.Objective)
	}
	if p.Backhauls != Mixed {
		for v := range p.Demand {
			if p.delivers(v) && p.picksUp(v) {
				return p.fault(v, "%s takes a delivery and has a pickup: with backhauls last it can have one of them", p.called(v))
			}
		}
	}
	return nil
}

// delivers tells whether a place is delivered anything from a depot.
func (p *Problem) delivers(v int) bool {
	return p.Demand[v] > 0 || slices.ContainsFunc(p.Dimensions, func(d Dimension) bool { return d.Delivery != nil && d.Delivery[v] > 0 })
}

// picksUp tells whether anything is picked up at a place for a depot.
func (p *Problem) picksUp(v int) bool {
	return p.Pickup != nil && p.Pickup[v] > 0 || slices.ContainsFunc(p.Dimensions, func(d Dimension) bool { return d.Pickup != nil && d.Pickup[v] > 0 })
}
