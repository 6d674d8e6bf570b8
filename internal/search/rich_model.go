package search

import (
	"math"

	"haul/internal/vrp"
)

// A problem with any constraints in the form that the search reads: places with their amounts
// and times in integer units, vehicle types with their limits, distances and durations in
// tables. What a reader could break: durations, services and opening times are rounded up and
// closing times down, so that routes that keep these limits keep the problem's own. Costs here
// guide the search; reported costs come from package vrp.

const (
	// richTable is the number of places up to which tables hold every distance and duration.
	richTable = 4000
	endless   = int64(1) << 46 // later than any time
)

// grid answers distances or durations between places in units. Past the last place lies one that is
// nowhere: the end of an open route, at distance 0 from all.
type grid struct {
	n    int
	cell []int32 // nil where there are too many places
	back []int32 // the same the other way round; nil where it is the same
	f    func(i, j int32) int32
}

func (g *grid) at(i, j int32) int32 {
	if g.cell == nil {
		return g.f(i, j)
	}
	return g.cell[int(i)*g.n+int(j)]
}

// place is a customer or depot.
type place struct {
	early, late    int64
	service        int64
	release        int64
	delivery, pick int32   // in the first dimension
	price          float64 // of leaving it out
	required       bool
	mate           int32 // the other half of its shipment; 0: none
	lead           int32 // the customer that stands for its shipment or group: the pickup, the first member
	second         bool  // the delivery of a shipment
}

// kind is a vehicle type.
type kind struct {
	start, end       int32
	count            int // of vehicles
	cap              []int32
	initial          []int32
	early, lastStart int64
	late             int64
	maxDur, maxDist  int64
	maxStops         int
	fixed, perDist   float64
	own              float64 // the fixed cost without what the objective adds to it
	perDur           float64 // per unit
	dist, dur        *grid
	allowed          []uint64 // bits; nil: all
	reloads          []int32
	maxReloads       int
	family           int // kinds of one family differ in capacity, number and costs alone
	breaks           []vrp.Break
	rests            []pause // the same in units, where times are clocked
	startSeg, endSeg tseg
	reloadSegs       []tseg // by reload depot: leaving it
}

// model is the compiled problem.
type model struct {
	p             *vrp.Problem
	nodes, depots int
	places        []place
	kinds         []kind
	dims          int
	amounts       []lseg  // by place: one segment per dimension
	weights       []int64 // by dimension: of a unit of overload
	softly        bool    // overload may have a price
	tollUnit      float64 // what a unit of weighed overload costs at first
	side          []uint8 // by place: 1 where it gives, 2 where it gets, in the first dimension
	timed         bool    // windows, durations or releases matter
	mixed         bool    // the order of deliveries and pickups matters to the load
	sorted        bool    // deliveries come before pickups, or a pickup is never first
	ordered       vrp.BackhaulRule
	trips         bool     // reloads
	slow          bool     // routes are evaluated by walking them
	clocked       bool     // their times are clocked (rich_clock)
	prompt        bool     // of time, windows are all that binds (rich_prompt)
	setup         []int64  // by place, where times are clocked; nil: none
	spans         [][]span // by place: its windows, where routes are walked
	lifo          bool
	perDur        bool // some kind is paid by duration
	pairs         bool
	oneGrid       bool      // all kinds have the same distances
	shipment      [][]int32 // by place: the amounts of its shipment
	loss          []float64 // by place: prizes of the others of its group
	members       [][]int32 // by lead of a group: its members; nil: none
	tasks         []int32   // leads of all tasks
	row           []int32   // by lead: its index in tasks, plus 1
	distUnit      float64   // units in a distance of 1
	timeUnit      float64
	wholeTimes    bool // lengths of time are whole numbers of units
	near          []int32
	nearAt        []int32
	leg           float64   // a typical leg's cost, the unit of temperature
	leastPerDist  float64   // of all kinds
	upper         float64   // more than serving any customer alone costs
	prices        []float64 // of the tasks by row, from the last cover of a small problem; nil: none
}

// small is whether every cycle of annealing begins anew.
func (m *model) small() bool { return len(m.tasks) <= meltMost }

// amountsOf is a place's segments of load.
func (m *model) amountsOf(v int32) []lseg {
	return m.amounts[int(v)*m.dims:][:m.dims]
}

func (m *model) mayServe(k *kind, v int32) bool {
	return k.allowed == nil || k.allowed[v>>6]>>(uint(v)&63)&1 != 0
}

