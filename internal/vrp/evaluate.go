package vrp

import (
	"fmt"
	"math"
)

// The costs and times of routes. What a reader could break: Evaluate shares nothing with any
// solver, and every cost that is printed or compared comes from here (or, for a plain problem,
// from Cost's loop, which gives the same).

// Stop is one visit of a route, the depots at its ends included.
type Stop struct {
	Place    int32
	Rest     bool    // a break, at the place of the stop before or behind it
	Trip     int     // from 1; a reload begins the next
	Distance float64 // from the stop before
	Arrival  float64
	Wait     float64 // from arrival to begin
	Begin    float64 // of service
	Depart   float64 // end of service
	Late     float64 // past a window with a price
	Warp     float64 // past a window without one: a violation
	Slack    float64 // how much later it could begin with every later stop still in time; +Inf: nothing limits it
	Load     []int64 // per dimension, on board behind it
}

// RoutePlan is a route with its times and costs.
type RoutePlan struct {
	Type      int // index into Types()
	Stops     []Stop
	Customers int
	Reloads   int
	Distance  float64
	Start     float64 // leaves
	End       float64
	Duration  float64 // time warp included
	Wait      float64
	Warp      float64
	Late      float64
	Load      []int64 // per dimension: the most on board
	Cost      float64 // fixed, distance, duration and lateness at their prices
}

// Evaluation is a solution with its times and costs.
type Evaluation struct {
	Routes   []RoutePlan // those that visit anybody, in the solution's order
	Index    []int       // of each in the solution's routes
	Unserved []int32     // customers on no route

	Distance, Duration float64
	Fixed              float64 // costs of vehicles
	Travel             float64 // distance at its prices
	Time               float64 // duration at its prices
	Lateness           float64 // at its prices
	Lost               float64 // prizes of the unserved
	Cost               float64 // of all five
	Longest            float64 // the longest route's duration
}

// Better tells whether a solution is better than another by an objective; costs within rounding are
// equal.
func (e *Evaluation) Better(than *Evaluation, o Objective) bool {
	switch {
	case o == FewestVehicles && len(e.Routes) != len(than.Routes):
		return len(e.Routes) < len(than.Routes)
	case o == ShortestRoute && math.Abs(e.Longest-than.Longest) > slackOf(e.Longest):
		return e.Longest < than.Longest
	}
	return e.Cost < than.Cost-slackOf(e.Cost)
}

// Evaluate computes times and costs of a solution of a problem that passes Check. It fails where
// the solution names a place or a vehicle type that does not exist; what else is wrong is
// Validate's to say.
func Evaluate(p *Problem, s Solution) (*Evaluation, error) {
	return newEvaluator(p).evaluate(s)
}

// evaluator has what judging routes of one problem needs.
type evaluator struct {
	p     *Problem
	types []VehicleType
	dims  int
	ship  []int32 // by place: 1 + index of the shipment picked up there, or minus that of the one delivered
}

func newEvaluator(p *Problem) *evaluator {
	j := &evaluator{p: p, types: p.Types(), dims: 1 + len(p.Dimensions)}
	if p.Shipments != nil {
		j.ship = make([]int32, len(p.Demand))
		for i, s := range p.Shipments {
			j.ship[s.Pickup], j.ship[s.Delivery] = int32(i+1), -int32(i+1)
		}
	}
	return j
}

// known checks that places and types exist.
func (j *evaluator) known(s Solution) *Violation {
	if s.Types != nil && len(s.Types) != len(s.Routes) {
		return &Violation{Rule: KnownType, Node: None, text: fmt.Sprintf("%d routes with %d vehicle types", len(s.Routes), len(s.Types))}
	}
	for i, r := range s.Routes {
		if s.Types != nil && (s.Types[i] < 0 || int(s.Types[i]) >= len(j.types)) {
			return &Violation{Rule: KnownType, Node: None, Route: i + 1, text: fmt.Sprintf("route %d has vehicle type %d: types are 0 to %d", i+1, s.Types[i], len(j.types)-1)}
		}
		for at, v := range r {
			if v < 0 || int(v) >= len(j.p.Demand) {
				return &Violation{Rule: KnownNode, Node: v, Route: i + 1, Position: at, text: fmt.Sprintf("route %d: node %d does not exist: nodes are 0 to %d", i+1, v, len(j.p.Demand)-1)}
			}
		}
	}
	return nil
}

