package search

import (
	"slices"

	"haul/internal/search/model"
)

// The routes of the simplest problems (see scan_simple) as lists by customer: what follows each
// customer in its route. An insertion reads the lists from end to end, without looking at routes. A
// position is a customer, or the start of a route, and means the leg from there to the next stop.
// An unused position has the leg absentLeg, so that no detour over it is short. All that an
// iteration changes is in two lists, and copying them undoes it.

// Numbers of 32 bits hold the sum of any two distances, of a time, a service and a drive, and of a
// detour and its penalty.
const (
	absentLeg = -1 << 30 // makes a detour longer than any other
	flatBar   = -1 << 29 // the room of a position that the order of deliveries and pickups forbids
)

// flat is the state of a chain's routes while it is annealed.
type flat struct {
	*candidate
	live bool // it has the chain's routes, and the chain's slots do not

	base   int32 // the position of the first route's start
	size   int   // positions that there may be
	routes int

	state, was []int32 // all lists of positions, one behind the other
	wide, past []int64 // and of routes
	before     int     // the routes that was has
	saved      bool    // it has the present ones

	// by position
	succ  []int32 // the next customer; -1: the route ends
	pred  []int32 // the position before a customer
	from  []int32 // the place where the way begins, and where it leads to
	to    []int32
	leg   []int32 // its distance and duration
	drive []int32
	ready []int32 // when a vehicle leaves at the soonest, and arrives at the latest
	due   []int32
	route []int32 // -1: none
	pre   []int32 // the most on board up to here, and from here on, where the order matters
	suf   []int32
	spare []int32 // what the route's length leaves
	gets  []int32 // the largest delivery that adds no overload here, and the largest pickup
	gives []int32
	extra []int32 // overload that may be added

	// by route
	kind  []int32
	count []int32
	del   []int32 // amounts of all customers
	pick  []int32
	dist  []int64
	over  []int64

	spans  []model.TimeWindow
	starts []model.TimeWindow // by kind: service is when the vehicle leaves
	ends   []model.TimeWindow
	worth  []float64 // by customer: the price of leaving it out
	alone  []int64   // by kind and customer: the way out and back; -1: it may not be
	cutAt  []int64   // by route: tick of its last cut, and of its last change
	seenAt []int64
	touch  []int32 // routes changed by this iteration
	line   []int32

	limited, picks  bool    // lengths or stops have limits, some customers give
	rows, ins, outs []int32 // by customer: distances, times to it and from it, padded
	stride          int
	ask             flatAsk
	overMost        int32        // overload of a route at most, in amounts
	eased           overloadRule // as extra has it

	// what stands for the lists from from to extra, where numbers are small (packed16.go); nil: they
	// are not
	dense    *dense
	denseWas dense
	denseAsk denseAsk
	width    width
	in, out  []int16 // by customer: distances, denseBar where the order forbids them
	priceWas []float64
	overWas  []int64
	limits   []denseKind
	wants    []denseCustomer
	perDist  float64
	longIn   []int32 // as in and out
	longOut  []int32
	least    int32 // costs are not looked for below
}

// width is the numbers that routes are in, if they are few.
type width uint8

const (
	widthLists width = iota
	width16          // 16 bits
	width32          // 16 bits, and distances 32
)

