package search

import (
	"context"
	"math"
)

// The routes of a problem with any constraints while they are annealed. What a reader could
// break: a slot of the accepted routes is never written to (touch copies it, keep and undo
// swap), and every change of a slot's stops is followed by refresh; otherwise its segments
// describe other stops.

// rslot is a route: its stops with both depots, and the segments from the beginning of its trip to
// each stop, and from each stop to the end of its trip.
type rslot struct {
	kind     int32
	lock     int32 // stops up to this index stay where they are
	count    int   // customers
	stops    []stop
	pre, suf []tseg
	ready    []int64 // the soonest departure from each stop, and the latest arrival; where m.prompt
	due      []int64
	hours    []hours // behind each stop, and the latest arrival at each; where times are clocked
	tail     []int64
	lpre     []lseg // dims per stop; where the order matters
	lsuf     []lseg
	order    []uint8 // 1: a pickup at or before in this trip; 2: a delivery at or after
	cuts     []int32 // indices of the depots
	load     []lseg  // dims per trip
	ptrip    []tseg  // all trips before this one
	strip    []tseg  // this trip and all after
	dist     int64
	dur      int64
	cost     float64
	over     int64 // load past the vehicle's room, weighed by dimension
	priced   bool  // ups holds
	ups      []up
}

// up is another kind for a route: what the change costs, and the room that it leaves.
type up struct {
	extra     float64
	kind      int32
	del, pick int32
}

// link is where a customer is: its neighbours, the legs to and from it, its route (-1: none) and
// its index there. Where c.spare, the route alone is kept.
type link struct{ prev, next, in, out, route, pos int32 }

// ends is what an insertion asks of a route before it looks at its stops: where it begins and ends
// (its depots, first and last customer and the legs between), how many stops it has (0: no
// customers), its kind, what a unit of distance costs it, and the room that its load leaves.
type ends struct {
	start, first, last, end, in, out int32
	size, kind                       int32
	rate                             float64
	del, pick                        int32 // room for deliveries and pickups, shut: ask enter; where c.easy
	lastIn, firstOut                 int32 // the last stop that gets, the first that gives; where c.sided

	// of the route's slot, and the distance that its limit leaves; where c.lean
	stops      []stop
	ready, due []int64
	spare      int64
	// the room that all deliveries and all pickups leave, and the overload; where c.mixed as well
	delRoom, pickRoom int32
	over              int64
}

// shut is the room of a route that must be evaluated by what it holds.
const shut = math.MinInt32

// rtouched is a route changed by the iteration under way, and its slot before; -1: it was opened.
type rtouched struct{ route, slot int32 }

// rchain is one solution that moves.
type rchain struct {
	*model
	stream
	seg     []tseg // by place
	slots   []rslot
	free    []int32
	slot    []int32 // of each route
	link    []link  // of each customer
	ends    []ends  // of each route
	used    []int   // vehicles of each kind
	absent  []int32 // leads of tasks that no route serves
	missing []bool  // by lead: it is in absent
	cost    float64
	longest int64     // a limit to every route's duration beside its kind's
	most    int       // routes allowed
	simple  bool      // one dimension of load, in whatever order
	sided   bool      // the order of deliveries and pickups shows in a position's neighbours
	bare    bool      // a position is evaluated by its distance, order and load alone
	full    bool      // insertions look at every position
	vast    bool      // or at the routes of near customers alone (rich_vast)
	swift   bool      // and find what they ask in one table
	easy    bool      // ends tell whether a route's vehicle may have one more customer
	lone    bool      // and no other kind could have it in its place
	perRate []float64 // by kind: the distance that a cost of 1 pays for
	even    bool      // distances are the same both ways
	lean    bool      // and little else is asked (rich_lean)
	spare   bool      // nobody asks for a customer's neighbours or its index
	reach   int       // or beside so many of the nearest customers

	soft bool    // load past a vehicle's room has a price
	toll float64 // that price, per unit of over
	over int64   // of all routes
	// the shares of iterations without overload between which the price stays
	tollLow, tollHigh float64
	missed            bool // a required task was left out when ease last looked
	closed            bool // tasks that are left out stay out
	spell             int  // iterations of this stretch
	steps             int  // iterations since the price last moved, and those of them without overload
	clean             int

	tick    int64
	journal []rtouched
	stamp   []int64
	cut     []int64
	deeper  float64 // the chance that one more stays inside a string
	uproots bool    // strings may be as long as routes
	removed []int32 // leads of the tasks to insert
	taken   []int64 // by lead: tick at which it was removed
	home    []int32 // by lead: the route that it was removed from
	keys    []uint64
	change  float64 // of the cost with its tolls
	more    int64   // of over
	before  int
	usedWas []int
	failed  []int32 // tasks that found no place, or none worth it
	wait    int
	choosy  bool // some task may be left out
	eager   bool // the task at hand goes in where it fits, at any cost
	built   bool // the first routes are being made
	sown    int  // tasks that are served by then
	hasty   bool // and their time is over
	soon    context.Context
	apart   bool      // a task may get a vehicle of its own where it would cost less beside others
	weight  []float64 // by lead: times it was left out, in fleet minimisation

	asked   int64 // counts insertions; entered[r] == asked: verdict[r] and extra[r] hold
	entered []int64
	verdict []int32
	extra   []float64
	looked  []int64 // by route: the insertion that looked at it last, of a shipment or in a vast problem

	best     [][]int32
	bestKind []int32
	bestCost float64
	loadBuf  []lseg
	backBuf  []lseg
	cuts     bool // routes may be cut in two
	recuts   bool // and several of them anew
	split    splitter
	stack    []int32
	rowTo    []int32
	rowFrom  []int32
	moves    int64 // positions evaluated
	pool     *richPool
	sampled  int // iterations since the pool last got routes
	// how many there are at least between two times, and the temperature under which it gets some, in
	// typical legs
	sampleEach int
	poolBelow  float64
	ventured   int      // and since the last venture
	focus      []int32  // where ruins begin; none: anywhere
	tourist    *tourist // nil: routes are not found as a whole
	flat       *flat    // nil: routes are not kept by customer
	choosing   bool     // members of groups are chosen anew (rich_member)
	layered    layers
	chosen     []int32 // leads of groups that have another member since begin
}

