package model

// Sizes at which the search takes another way, and lengths of its lists. They depend on nothing but
// the problem, so that a result does not depend on the machine.

// Distances.
const (
	TableGeneral = 4000   // locations up to which tables hold every distance and duration
	TableNodes   = 3000   // the same in a plain problem (36 MB)
	MatrixNodes  = 2000   // the same for first routes (32 MB)
	RegionMost   = 12_000 // nodes of a region, whose table then takes 576 MB
	BruteNodes   = 500    // nodes up to which scanning every pair is faster than a k-d tree
)

// Neighbour lists.
const (
	Nearest        = 100                // length of the lists of a plain problem
	NearestGeneral = 100                // length of the lists of other problems
	NearWide       = 3 * NearestGeneral // candidates by distance of each list, if there is no table
	StartSample    = 200                // customers whose lists predict the time that all lists take
	StartLeast     = 8                  // length of the shortest lists
)

// First routes.
const (
	SavesLeast  = 2000 // locations from which on problems with windows start from savings
	AllPairs    = 400  // customers up to which every pair is offered as a saving
	SavingsNear = 100  // beyond it, pairs from the lists of this many nearest
)

// Positions that an insertion evaluates.
const (
	FullMost   = 150 // customers up to which it evaluates every position
	FullGroups = 320 // the same number for groups, whose nearest customers are mostly on no route
	InsertNear = 40  // beyond it, positions next to this many nearest customers and at route ends
	// NearMost is the number of locations from which on an insertion with a limit of cost looks
	// nowhere else.
	NearMost   = 300
	PairsMost  = 1500 // locations up to which the insertion of a shipment looks at all routes
	ScanMost   = 650  // nodes up to which a plain problem with few routes scans every position
	ScanRoutes = 100  // number of few routes: most of them are full and cost one comparison
)

// Schedule.
const (
	SmallMost = 100 // tasks up to which every cycle of annealing starts anew
	// customers up to which workers anneal the whole problem, not parts of it
	ChainMost       = 400
	PartMost        = 1000 // customers that are annealed at once, if there are several parts
	PoolMost        = 20000
	minPenaltyTasks = 20  // tasks below which vehicles are never overloaded
	RestMost        = 3   // breaks of a vehicle whose times are clocked
	ResplitMost     = 100 // customers of routes that are split anew together
)