func typeOf(s Solution, route int) int {
	if s.Types == nil {
		return 0
	}
	return int(s.Types[route])
}

func (j *evaluator) evaluate(s Solution) (*Evaluation, error) {
	if v := j.known(s); v != nil {
		return nil, v
	}
	e := &Evaluation{}
	served := make([]bool, len(j.p.Demand))
	for i, r := range s.Routes {
		if len(r) == 0 {
			continue
		}
		plan := j.plan(r, typeOf(s, i)).RoutePlan
		for _, v := range r {
			served[v] = true
		}
		t := &j.types[plan.Type]
		e.Routes, e.Index = append(e.Routes, plan), append(e.Index, i)
		e.Distance += plan.Distance
		e.Duration += plan.Duration
		e.Fixed += t.FixedCost
		e.Travel += plan.Distance * t.DistanceCost
		e.Time += plan.Duration * t.DurationCost
		e.Longest = max(e.Longest, plan.Duration)
		for _, stop := range plan.Stops {
			if stop.Late > 0 {
				e.Lateness += stop.Late * j.p.Late[stop.Place]
			}
		}
	}
	for v := j.p.DepotCount(); v < len(served); v++ {
		if !served[v] {
			e.Unserved = append(e.Unserved, int32(v))
			if j.p.Prize != nil {
				e.Lost += j.p.Prize[v]
			}
		}
	}
	e.Cost = e.Fixed + e.Travel + e.Time + e.Lateness + e.Lost
	return e, nil
}

// planned is a route's plan and what only the validator asks for.
type planned struct {
	RoutePlan
	never   []int32 // depots that are closed all the time that the shift leaves
	missing int     // breaks that found no place
	trips   []trip
}

// trip is what a vehicle carries from one depot to the next.
type trip struct {
	most []int64 // per dimension, at its fullest
	at   int32   // the place behind which it is fullest in the first dimension that is too full
}

// plan computes a route's times, loads and costs.
func (j *evaluator) plan(route []int32, kind int) planned {
	p, t := j.p, &j.types[kind]
	list, never := p.sequence(t, route)
	carried, trips := j.loads(t, list)
	with, taken := rests(list, t.Breaks, carried)
	duration, warp := begin(with)
	out := planned{never: never, missing: len(t.Breaks) - taken, trips: trips}
	plan := &out.RoutePlan
	plan.Type, plan.Duration, plan.Warp = kind, duration, warp
	plan.Start, plan.End = with[0].begin+with[0].warp, with[len(with)-1].end()
	plan.Load = make([]int64, j.dims)
	at, number := -1, 1
	for i := range with {
		v := &with[i]
		stop := Stop{Place: v.place, Rest: v.rest >= 0, Arrival: v.arrival, Wait: max(0, v.begin-v.arrival), Begin: v.begin, Depart: v.end(), Late: v.late, Warp: v.warp}
		if v.warp > 0 {
			stop.Wait = 0
		}
		if p.Late != nil && p.Late[v.place] > 0 && v.rest < 0 {
			stop.Late = p.lateAt(int(v.place), v.begin)
		}
		if i > 0 {
			stop.Distance = p.DistanceOf(t.Profile, int(with[i-1].place), int(v.place))
		} else {
			stop.Wait = 0
		}
		if v.rest < 0 {
			at++
			inner := (t.Start == None || at > 0) && (t.End == None || at < len(list)-1)
			switch {
			case inner && int(v.place) < p.DepotCount():
				plan.Reloads++
				number++
			case inner:
				plan.Customers++
			}
		}
		stop.Load, stop.Trip = carried[max(at, 0)], number
		plan.Distance += stop.Distance
		plan.Wait += stop.Wait
		plan.Late += stop.Late
		plan.Cost += stop.Late * j.price(v.place)
		plan.Stops = append(plan.Stops, stop)
	}
	for _, trip := range trips {
		for d, l := range trip.most {
			plan.Load[d] = max(plan.Load[d], l)
		}
	}
	plan.Cost += t.FixedCost + plan.Distance*t.DistanceCost + plan.Duration*t.DurationCost
	slacks(with, plan, t)
	return out
}

