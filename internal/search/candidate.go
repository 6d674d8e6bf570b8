package search

import (
	"context"
	"math"

	"haul/internal/search/cover"
	"haul/internal/search/model"
)

// The routes of a problem with any constraints while they are annealed. A slot of the accepted
// routes is never written to (touch copies it, keep and undo swap), and every change of a slot's
// stops is followed by refresh; otherwise its segments describe other stops.

// routeState is a route: its stops with both depots, and the segments from the beginning of its
// trip to each stop, and from each stop to the end of its trip.
type routeState struct {
	kind     int32
	lock     int32 // stops up to this index stay where they are
	count    int   // customers
	stops    []stop
	pre, suf []model.TimeSegment
	// the soonest departure from each stop, and the latest arrival; where windows alone bind
	ready []int64
	due   []int64
	// behind each stop, and the latest arrival at each; where times are clocked
	hours  []departures
	tail   []int64
	lpre   []model.LoadSegment // dims per stop; where the order matters
	lsuf   []model.LoadSegment
	order  []uint8             // 1: a pickup at or before in this trip; 2: a delivery at or after
	cuts   []int32             // indices of the depots
	load   []model.LoadSegment // dims per trip
	ptrip  []model.TimeSegment // all trips before this one
	strip  []model.TimeSegment // this trip and all after
	dist   int64
	dur    int64
	cost   float64
	over   int64 // load past the vehicle's room, weighed by dimension
	priced bool  // ups holds
	ups    []upgrade
}

// upgrade is another kind for a route: what the change costs, and the room that it leaves.
type upgrade struct {
	extra     float64
	kind      int32
	del, pick int32
}

// link is where a customer is: its neighbours, the legs to and from it, its route (-1: none) and
// its index there. From model.RoutesOnly on, the route alone is kept.
type link struct{ prev, next, in, out, route, pos int32 }

// ends is what an insertion asks of a route before it looks at its stops: where it begins and ends
// (its depots, first and last customer and the legs between), how many stops it has (0: no
// customers), its kind, what a unit of distance costs it, and the room that its load leaves.
type ends struct {
	start, first, last, end, in, out int32
	size, kind                       int32
	rate                             float64
	// room for deliveries and pickups, shut: ask admitsInsertion; from model.LoadAlong on
	del, pick int32
	// the last stop that gets, the first that gives; with model.BackhaulsLastBySide
	lastIn, firstOut int32

	// of the route's slot, and the distance that its limit leaves; with model.ScanSimple
	stops      []stop
	ready, due []int64
	spare      int64
	// the room that all deliveries and all pickups leave, and the overload; where the order matters
	// as well
	delRoom, pickRoom int32
	over              int64
}

// shut is the room of a route that must be evaluated by what it holds.
const shut = math.MinInt32

// undoEntry is a route changed by the iteration under way, and its slot before; -1: it was opened.
type undoEntry struct{ route, slot int32 }

// stage is what the routes are changed for.
type stage uint8

const (
	annealing stage = iota
	building        // the first routes are being made
	outOfTime       // and their time is over
)

// candidate is one solution that moves.
type candidate struct {
	*model.Compiled
	Traits model.Traits // those of the problem, which tests may replace
	overlooking
	seg     []model.TimeSegment // by place
	states  []routeState
	free    []int32
	routes  []int32 // of each route
	links   []link  // of each customer
	ends    []ends  // of each route
	used    []int   // vehicles of each kind
	absent  []int32 // leads of tasks that no route serves
	missing []bool  // by lead: it is in absent
	cost    float64
	longest int64     // a limit to every route's duration beside its kind's
	most    int       // routes allowed
	perRate []float64 // by kind: the distance that a cost of 1 pays for
	reach   int       // or beside so many of the nearest customers

	overloads overloadRule
	penalty   float64 // that price, per unit of over
	overload  int64   // of all routes
	// the shares of iterations without overload between which the price stays
	targetLow, targetHigh float64
	missed                bool // a required task was left out when ease last looked
	itersInPhase          int  // iterations of this stretch
	// iterations since the price last moved, and those of them without overload
	itersSinceUpdate int
	feasibleIters    int

	tick           int64
	undoList       []undoEntry
	stamp          []int64
	cut            []int64
	splitDeeper    float64 // the chance that one more stays inside a string
	removed        []int32 // leads of the tasks to insert
	removedAt      []int64 // by lead: tick at which it was removed
	removedFrom    []int32 // by lead: the route that it was removed from
	order          insertionOrder
	costChange     float64 // of the cost with its penalties
	overloadChange int64   // of over
	before         int
	usedWas        []int
	failed         []int32 // tasks that found no place, or none worth it
	eager          bool    // the task at hand goes in where it fits, at any cost
	stage          stage
	servedSoFar    int // tasks that the first routes being made serve
	soon           context.Context
	ended          func() bool // the search's context or time is over; nil: never
	work           int64       // stops that walks have passed since the last look at the clock
	look           clock       // at that look
	// a task may get a vehicle of its own where it would cost less beside others
	apart  bool
	weight []float64 // by lead: times it was left out, in fleet minimisation

	asked   int64 // counts insertions; entered[r] == asked: verdict[r] and extra[r] hold
	entered []int64
	verdict []int32
	extra   []float64
	// by route: the insertion that looked at it last, of a shipment or in a problem without a table
	// of distances
	looked []int64

	best     [][]int32
	bestKind []int32
	bestCost float64
	loadBuf  []model.LoadSegment
	backBuf  []model.LoadSegment
	split    splitter
	stack    []int32
	rowTo    []int32
	rowFrom  []int32
	moves    int64 // positions evaluated
	pool     *cover.Pool
	line     []int32
	sampled  int // iterations since the pool last got routes
	// how many there are at least between two times, and the temperature under which it gets some,
	// in typical legs
	sampleEach      int
	poolBelow       float64
	itersSinceTrial int     // and since the last route trial
	focus           []int32 // where ruins begin; none: anywhere
	flat            *flat   // nil: routes are not kept by customer
	layered         layers
	chosen          []int32 // leads of groups that have another member since begin
}