// How many units lengths and points in time may be: tables of lengths have 32 bits, points 64, and
// all of a route's lengths stay far below endless. Of lengths of which some are so long that
// nobody means to go them (99999999), the others keep commonLength, and those are as long as
// longestLength.
const (
	mostLength    = 1 << 28
	mostPoint     = 1 << 44
	commonLength  = 1 << 22
	longestLength = 1 << 29
	barredPast    = 18 // powers of two between such lengths and all others
)

// values yields numbers.
type values func(yield func(float64))

// numbers is what unitOf knows of numbers, by their power of two.
type numbers struct {
	count   [2048]int
	largest [2048]float64
	fails   [2048][4]bool // in which of units they are not whole
	most    float64       // the largest of all, infinite ones left out
}

// units are those in which whole numbers stay whole.
var units = [4]float64{1, 10, 100, 1000}

func (n *numbers) read(list values) {
	list(func(x float64) { n.add(x, 1) })
}

// add reads a number that there is so many times.
func (n *numbers) add(x float64, times int) {
	if x = math.Abs(x); math.IsInf(x, 0) || x == 0 {
		return
	}
	e := math.Float64bits(x) >> 52
	n.count[e] += times
	n.largest[e], n.most = max(n.largest[e], x), max(n.most, x)
	if x == math.Trunc(x) {
		return // whole in all units
	}
	fails := &n.fails[e]
	for i, u := range units {
		if !fails[i] && math.Abs(x*u-math.Round(x*u)) > 1e-6 {
			fails[i] = true
		}
	}
}

// upTo is the largest of the numbers whose power is at most e, and the units in which not all of
// these are whole.
func (n *numbers) upTo(e int) (largest float64, fails [4]bool) {
	for k := range e + 1 {
		if n.count[k] > 0 {
			largest = n.largest[k]
			for i := range fails {
				fails[i] = fails[i] || n.fails[k][i]
			}
		}
	}
	return largest, fails
}

// common is the power of the numbers that are not barred: those behind a wide gap that are at most
// half of all are.
func (n *numbers) common() int {
	all, above, last := 0, 0, len(n.count)-1
	for _, k := range n.count {
		all += k
	}
	for e, upper := last, -1; e >= 0; e-- {
		if n.count[e] == 0 {
			continue
		}
		if upper >= 0 && upper-e > barredPast && 2*above <= all {
			return e
		}
		above, upper = above+n.count[e], e
	}
	return last
}

// unitOf is the least of 1, 10, 100 and 1000 in which all lengths (of) and points are whole
// numbers, or a power of two that keeps the largest within mostLength. Points go beyond it, up to
// mostPoint, where values are whole, or where they are a thousand times the longest length and
// more, which would be rounded away. Lengths that nobody means to go do not count where limits, of
// lengths or of points, are below them. whole tells that lengths are whole.
func unitOf(of *numbers, points, limits values) (unit float64, whole bool) {
	var at, most numbers
	at.read(points)
	most.read(limits)
	last := len(of.count) - 1
	length, broken := of.upTo(last)
	point, early := at.upTo(last)
	power := func(x float64) float64 {
		_, exp := math.Frexp(x)
		return math.Ldexp(1, exp-1)
	}
	for _, far := range []float64{mostLength, mostPoint} {
		for i, u := range units {
			if !broken[i] && !early[i] && length*u <= mostLength && point*u <= far {
				return u, true
			}
		}
	}
	if e := of.common(); e < last {
		usual, broken := of.upTo(e)
		limit, _ := most.upTo(last)
		limit = max(limit, point)
		for i, u := range units {
			if !broken[i] && !early[i] && usual*u <= commonLength && limit*u <= mostLength {
				return u, true
			}
		}
		if u := power(min(commonLength/usual, mostLength/limit)); usual*u >= 1<<10 {
			return u, false
		}
	}
	switch {
	case length == 0 && point == 0:
		return 1, true
	case length > 0 && point > 1000*length:
		return power(min(mostLength/length, mostPoint/point)), false
	}
	return power(mostLength / max(length, point)), false
}

func upUnits(x, unit float64) int64 {
	y := x * unit
	if y >= float64(endless) {
		return endless
	}
	if r := math.Round(y); math.Abs(y-r) <= 1e-6 {
		return int64(r)
	}
	return int64(math.Ceil(y))
}

func downUnits(x, unit float64) int64 {
	y := x * unit
	if y >= float64(endless) {
		return endless
	}
	if r := math.Round(y); math.Abs(y-r) <= 1e-6 {
		return int64(r)
	}
	return int64(math.Floor(y))
}