func newRichChain(m *model, s stream) *rchain {
	c := &rchain{model: m, stream: s, longest: endless, most: m.nodes,
		seg: make([]tseg, m.nodes+1), link: make([]link, m.nodes),
		used: make([]int, len(m.kinds)), missing: make([]bool, m.nodes), taken: make([]int64, m.nodes), home: make([]int32, m.nodes),
		loadBuf: make([]lseg, m.dims), backBuf: make([]lseg, m.dims), cuts: m.divides(), keys: make([]uint64, m.nodes), full: m.nodes-m.depots <= fullMost || !m.oneGrid || m.stands() > 1 && len(m.tasks) <= fullGroups,
		reach: insertNear * (1 + m.stands()) / 2}
	c.simple = m.dims == 1 && !m.pairs && !m.mixed && !m.trips && !m.slow
	c.sided = m.sorted && !m.trips
	for v := m.depots; v < m.nodes; v++ {
		c.sided = c.sided && m.side[v] != 0
	}
	c.bare = c.simple && !m.timed && (c.sided || !m.sorted)
	for i := range m.kinds {
		c.bare = c.bare && m.kinds[i].maxDist >= endless
	}
	c.vast = !c.full && m.isVast()
	c.swift = m.oneGrid && m.kinds[0].dist.cell != nil && !m.trips && !m.slow
	c.recuts = c.resplits()
	c.even = c.swift && m.kinds[0].dist.back == nil
	c.easy = c.simple || m.mixed && m.dims == 1 && !m.pairs && !m.trips && !m.slow
	c.lone = true
	for i := range m.kinds {
		c.perRate = append(c.perRate, 1/max(m.kinds[i].perDist, math.SmallestNonzeroFloat32))
		for j := range i {
			c.lone = c.lone && m.kinds[i].family != m.kinds[j].family
		}
	}
	c.lean = c.leans()
	for v := range c.seg {
		at := &m.places[v]
		c.seg[v] = tseg{at.service, at.early, at.late, at.release}
	}
	for v := range c.link {
		c.link[v].route = -1
	}
	for _, lead := range m.tasks {
		c.choosy = c.choosy || !m.places[lead].required
	}
	if c.tours() {
		c.tourist = c.newTourist()
	}
	c.spare = c.full && c.swift && c.tourist == nil && !m.pairs && !c.cuts
	for _, lead := range m.tasks {
		c.spare = c.spare && m.members[lead] == nil
	}
	c.sampleEach, c.poolBelow = 4*len(m.tasks), poolBelow
	c.deeper, c.tollLow, c.tollHigh = splitDeeper, tollLow, tollHigh
	if m.small() {
		c.sampleEach, c.poolBelow = len(m.tasks)/2, poolBelowSmall
		c.deeper, c.tollLow, c.tollHigh = splitDeeperSmall, tollLowSmall, tollHighSmall
	}
	c.uproots = (m.small() || c.choosy) && !m.pairs
	c.choosing = c.chooses()
	c.pool = newRichPool()
	c.wait = c.blink()
	if c.flat = newFlat(c); c.flat != nil {
		// Many cycles of many iterations: overload may be had more often.
		c.tollLow, c.tollHigh = tollLow, tollHigh
	}
	return c
}