func newCandidate(m *model.Compiled, s model.Stream) *candidate {
	c := &candidate{Compiled: m, Traits: m.Traits, overlooking: overlooking{Stream: s}, longest: model.Endless, most: m.Nodes,
		seg: make([]model.TimeSegment, m.Nodes+1), links: make([]link, m.Nodes),
		used: make([]int, len(m.Types)), missing: make([]bool, m.Nodes), removedAt: make([]int64, m.Nodes), removedFrom: make([]int32, m.Nodes),
		loadBuf: make([]model.LoadSegment, m.Dims), backBuf: make([]model.LoadSegment, m.Dims),
		reach: model.InsertNear * (1 + m.GroupFactor()) / 2}
	for i := range m.Types {
		c.perRate = append(c.perRate, 1/max(m.Types[i].PerDist, math.SmallestNonzeroFloat32))
	}
	for v := range c.seg {
		at := &m.Locations[v]
		c.seg[v] = model.TimeSegment{Dur: at.Service, Early: at.Early, Late: at.Late, Release: at.Release}
	}
	for v := range c.links {
		c.links[v].route = -1
	}
	c.sampleEach, c.poolBelow = 4*len(m.Tasks), poolBelow
	c.splitDeeper, c.targetLow, c.targetHigh = splitDeeper, targetFeasibleLow, targetFeasibleHigh
	if m.Small() {
		c.sampleEach, c.poolBelow = len(m.Tasks)/2, poolBelowSmall
		c.splitDeeper, c.targetLow, c.targetHigh = splitDeeperSmall, targetFeasibleLowSmall, targetFeasibleHighSmall
	}
	c.pool = cover.NewPool()
	c.untilSkip = c.UntilNextSkip()
	c.order = c.newInsertionOrder()
	if c.Traits.Store == model.Packed {
		c.flat = newFlat(c)
		// Many cycles of many iterations: overload may be had more often.
		c.targetLow, c.targetHigh = targetFeasibleLow, targetFeasibleHigh
	}
	return c
}

func (c *candidate) take() int32 {
	if n := len(c.free); n > 0 {
		k := c.free[n-1]
		c.free = c.free[:n-1]
		return k
	}
	c.states = append(c.states, routeState{})
	return int32(len(c.states) - 1)
}

func (s *routeState) copyFrom(o *routeState) {
	s.kind, s.lock, s.count, s.dist, s.dur, s.cost, s.over = o.kind, o.lock, o.count, o.dist, o.dur, o.cost, o.over
	s.stops = append(s.stops[:0], o.stops...)
	s.cuts, s.load = append(s.cuts[:0], o.cuts...), append(s.load[:0], o.load...)
	// Most problems have few of the rest.
	if len(s.pre)|len(o.pre) > 0 {
		s.pre, s.suf = append(s.pre[:0], o.pre...), append(s.suf[:0], o.suf...)
		s.ptrip, s.strip = append(s.ptrip[:0], o.ptrip...), append(s.strip[:0], o.strip...)
	}
	if len(s.ready)|len(o.ready) > 0 {
		s.ready, s.due = append(s.ready[:0], o.ready...), append(s.due[:0], o.due...)
	}
	if len(s.hours)|len(o.hours) > 0 {
		s.hours, s.tail = append(s.hours[:0], o.hours...), append(s.tail[:0], o.tail...)
	}
	if len(s.lpre)|len(o.lpre) > 0 {
		s.lpre, s.lsuf = append(s.lpre[:0], o.lpre...), append(s.lsuf[:0], o.lsuf...)
	}
	if len(s.order)|len(o.order) > 0 {
		s.order = append(s.order[:0], o.order...)
	}
	s.priced = false
}

