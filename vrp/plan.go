package vrp

import (
	"errors"

	engine "haul/internal/vrp"
	"haul/internal/vrp/files"
)

// Stop is one visit of a route, the depots at its ends included.
type Stop struct {
	Kind     string // start, customer, reload, break, end
	Place    int
	ID       string
	Name     string // for people; "" where it has none
	Arrival  float64
	Wait     float64
	Begin    float64
	Depart   float64
	Distance float64   // from the stop before
	Slack    *float64  // how much later it could begin; nil: nothing limits it
	Late     float64   // past a window that has a price
	Load     []float64 // on board behind it, per dimension
}

// RoutePlan is a route with its times.
type RoutePlan struct {
	Vehicle  string // the type's name, else its number from 1
	Type     int
	Distance float64
	Duration float64 // from leaving to the end, waiting included
	Wait     float64
	Start    float64
	End      float64
	Cost     float64
	Load     []float64 // the most on board, per dimension
	Stops    []Stop
}

// Unserved is a customer on no route.
type Unserved struct {
	Customer int
	ID       string
	Reason   string
}

// Plan computes the times of routes. It judges nothing: see Validate. types has the vehicle type of
// each route; nil: all are of the first.
func (p *Problem) Plan(routes [][]int, types []int) ([]RoutePlan, error) {
	s, err := p.inwardTyped(routes, types)
	if err != nil {
		return nil, err
	}
	plan, err := files.NewPlan(p.inner, s, nil)
	if err != nil {
		return nil, err
	}
	var out []RoutePlan
	for _, r := range plan.Routes {
		route := RoutePlan{Vehicle: r.Vehicle, Type: r.Type, Distance: r.Distance, Duration: r.Duration, Wait: r.Wait, Start: r.Start, End: r.End, Cost: r.Cost, Load: r.Load}
		for _, x := range r.Stops {
			route.Stops = append(route.Stops, Stop{Kind: x.Kind, Place: int(x.Place), ID: x.ID, Name: x.Name, Arrival: x.Arrival, Wait: x.Wait, Begin: x.Begin, Depart: x.Depart,
				Distance: x.Distance, Slack: x.Slack, Late: x.Late, Load: x.Load})
		}
		out = append(out, route)
	}
	return out, nil
}

// Violation is a rule that routes break. It is an error whose text says what, where and by how
// much.
type Violation struct {
	Rule     Rule
	Customer int     // the place concerned; -1: the whole route
	Route    int     // from 1; 0: none, or not told
	By       float64 // how much is too much: time, distance, load, vehicles; 0 where it is not measured
	text     string
}

func (v *Violation) Error() string { return v.text }

// Rule is what valid routes keep.
type Rule string

// The rules.
const (
	RuleKnown     Rule = "known"  // places and vehicle types exist
	RuleOnce      Rule = "once"   // nobody is visited twice
	RuleServed    Rule = "served" // who must be visited is
	RuleCapacity  Rule = "capacity"
	RuleEnds      Rule = "ends" // routes list customers, and depots only to reload
	RuleDuration  Rule = "duration"
	RuleFleet     Rule = "fleet" // no more routes than vehicles
	RuleWindow    Rule = "window"
	RuleShift     Rule = "shift"
	RuleDistance  Rule = "distance"
	RuleStops     Rule = "stops"
	RuleReloads   Rule = "reloads"
	RuleAllowed   Rule = "allowed" // the vehicle may serve the customer
	RuleSkills    Rule = "skills"
	RuleBackhauls Rule = "backhauls" // pickups come after deliveries
	RuleShipments Rule = "shipments" // a pickup, then its delivery, in one route
	RuleLIFO      Rule = "lifo"
	RuleGroup     Rule = "group" // one of a group is visited
	RuleBreaks    Rule = "breaks"
	RuleOther     Rule = "other"
)

var rules = map[engine.Rule]Rule{
	engine.StartsAtDepot: RuleEnds, engine.EndsAtDepot: RuleEnds, engine.RouteOfCustomers: RuleEnds, engine.KnownNode: RuleKnown, engine.KnownType: RuleKnown, engine.VisitedOnce: RuleOnce,
	engine.VisitedAtAll: RuleServed, engine.WithinCapacity: RuleCapacity, engine.WithinDuration: RuleDuration, engine.WithinFleet: RuleFleet, engine.WithinWindow: RuleWindow,
	engine.WithinShift: RuleShift, engine.WithinDistance: RuleDistance, engine.WithinStops: RuleStops, engine.WithinReloads: RuleReloads, engine.AllowedCustomer: RuleAllowed,
	engine.Skilled: RuleSkills, engine.BackhaulOrder: RuleBackhauls, engine.PairOrder: RuleShipments, engine.LastInFirstOut: RuleLIFO, engine.GroupOnce: RuleGroup,
	engine.GroupServed: RuleGroup, engine.BreakTaken: RuleBreaks,
}

// outwardViolation gives an engine's violation the types of this package.
func outwardViolation(err error) error {
	var v *engine.Violation
	if !errors.As(err, &v) {
		return err
	}
	rule, ok := rules[v.Rule]
	if !ok {
		rule = RuleOther
	}
	return &Violation{Rule: rule, Customer: int(v.Node), Route: v.Route, By: v.By, text: v.Error()}
}

// Violations lists every rule that routes break; nil: they are valid. types as in Plan.
func (p *Problem) Violations(routes [][]int, types []int) ([]*Violation, error) {
	s, err := p.inwardTyped(routes, types)
	if err != nil {
		return nil, err
	}
	var out []*Violation
	for _, v := range engine.Violations(p.inner, s) {
		out = append(out, outwardViolation(v).(*Violation))
	}
	return out, nil
}