func (c *rchain) take() int32 {
	if n := len(c.free); n > 0 {
		k := c.free[n-1]
		c.free = c.free[:n-1]
		return k
	}
	c.slots = append(c.slots, rslot{})
	return int32(len(c.slots) - 1)
}

func (s *rslot) copyFrom(o *rslot) {
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
func (c *rchain) touch(r int32) *rslot {
	if c.stamp[r] == c.tick {
		return &c.slots[c.slot[r]]
	}
	c.stamp[r] = c.tick
	old := c.slot[r]
	k := c.take()
	c.slots[k].copyFrom(&c.slots[old])
	c.journal = append(c.journal, rtouched{r, old})
	c.slot[r] = k
	return &c.slots[k]
}

// open adds a route without customers.
func (c *rchain) open(kind int32) int32 {
	r := int32(len(c.slot))
	k := c.take()
	t := &c.kinds[kind]
	s := &c.slots[k]
	s.kind, s.lock = kind, 0
	s.stops = append(s.stops[:0], stop{t.start, 0}, stop{t.end, t.dist.at(t.start, t.end)})
	c.slot = append(c.slot, k)
	c.fit(len(c.slot))
	c.stamp[r] = c.tick
	c.journal = append(c.journal, rtouched{r, -1})
	c.used[kind]++
	c.refresh(s, 0, 1)
	return r
}

func (c *rchain) fit(routes int) {
	for len(c.stamp) < routes {
		c.stamp, c.cut = append(c.stamp, 0), append(c.cut, 0)
		c.ends = append(c.ends, ends{})
		c.entered, c.verdict, c.extra = append(c.entered, 0), append(c.verdict, 0), append(c.extra, 0)
		c.looked = append(c.looked, 0)
	}
}

// begin starts an iteration.
func (c *rchain) begin() {
	c.tick++
	c.journal, c.removed, c.failed, c.change, c.more = c.journal[:0], c.removed[:0], c.failed[:0], 0, 0
	c.chosen = c.chosen[:0]
	c.before = len(c.slot)
	c.usedWas = append(c.usedWas[:0], c.used...)
}

// forget marks all customers of the removed tasks as in no route.
func (c *rchain) forget(lead int32) {
	c.link[lead].route = -1
	if list := c.members[lead]; list != nil {
		for _, v := range list {
			c.link[v].route = -1
		}
	} else if mate := c.places[lead].mate; mate != 0 {
		c.link[mate].route = -1
	}
}

// undo gives back the routes as they were at begin.
func (c *rchain) undo() {
	for _, lead := range c.removed {
		c.forget(lead)
	}
	for _, lead := range c.chosen {
		c.forget(lead)
	}
	c.used = append(c.used[:0], c.usedWas...)
	for _, t := range c.journal {
		c.free = append(c.free, c.slot[t.route])
		if t.slot >= 0 {
			c.slot[t.route] = t.slot
			c.settle(t.route, 0)
		}
	}
	c.slot = c.slot[:c.before]
	if c.spare {
		for _, lead := range c.removed {
			c.link[lead].route = c.home[lead]
		}
	}
}

// keep makes the iteration's routes the present ones.
func (c *rchain) keep() {
	for _, t := range c.journal {
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
			if c.missing[lead] && c.taken[lead] != c.tick {
				kept = append(kept, lead)
			}
		}
		c.absent = append(kept, c.failed...)
	}
	c.cost += c.change
	c.over += c.more
	c.dropEmpty()
}

// dropEmpty closes the gaps that routes without customers leave.
func (c *rchain) dropEmpty() {
	for _, t := range c.journal {
		if int(t.route) < len(c.slot) && c.slots[c.slot[t.route]].count == 0 {
			goto sweep
		}
	}
	return
sweep:
	for r := 0; r < len(c.slot); {
		s := &c.slots[c.slot[r]]
		if s.count > 0 || s.lock > 0 {
			r++
			continue
		}
		if s.kind >= 0 {
			c.used[s.kind]--
		}
		c.free = append(c.free, c.slot[r])
		last := len(c.slot) - 1
		c.slot[r] = c.slot[last]
		c.slot = c.slot[:last]
		if r < last {
			c.reindex(int32(r), 0)
		}
	}
}