// newFlat makes the lists of a problem whose store is model.Packed.
func newFlat(c *candidate) *flat {
	f := &flat{candidate: c, stride: lanes(c.Nodes + 1)}
	f.base = int32(f.stride)
	for i := range c.Types {
		f.limited = f.limited || c.Types[i].MaxDist < model.Endless || c.Types[i].MaxStops < len(c.Tasks)
	}
	for _, v := range c.Tasks {
		f.picks = f.picks || c.Amounts[v].Pick > 0
	}
	f.overMost = int32(min(model.MaxTime32, maxOverload/c.OverloadWeights[0]))
	if f.width = f.narrowest(); f.width != widthLists {
		f.stride = densePlaces
	}
	f.tables()
	if f.width != widthLists {
		f.denseTables()
		f.denseLimits()
	}
	narrow := func(x int64) int32 { return int32(max(-model.MaxTime32, min(model.MaxTime32, x))) }
	for v := range c.Locations {
		at := &c.Locations[v]
		f.worth = append(f.worth, at.Price)
		f.spans = append(f.spans, model.TimeWindow{Early: narrow(at.Early), Late: narrow(at.Late), Service: narrow(at.Service)})
	}
	for i := range c.Types {
		k := &c.Types[i]
		f.starts = append(f.starts, model.TimeWindow{Service: narrow(k.StartSeg.Early + k.StartSeg.Dur), Late: narrow(k.StartSeg.Late)})
		f.ends = append(f.ends, model.TimeWindow{Late: narrow(k.EndSeg.Late)})
		for v := range int32(c.Nodes) {
			way := int64(k.Distances.At(k.Start, v)) + int64(k.Distances.At(v, k.End))
			if int(v) < c.Depots {
				way = -1
			} else if _, ok := c.alone(int32(i), v, way); !ok {
				way = -1
			}
			f.alone = append(f.alone, way)
		}
	}
	return f
}

// allot makes lists for a number of routes at most.
func (f *flat) allot(routes int) {
	n := f.stride + routes
	f.base = int32(f.stride)
	if f.dense = nil; f.width != widthLists && routes <= denseRoutes && (f.width == width16 || routes <= longRoutes) {
		f.dense, n, f.base = new(dense), densePositions, int32(f.Nodes+1)
	}
	f.size = n
	lists := []*[]int32{&f.succ, &f.pred, &f.route, &f.from, &f.to, &f.leg, &f.gets, &f.extra}
	// What does not change is not copied.
	still := []*[]int32{&f.gives, &f.spare, &f.drive, &f.ready, &f.due, &f.pre, &f.suf}
	part := func(some bool, of ...*[]int32) {
		if some {
			lists = append(lists, of...)
			still = slices.DeleteFunc(still, func(p *[]int32) bool { return slices.Contains(of, p) })
		}
	}
	part(f.picks, &f.gives)
	part(f.limited, &f.spare)
	part(f.Traits.Time == model.WindowsOnly, &f.drive, &f.ready, &f.due)
	part(f.Traits.Load.InOrder(), &f.pre, &f.suf)
	if f.dense != nil {
		lists, still = lists[:3], nil
		f.priceWas, f.overWas = make([]float64, routes), make([]int64, routes)
	}
	f.state = make([]int32, len(lists)*n+4*routes)
	f.was = make([]int32, len(f.state))
	f.wide = make([]int64, 2*routes)
	f.past = make([]int64, len(f.wide))
	rest := f.state
	next := func(n int) []int32 {
		list := rest[:n:n]
		rest = rest[n:]
		return list
	}
	for _, list := range lists {
		*list = next(n)
	}
	for _, list := range still {
		*list = make([]int32, n)
	}
	f.kind, f.count, f.del, f.pick = next(routes), next(routes), next(routes), next(routes)
	f.dist, f.over = f.wide[:routes:routes], f.wide[routes:]
	f.cutAt, f.seenAt = make([]int64, routes), make([]int64, routes)
	if f.dense != nil {
		f.pointDense()
	} else {
		f.point()
	}
}

