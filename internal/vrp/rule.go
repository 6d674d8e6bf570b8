package vrp

import "fmt"

// Violation is a rule that a solution breaks. Positions count visits from 0 in the whole tour,
// depot visits included; validateTour reports them, and so does Validate for a plain problem.
// Routes count from 1 in the solution's order.
type Violation struct {
	Rule     Rule
	Node     int32   // the node concerned, None where it is the whole route
	Route    int     // 0: none, or not told
	Position int     // where in the tour; the tour's length for a customer that is missing
	By       float64 // how much is too much: time, distance, load, vehicles; 1 where nothing is measured
	text     string
}

// Rule is what a valid solution keeps.
type Rule int

// The rules, each the one that was broken.
const (
	StartsAtDepot Rule = iota + 1
	EndsAtDepot
	KnownNode
	VisitedOnce
	WithinCapacity
	VisitedAtAll
	RouteOfCustomers // a route of a Solution lists customers only
	WithinDuration
	WithinFleet
	KnownType
	WithinWindow
	WithinShift
	WithinDistance
	WithinStops
	WithinReloads
	AllowedCustomer
	Skilled
	BackhaulOrder
	PairOrder // a shipment's pickup, then its delivery, in one route
	LastInFirstOut
	GroupOnce
	GroupServed
	BreakTaken
)

// Error names the violation in words.
func (v *Violation) Error() string { return v.text }

func violation(rule Rule, node int32, position int, format string, args ...any) *Violation {
	return &Violation{Rule: rule, Node: node, Position: position, text: fmt.Sprintf(format, args...)}
}