// reindex sets where the customers of a route are, those before a stop as they were.
func (c *rchain) reindex(r int32, from int) {
	s := &c.slots[c.slot[r]]
	stops := s.stops
	for i := max(1, from-1); i < len(stops)-1; i++ {
		v := stops[i].node
		if int(v) >= c.depots {
			c.link[v] = link{stops[i-1].node, stops[i+1].node, stops[i].leg, stops[i+1].leg, r, int32(i)}
		}
	}
	c.noteEnds(r)
}

// settle is reindex where the customers of a route are in it already.
func (c *rchain) settle(r int32, from int) {
	if c.spare {
		c.noteEnds(r)
	} else {
		c.reindex(r, from)
	}
}

// noteEnds notes what insertions ask of a route.
func (c *rchain) noteEnds(r int32) {
	s := &c.slots[c.slot[r]]
	e := &c.ends[r]
	if s.kind < 0 {
		e.size = 0
		return
	}
	stops := s.stops
	n := len(stops)
	k := &c.kinds[s.kind]
	e.size, e.kind = int32(n), s.kind
	if c.lean {
		c.noteLean(e, s, k)
	}
	if !c.spare {
		e.start, e.first, e.last, e.end = stops[0].node, stops[1].node, stops[n-2].node, stops[n-1].node
		e.in, e.out, e.rate = stops[1].leg, stops[n-1].leg, k.perDist
	}
	if c.easy {
		switch {
		case s.lock > 0 || s.count >= k.maxStops:
			e.del, e.pick = shut, shut
		case c.simple:
			room := c.room(k, 0, 0)
			e.del, e.pick = room-s.load[0].del, room-s.load[0].pick
		default: // evaluated position by position
			e.del, e.pick = math.MaxInt32, math.MaxInt32
		}
	}
	if c.sided && c.swift {
		i := 1
		for i < n-1 && c.side[stops[i].node]&1 == 0 {
			i++
		}
		e.firstOut, e.lastIn = int32(i), int32(i-1)
		if i < n-1 && c.side[stops[i].node]&2 != 0 {
			e.lastIn++
		}
	}
}

// set replaces all routes. It is false where one of them does not keep its limits.
func (c *rchain) set(routes [][]int32, kinds []int32, locks []int32) bool {
	c.free, c.slot, c.cost, c.over = c.free[:0], c.slot[:0], 0, 0
	if c.flat != nil {
		c.flat.live = false
	}
	for i := range c.slots {
		c.free = append(c.free, int32(i))
	}
	clear(c.used)
	for v := range c.link {
		c.link[v].route = -1
	}
	c.tick++
	c.journal = c.journal[:0]
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
		s := &c.slots[c.slot[r]]
		if locks != nil {
			s.lock = locks[i]
		}
		t := &c.kinds[kind]
		s.stops = append(s.stops[:0], stop{t.start, 0})
		last := t.start
		for _, v := range append(append([]int32(nil), route...), t.end) {
			s.stops = append(s.stops, stop{v, t.dist.at(last, v)})
			last = v
		}
		ok = c.refresh(s, 0, len(s.stops)-1) && s.over == 0 && ok
		c.reindex(r, 0)
		c.cost += s.cost
		for _, v := range route {
			c.cost += c.loss[v]
		}
	}
	c.absent = c.absent[:0]
	for _, lead := range c.tasks {
		c.missing[lead] = !c.served(lead)
		if c.missing[lead] {
			c.absent = append(c.absent, lead)
			c.cost += c.places[lead].price
		}
	}
	c.journal = c.journal[:0]
	c.remember()
	return ok
}

// served is whether a route serves a task.
func (c *rchain) served(lead int32) bool {
	if list := c.members[lead]; list != nil {
		for _, v := range list {
			if c.link[v].route >= 0 {
				return true
			}
		}
		return false
	}
	return c.link[lead].route >= 0
}

// remember copies the present routes as the best.
func (c *rchain) remember() {
	c.bestCost = c.cost
	c.best, c.bestKind = c.best[:0], c.bestKind[:0]
	for r := range c.slot {
		s := &c.slots[c.slot[r]]
		c.best = copyRoute(c.best, r, s.stops)
		c.bestKind = append(c.bestKind, s.kind)
	}
}