// touch makes a route ready for changes.
func (c *candidate) touch(r int32) *routeState {
	if c.stamp[r] == c.tick {
		return &c.states[c.routes[r]]
	}
	c.stamp[r] = c.tick
	old := c.routes[r]
	k := c.take()
	c.states[k].copyFrom(&c.states[old])
	c.undoList = append(c.undoList, undoEntry{r, old})
	c.routes[r] = k
	return &c.states[k]
}

// open adds a route without customers.
func (c *candidate) open(kind int32) int32 {
	r := int32(len(c.routes))
	k := c.take()
	t := &c.Types[kind]
	s := &c.states[k]
	s.kind, s.lock = kind, 0
	s.stops = append(s.stops[:0], stop{t.Start, 0}, stop{t.End, t.Distances.At(t.Start, t.End)})
	c.routes = append(c.routes, k)
	c.growRoutes(len(c.routes))
	c.stamp[r] = c.tick
	c.undoList = append(c.undoList, undoEntry{r, -1})
	c.used[kind]++
	c.refresh(s, 0, 1)
	return r
}

func (c *candidate) growRoutes(routes int) {
	for len(c.stamp) < routes {
		c.stamp, c.cut = append(c.stamp, 0), append(c.cut, 0)
		c.ends = append(c.ends, ends{})
		c.entered, c.verdict, c.extra = append(c.entered, 0), append(c.verdict, 0), append(c.extra, 0)
		c.looked = append(c.looked, 0)
	}
}

// begin starts an iteration.
func (c *candidate) begin() {
	c.tick++
	c.undoList, c.removed, c.failed, c.costChange, c.overloadChange = c.undoList[:0], c.removed[:0], c.failed[:0], 0, 0
	c.chosen = c.chosen[:0]
	c.before = len(c.routes)
	c.usedWas = append(c.usedWas[:0], c.used...)
}

// forget marks all customers of the removed tasks as in no route.
func (c *candidate) forget(lead int32) {
	c.links[lead].route = -1
	if list := c.Members[lead]; list != nil {
		for _, v := range list {
			c.links[v].route = -1
		}
	} else if mate := c.Locations[lead].Partner; mate != 0 {
		c.links[mate].route = -1
	}
}

// undo restores the routes as they were at begin.
func (c *candidate) undo() {
	for _, lead := range c.removed {
		c.forget(lead)
	}
	for _, lead := range c.chosen {
		c.forget(lead)
	}
	c.used = append(c.used[:0], c.usedWas...)
	for _, t := range c.undoList {
		c.free = append(c.free, c.routes[t.route])
		if t.slot >= 0 {
			c.routes[t.route] = t.slot
			c.updateEnds(t.route, 0)
		}
	}
	c.routes = c.routes[:c.before]
	if c.Traits.Store >= model.RoutesOnly {
		for _, lead := range c.removed {
			c.links[lead].route = c.removedFrom[lead]
		}
	}
}

// keep makes the iteration's routes the present ones.
func (c *candidate) keep() {
	for _, t := range c.undoList {
		if t.slot >= 0 {
			c.free = append(c.free, t.slot)
		}
	}
	for _, lead := range c.removed {
		c.missing[lead] = false
	}
	for _, lead := range c.failed {
		c.missing[lead] = true
	}
	if len(c.failed) > 0 || len(c.absent) > 0 {
		kept := c.absent[:0]
		for _, lead := range c.absent {
			if c.missing[lead] && c.removedAt[lead] != c.tick {
				kept = append(kept, lead)
			}
		}
		c.absent = append(kept, c.failed...)
	}
	c.cost += c.costChange
	c.overload += c.overloadChange
	c.dropEmpty()
}

// dropEmpty closes the gaps that routes without customers leave.
func (c *candidate) dropEmpty() {
	for _, t := range c.undoList {
		if int(t.route) < len(c.routes) && c.states[c.routes[t.route]].count == 0 {
			goto sweep
		}
	}
	return
sweep:
	for r := 0; r < len(c.routes); {
		s := &c.states[c.routes[r]]
		if s.count > 0 || s.lock > 0 {
			r++
			continue
		}
		if s.kind >= 0 {
			c.used[s.kind]--
		}
		c.free = append(c.free, c.routes[r])
		last := len(c.routes) - 1
		c.routes[r] = c.routes[last]
		c.routes = c.routes[:last]
		if r < last {
			c.reindex(int32(r), 0)
		}
	}
}