// load takes the chain's routes; false where it may not: one is fixed in part, or a customer is in
// none.
func (f *flat) load() bool {
	c := f.candidate
	if len(c.absent) > 0 || c.missed {
		return false
	}
	for _, id := range c.routes {
		if s := &c.states[id]; s.lock > 0 || s.kind < 0 {
			return false
		}
	}
	if len(f.kind) <= 2*len(c.routes) {
		f.allot(lanes(2*len(c.routes) + 1))
	}
	if f.dense != nil {
		f.dense.clear()
	}
	for p := range f.size {
		f.route[p], f.succ[p], f.pred[p] = -1, -1, -1
		if f.dense != nil {
			continue
		}
		f.spare[p], f.gives[p], f.leg[p] = model.MaxTime32, model.MaxTime32, absentLeg
		f.from[p], f.to[p] = 0, 0
		if p < c.Nodes {
			f.from[p] = int32(p)
		}
	}
	f.routes = 0
	for _, id := range c.routes {
		s := &c.states[id]
		r := f.open(s.kind)
		last := f.base + r
		f.eased = c.overloads
		for _, at := range s.stops[1 : len(s.stops)-1] {
			f.succ[last], f.pred[at.node] = at.node, last
			last = at.node
		}
		f.succ[last] = -1
		if !f.refresh(r) {
			return false
		}
	}
	f.live, f.saved = true, false
	return true
}

// open adds a route without customers. Its vehicle is not counted.
func (f *flat) open(kind int32) int32 {
	r := int32(f.routes)
	f.routes++
	f.kind[r], f.count[r], f.del[r], f.pick[r], f.dist[r], f.over[r] = kind, 0, 0, 0, 0, 0
	h := f.base + r
	f.route[h], f.succ[h] = r, -1
	f.cutAt[r] = 0
	return r
}

// close takes a route's start out of use.
func (f *flat) close(r int32) {
	h := f.base + r
	f.route[h], f.succ[h] = -1, -1
	f.setLeg(h, absentLeg)
}

// refresh brings all lists up to the order of a route's customers, as succ has it. It is false
// where the route breaks a limit.
func (f *flat) refresh(r int32) bool {
	if f.dense != nil {
		return f.refreshDense(r)
	}
	k := &f.Types[f.kind[r]]
	h := f.base + r
	var dist int64
	var count, del, pick int32
	f.from[h] = k.Start
	for p := h; ; {
		v, at := f.succ[p], k.End
		if v >= 0 {
			at = v
		}
		f.to[p] = at
		f.leg[p] = f.rows[int(f.from[p])*f.stride+int(at)]
		dist += int64(f.leg[p])
		if v < 0 {
			break
		}
		f.pred[v], f.route[v] = p, r
		count++
		a := &f.Amounts[v]
		del, pick = del+a.Del, pick+a.Pick
		p = v
	}
	f.dist[r], f.count[r], f.del[r], f.pick[r] = dist, count, del, pick
	peak := max(del, pick)
	if f.Traits.Load.InOrder() {
		peak = f.peaks(r)
	}
	f.over[r] = f.overloadOf(peak, k, 0, 0)
	f.fill(r, peak, true)
	ok := dist <= k.MaxDist && int(count) <= k.MaxStops && (f.overloads != noOverload || f.over[r] == 0)
	if f.Traits.Time == model.WindowsOnly {
		ok = f.times(r) && ok
	}
	return ok
}