func (j *evaluator) price(v int32) float64 {
	if j.p.Late == nil {
		return 0
	}
	return j.p.Late[v]
}

// lateAt is how far past its windows a service begins.
func (p *Problem) lateAt(v int, begin float64) float64 {
	if p.Windows == nil || len(p.Windows[v]) == 0 {
		return 0
	}
	close := p.Windows[v][len(p.Windows[v])-1].To
	if begin <= close+slackOf(close) {
		return 0
	}
	return begin - close
}

// slacks sets how much later each stop could begin: by the windows from there on, and by what the
// route's duration may still grow, behind which waiting absorbs delay.
func slacks(list []visit, plan *RoutePlan, t *VehicleType) {
	latest, waits := math.Inf(1), 0.0
	for i := len(list) - 1; i >= 0; i-- {
		v := &list[i]
		latest = min(latest, v.to)
		slack := min(latest-v.begin, max(0, t.MaxDuration-plan.Duration)+waits)
		if i == 0 { // a later start makes no longer route
			slack = latest - v.begin
		}
		plan.Stops[i].Slack = max(0, slack)
		waits += plan.Stops[i].Wait
		if i > 0 {
			latest -= v.travel + list[i-1].service
		}
	}
}

// loads computes what is on board behind each visit, and the most on board of each trip. A trip's
// deliveries are loaded at its beginning and its pickups unloaded at its end.
func (j *evaluator) loads(t *VehicleType, list []visit) (behind [][]int64, trips []trip) {
	p := j.p
	amount := func(v int32, d int, pickup bool) int64 {
		from := p.Demand
		if d > 0 {
			from = p.Dimensions[d-1].Delivery
		}
		if pickup {
			from = p.Pickup
			if d > 0 {
				from = p.Dimensions[d-1].Pickup
			}
		}
		if from == nil {
			return 0
		}
		return int64(from[v])
	}
	depot := func(i int) bool { return int(list[i].place) < p.DepotCount() }
	shipped := make([]int64, j.dims) // on board for shipments
	load := make([]int64, j.dims)
	behind = make([][]int64, len(list))
	loadTrip := func(from int) { // whose customers begin there
		copy(load, shipped)
		if from <= 1 && len(trips) == 0 {
			for d := range min(len(t.InitialLoad), j.dims) {
				load[d] += int64(t.InitialLoad[d])
			}
		}
		for i := from; i < len(list) && !depot(i); i++ {
			for d := range load {
				load[d] += amount(list[i].place, d, false)
			}
		}
		trips = append(trips, trip{most: append([]int64(nil), load...), at: list[max(0, from-1)].place})
	}
	if !depot(0) {
		loadTrip(0)
	}
	for i := range list {
		v := list[i].place
		if depot(i) {
			if i == len(list)-1 && t.End != None && i > 0 { // home: all but shipments is unloaded
				copy(load, shipped)
			} else {
				loadTrip(i + 1)
			}
		} else {
			for d := range load {
				load[d] += amount(v, d, true) - amount(v, d, false)
			}
			j.handle(v, shipped, load)
		}
		behind[i] = append([]int64(nil), load...)
		most := &trips[len(trips)-1]
		for d, l := range load {
			if l > most.most[d] {
				most.most[d], most.at = l, v
			}
		}
	}
	return behind, trips
}

// handle takes a shipment on board or off it.
func (j *evaluator) handle(v int32, shipped, load []int64) {
	if j.ship == nil || j.ship[v] == 0 {
		return
	}
	number, sign := j.ship[v], int64(1)
	if number < 0 {
		number, sign = -number, -1
	}
	for d, a := range j.p.Shipments[number-1].Amount {
		shipped[d] += sign * int64(a)
		load[d] += sign * int64(a)
	}
}

// Cost is what the routes cost: their total length under the problem's metric, and for a problem
// with further parts what Evaluate says. NaN where the solution names what does not exist.
func (p *Problem) Cost(s Solution) float64 {
	if p.Limited() != nil {
		e, err := Evaluate(p, s)
		if err != nil {
			return math.NaN()
		}
		return e.Cost
	}
	var sum float64
	for _, r := range s.Routes {
		last := 0
		for _, v := range r {
			sum += p.Leg(last, int(v))
			last = int(v)
		}
		sum += p.Leg(last, 0)
	}
	return sum
}
