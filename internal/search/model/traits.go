package model

// Traits is how the routes of a problem are stored and evaluated. Traits depend on the problem
// alone. Each is a choice with a name, and the choices of one trait exclude each other.
type Traits struct {
	Time      TimeModel
	Load      LoadModel
	Order     OrderModel
	Distance  DistanceModel
	Fleet     FleetModel
	Parts     PartSet
	Moves     MoveSet
	Insertion InsertionModel
	Scan      Scan
	Store     Store
}

// TimeModel is how the times of a route are computed.
type TimeModel uint8

// The models of time. A model serves every problem of the models before it.
const (
	NoTime TimeModel = iota // nothing depends on time
	// windows alone bind: the earliest departure and the latest arrival of each stop
	WindowsOnly
	// durations, releases or reloads: segments that join in constant time
	TimeSegments
	Clocked     // several windows, breaks or setup times: clocked stop by stop
	WalkedOrder // walked for the order of loads; nothing depends on time
	Walked      // walked
)

// Timed reports whether times matter.
func (t TimeModel) Timed() bool { return t != NoTime && t != WalkedOrder }

// IsWalked reports whether a route is evaluated by walking all of it.
func (t TimeModel) IsWalked() bool { return t >= WalkedOrder }

// LoadModel is what decides whether a load fits.
type LoadModel uint8

// The models of load.
const (
	OneTotal       LoadModel = iota // the sum of one dimension
	SeveralTotals                   // the sums of several dimensions
	OneInOrder                      // one dimension, and the order of deliveries and pickups
	SeveralInOrder                  // several dimensions in order
)

// InOrder reports whether the order of deliveries and pickups matters.
func (l LoadModel) InOrder() bool { return l >= OneInOrder }

// OrderModel is which orders of deliveries and pickups are allowed.
type OrderModel uint8

// The orders.
const (
	AnyOrder      OrderModel = iota
	BackhaulsLast            // every delivery precedes the first pickup of a trip
	// the same where each customer gets or gives: its neighbours decide
	BackhaulsLastBySide
)

// DistanceModel is where distances come from.
type DistanceModel uint8

// The models of distance.
const (
	SymmetricTable DistanceModel = iota // one table for all vehicle types, equal in both directions
	Table                               // one table for all vehicle types
	Computed                            // too many locations for a table
	PerType                             // vehicle types differ
)

// FleetModel is how the vehicle types are related. A family is a set of types that differ in
// capacity, number and costs alone.
type FleetModel uint8

// The fleets.
const (
	OneType       FleetModel = iota
	SeparateTypes            // each type is a family
	Upgrades                 // a route may change to another type of its family
	Splits                   // one family without times or order: a route may be split in two
	SplitsAnew               // the same, and several routes may be split anew (Prins, 2004)
)

// PartSet is the parts that a problem has.
type PartSet uint8

// The parts.
const (
	Optional  PartSet = 1 << iota // some task may be left out
	Shipments                     // pairs of a pickup and a delivery
	LIFO                          // the last shipment picked up is delivered first
	Reloads                       // vehicles may make several trips
	PaidTime                      // some vehicle type is paid by duration
)

// Has reports whether the set has a part.
func (s PartSet) Has(p PartSet) bool { return s&p != 0 }

// MoveSet is the moves of the search that serve a problem.
type MoveSet uint8

// The moves.
const (
	Overload      MoveSet = 1 << iota // vehicles may be overloaded at a penalty
	LongStrings                       // strings of removed customers may be as long as routes
	RouteTrials                       // a route is opened or closed on trial
	ChooseMembers                     // members of groups are chosen anew along a route
)

// Has reports whether the set has a move.
func (s MoveSet) Has(m MoveSet) bool { return s&m != 0 }

// InsertionModel is what decides whether a customer fits into a route. A later model needs less.
type InsertionModel uint8

// The models of insertion.
const (
	WholeRoute InsertionModel = iota // trips, shipments, several dimensions or a walk
	LoadAlong                        // one load along the route
	LoadTotal                        // the route's total load
	// the total load; cost and feasibility of a position are its distance
	DistanceAlone
)

// Scan is how the positions of an insertion are searched.
type Scan uint8

// The scans. The first three evaluate every position.
const (
	ScanSimple     Scan = iota // one load, one symmetric table at one price
	ScanTable                  // one table
	ScanAll                    // any distances
	ScanNear                   // next to near customers and at the ends of all routes
	ScanNearRoutes             // next to near customers and at the ends of their routes
)

// All reports whether every position is evaluated.
func (s Scan) All() bool { return s <= ScanAll }

// Store is how routes are kept in memory.
type Store uint8

// The stores.
const (
	Segments   Store = iota // stops with segments; a customer's neighbours and index
	RoutesOnly              // the same without neighbours and indices
	Packed                  // lists by customer that vectors scan
)

// OneTable reports whether one table has all distances and routes are single trips that are not
// walked.
func (t *Traits) OneTable() bool {
	return t.Distance <= Table && !t.Parts.Has(Reloads) && !t.Time.IsWalked()
}