// fill sets what insertions into a route ask of it. Unless all of its positions are to have it, the
// overload that may be added is as it was where the start's is.
func (f *flat) fill(r, peak int32, all bool) {
	k := &f.Types[f.kind[r]]
	room := min(k.Capacity[0], model.Largest32)
	over := max(0, peak-room)
	var extra int32
	if f.overloads != noOverload {
		extra = max(0, f.overMost-over)
	}
	h := f.base + r
	if all || f.extra[h] != extra {
		for p := h; p >= 0; p = f.succ[p] {
			f.extra[p] = extra
		}
	}
	if f.limited {
		spare := int32(max(-model.MaxTime32, min(model.MaxTime32, k.MaxDist-f.dist[r])))
		if int(f.count[r]) >= k.MaxStops {
			spare = -model.MaxTime32
		}
		for p := h; p >= 0; p = f.succ[p] {
			f.spare[p] = spare
		}
	}
	gets, gives := room-f.del[r]+over, room-f.pick[r]+over
	switch {
	case f.Traits.Load.InOrder():
		room += over
		for p := h; p >= 0; p = f.succ[p] {
			f.gets[p], f.gives[p] = room-f.pre[p], room-f.suf[p]
		}
	case f.Traits.Order == model.BackhaulsLastBySide:
		// Deliveries go before the first pickup, pickups behind the last delivery.
		p := h
		for ; f.Side[f.to[p]]&2 != 0; p = f.succ[p] {
			f.gets[p], f.gives[p] = gets, flatBar
		}
		f.gets[p], f.gives[p] = gets, gives
		if f.Side[f.from[p]]&1 != 0 {
			f.gets[p] = flatBar // it gets and gives
		}
		for p = f.succ[p]; p >= 0; p = f.succ[p] {
			f.gets[p], f.gives[p] = flatBar, gives
		}
	default:
		for p := h; p >= 0; p = f.succ[p] {
			f.gets[p] = gets
		}
		for p := h; f.picks && p >= 0; p = f.succ[p] {
			f.gives[p] = gives
		}
	}
}

// peaks sets what is on board along a route, and returns the most.
func (f *flat) peaks(r int32) int32 {
	h := f.base + r
	load := f.del[r]
	most := load
	p := h
	for {
		most = max(most, load)
		f.pre[p], f.suf[p] = most, load
		v := f.succ[p]
		if v < 0 {
			break
		}
		a := &f.Amounts[v]
		load += a.Pick - a.Del
		p = v
	}
	peak := most
	for most = 0; ; p = f.pred[p] {
		most = max(most, f.suf[p])
		f.suf[p] = most
		if p == h {
			return peak
		}
	}
}

// times sets when a vehicle is where; false where it is late.
func (f *flat) times(r int32) bool {
	kind := f.kind[r]
	h := f.base + r
	at := f.starts[kind].Service
	p := h
	f.ready[h] = at
	for {
		f.drive[p] = f.outs[int(f.from[p])*f.stride+int(f.to[p])]
		at += f.drive[p]
		v := f.succ[p]
		if v < 0 {
			break
		}
		s := &f.spans[v]
		if at > s.Late {
			return false
		}
		at = max(at, s.Early) + s.Service
		f.ready[v] = at
		p = v
	}
	if at > f.ends[kind].Late {
		return false
	}
	due := f.ends[kind].Late
	for ; ; p = f.pred[p] {
		f.due[p] = due
		if p == h {
			return true
		}
		s := &f.spans[p]
		due = min(due-f.drive[p]-s.Service, s.Late)
	}
}

// stops is the customers of a route.
func (f *flat) stops(r int32) []int32 {
	f.line = f.line[:0]
	for v := f.succ[f.base+r]; v >= 0; v = f.succ[v] {
		f.line = append(f.line, v)
	}
	return f.line
}

// remember copies the routes as the chain's best.
func (f *flat) remember() {
	c := f.candidate
	c.bestCost = c.cost
	for len(c.best) < f.routes {
		c.best = append(c.best, nil)
	}
	c.best, c.bestKind = c.best[:f.routes], c.bestKind[:0]
	for r := range int32(f.routes) {
		c.best[r] = append(c.best[r][:0], f.stops(r)...)
		c.bestKind = append(c.bestKind, f.kind[r])
	}
}

// penalizedCost is what a route costs with its penalty.
func (f *flat) penalizedCost(r int32) float64 {
	k := &f.Types[f.kind[r]]
	return k.Fixed + float64(float64(f.dist[r])*k.PerDist) + float64(float64(f.over[r])*f.penalty)
}

// price is what a route costs without its penalty.
func (f *flat) price(r int32) float64 {
	if f.count[r] == 0 {
		return 0
	}
	k := &f.Types[f.kind[r]]
	return k.Fixed + float64(float64(f.dist[r])*k.PerDist)
}
