package vrp

import (
	"math"
)

// The optional constraints of a problem. Each has a part in schema.Parts, so that methods without
// support refuse it by name; TestFieldsHaveParts compares them.

// None stands for "no depot" at an end of a vehicle type's routes.
const None = -1

// Window is a span of time in which service may begin; both ends belong to it. A vehicle that
// arrives sooner waits. A depot's windows hold where a vehicle begins to load there, before it
// leaves or where it reloads, and where it returns.
type Window struct{ From, To float64 }

// Always is the window that asks for nothing.
var Always = Window{0, math.Inf(1)}

// VehicleType is a kind of vehicle. NewVehicleType gives one that limits nothing but its capacity.
type VehicleType struct {
	Name         string
	Count        int     // how many there are; 0: any number
	Numbers      []int32 // which of the file's vehicles, counted from 0, are of this type; nil: not told
	Capacity     []int32 // per dimension; nil: no limit
	Start, End   int     // depots; None: the route begins at its first, or ends at its last customer
	Shift        Window  // leaves no sooner than From, is back by To
	LatestStart  float64 // leaves no later; +Inf: any time
	MaxDuration  float64 // from leaving to being back, waiting included; +Inf: none
	MaxDistance  float64 // +Inf: none
	MaxStops     int     // customers at most; 0: any number
	FixedCost    float64 // of a route that serves anybody
	DistanceCost float64 // per unit of distance
	DurationCost float64 // per unit of duration
	Profile      int     // index into Problem.Profiles
	Skills       []int32
	Allowed      []int32 // customers that it may serve; nil: all
	Reloads      []int   // depots at which it may reload; nil: none
	MaxReloads   int     // per route; 0 with Reloads: any number (a type without Reloads has none)
	Breaks       []Break
	InitialLoad  []int32 // per dimension: on board up to the first reload or the end, for nobody
}

// NewVehicleType is a type of which there is any number, that leaves from and returns to depot 0
// and whose routes cost their distance.
func NewVehicleType(capacity ...int32) VehicleType {
	inf := math.Inf(1)
	return VehicleType{Capacity: capacity, Shift: Always, LatestStart: inf, MaxDuration: inf, MaxDistance: inf, DistanceCost: 1}
}

// Break is a rest that a vehicle takes at a stop, after its service or before it, while it is under
// way. A type's breaks are taken in their order, where the route then ends soonest.
type Break struct {
	Windows  []Window // in which it begins
	Duration float64
	MaxLoad  []int32 // per dimension: on board at most while it rests; nil: any
}

// Profile has the distances and durations of a kind of vehicle: places × places, row-major. A nil
// Duration is the distance.
type Profile struct {
	Name               string
	Distance, Duration []float64
}

// Dimension is one more kind of load, by place. nil: nothing.
type Dimension struct {
	Name             string
	Delivery, Pickup []int32
}

// Group is a set of customers of which exactly one is visited, or at most one where it is not
// Required. Its members are Optional by being in it.
type Group struct {
	Name     string
	Members  []int32
	Required bool
}

// Shipment is an amount that one vehicle picks up at one customer and delivers at another, later in
// the same route. The two places have no demand of their own for it. It stays on board while the
// vehicle reloads. Its customers are both served or, where both are Optional, both left out.
type Shipment struct {
	Pickup, Delivery int32
	Amount           []int32 // per dimension
}

// BackhaulRule says in which order a route delivers (linehauls) and picks up (backhauls).
type BackhaulRule int

// The rules.
const (
	Mixed         BackhaulRule = iota // any order within the capacity
	BackhaulsLast                     // every delivery before the first pickup; pickups alone are allowed
	LinehaulFirst                     // BackhaulsLast, and no route begins with a pickup
)

// Objective is what a solver minimises.
type Objective int

// The objectives. The cost is fixed costs, distance and duration at their prices, prizes that are
// not collected, and lateness at its price.
const (
	MinCost        Objective = iota
	FewestVehicles           // fewest routes, then the cost
	ShortestRoute            // the longest route's duration at its smallest, then the cost
)