// reindex sets where the customers of a route are, those before a stop as they were.
func (c *candidate) reindex(r int32, from int) {
	s := &c.states[c.routes[r]]
	stops := s.stops
	for i := max(1, from-1); i < len(stops)-1; i++ {
		v := stops[i].node
		if int(v) >= c.Depots {
			c.links[v] = link{stops[i-1].node, stops[i+1].node, stops[i].leg, stops[i+1].leg, r, int32(i)}
		}
	}
	c.noteEnds(r)
}

// updateEnds is reindex where the customers of a route are in it already.
func (c *candidate) updateEnds(r int32, from int) {
	if c.Traits.Store >= model.RoutesOnly {
		c.noteEnds(r)
	} else {
		c.reindex(r, from)
	}
}

// noteEnds notes what insertions ask of a route.
func (c *candidate) noteEnds(r int32) {
	s := &c.states[c.routes[r]]
	e := &c.ends[r]
	if s.kind < 0 {
		e.size = 0
		return
	}
	stops := s.stops
	n := len(stops)
	k := &c.Types[s.kind]
	e.size, e.kind = int32(n), s.kind
	if c.Traits.Scan == model.ScanSimple {
		c.noteSimple(e, s, k)
	}
	if c.Traits.Store < model.RoutesOnly {
		e.start, e.first, e.last, e.end = stops[0].node, stops[1].node, stops[n-2].node, stops[n-1].node
		e.in, e.out, e.rate = stops[1].leg, stops[n-1].leg, k.PerDist
	}
	if c.Traits.Insertion >= model.LoadAlong {
		switch {
		case s.lock > 0 || s.count >= k.MaxStops:
			e.del, e.pick = shut, shut
		case c.Traits.Insertion >= model.LoadTotal:
			room := c.tripCapacity(k, 0, 0)
			e.del, e.pick = room-s.load[0].Del, room-s.load[0].Pick
		default: // evaluated position by position
			e.del, e.pick = math.MaxInt32, math.MaxInt32
		}
	}
	if c.Traits.Order == model.BackhaulsLastBySide && c.Traits.OneTable() {
		i := 1
		for i < n-1 && c.Side[stops[i].node]&1 == 0 {
			i++
		}
		e.firstOut, e.lastIn = int32(i), int32(i-1)
		if i < n-1 && c.Side[stops[i].node]&2 != 0 {
			e.lastIn++
		}
	}
}

// set replaces all routes. It is false where one of them does not keep its limits.
func (c *candidate) set(routes [][]int32, kinds []int32, locks []int32) bool {
	c.free, c.routes, c.cost, c.overload = c.free[:0], c.routes[:0], 0, 0
	if c.flat != nil {
		c.flat.live = false
	}
	for i := range c.states {
		c.free = append(c.free, int32(i))
	}
	clear(c.used)
	for v := range c.links {
		c.links[v].route = -1
	}
	c.tick++
	c.undoList = c.undoList[:0]
	ok := true
	for i, route := range routes {
		if len(route) == 0 {
			continue
		}
		kind := int32(0)
		if kinds != nil {
			kind = kinds[i]
		}
		r := c.open(kind)
		s := &c.states[c.routes[r]]
		if locks != nil {
			s.lock = locks[i]
		}
		t := &c.Types[kind]
		s.stops = append(s.stops[:0], stop{t.Start, 0})
		last := t.Start
		for _, v := range append(append([]int32(nil), route...), t.End) {
			s.stops = append(s.stops, stop{v, t.Distances.At(last, v)})
			last = v
		}
		ok = c.refresh(s, 0, len(s.stops)-1) && s.over == 0 && ok
		c.reindex(r, 0)
		c.cost += s.cost
		for _, v := range route {
			c.cost += c.Loss[v]
		}
	}
	c.absent = c.absent[:0]
	for _, lead := range c.Tasks {
		c.missing[lead] = !c.served(lead)
		if c.missing[lead] {
			c.absent = append(c.absent, lead)
			c.cost += c.Locations[lead].Price
		}
	}
	c.undoList = c.undoList[:0]
	c.remember()
	return ok
}

// served reports whether a route serves a task.
func (c *candidate) served(lead int32) bool {
	if list := c.Members[lead]; list != nil {
		for _, v := range list {
			if c.links[v].route >= 0 {
				return true
			}
		}
		return false
	}
	return c.links[lead].route >= 0
}

// remember copies the present routes as the best.
func (c *candidate) remember() {
	c.bestCost = c.cost
	c.best, c.bestKind = c.best[:0], c.bestKind[:0]
	for r := range c.routes {
		s := &c.states[c.routes[r]]
		c.best = copyRoute(c.best, r, s.stops)
		c.bestKind = append(c.bestKind, s.kind)
	}
}
