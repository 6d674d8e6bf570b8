package search

import "unsafe"

// Flat routes of problems whose numbers are so small that 16 bits hold them, or all but distances:
// up to 127 places, no windows. What a route asks of an insertion stands by route and not by
// position, so that an insertion changes a few numbers, and thirty-two positions are judged at
// once, sixteen where distances take 32 bits. What a reader could break: no sum of numbers that are
// looked at wraps but one that is too long in any case, and the order of deliveries and pickups
// shows in the rows of distances: a neighbour whom it forbids is at denseBar or longBar.
const (
	denseLanes     = 32
	densePlaces    = 128 // at most, and the length of a row
	denseRoutes    = 64
	densePositions = densePlaces + denseRoutes
	denseMost      = 1<<13 - 1 // a distance at most
	denseTolls     = 64        // overload that has a toll
	denseBar       = 1<<15 - 1
	denseAbsent    = -1 << 15             // the leg of a position that is not in use
	denseCost      = denseBar - denseMost // below every detour that is barred
	denseNone      = -2 * (denseMost + 1) // the amount of a customer who gets none

	// the same where distances take 32 bits
	longRoutes, longTolls = 32, 32
	longBar               = 1<<29 - 1
	longCost              = longBar - flatMost
)

// dense is the lists that an insertion reads.
type dense struct {
	long  [densePositions]int32 // legs that take 32 bits
	slack [denseRoutes]int32    // and spares
	// by position
	to, leg, route [densePositions]int16
	at             [densePositions]int16 // the place where the way begins
	// by route
	gets  [denseRoutes]int16 // as in flat; where the order matters, the most on board without more overload
	gives [denseRoutes]int16
	extra [denseRoutes]int16
	spare [denseRoutes]int16
	// by position, where the order matters
	pre, suf [densePositions]int16
	load     [densePositions]int16 // what is on board there
}

// denseAsk is a customer, and the lists.
type denseAsk struct {
	in, out         *int16 // by customer and place: the distance from there, and to there
	row             int64  // the customer's
	lists           *dense
	plain, end      int64 // positions, whole numbers of lanes: those below plain are all places
	most, get, give int32
	mixed, limited  int32
	wide            int32 // there are more than 64 places
	toll            float32
	tolls           [denseTolls]int16 // by amount
	far             int32             // distances take 32 bits, as below
	longIn, longOut *int32
	longTolls       [longTolls]int32
}

// denseOn is whether routes may be dense: flat ones are quicker in plain Go.
var denseOn = denseQuick

// fits is whether 16 bits hold the numbers of a problem. Overload is twice the mean of the larger
// amounts of customers at most, so that all amounts together are at most denseMost.
func (f *flat) fits() bool {
	c := f.rchain
	if !denseOn || c.prompt || c.nodes >= densePlaces || f.overMost >= denseTolls {
		return false
	}
	for i := range c.kinds {
		for _, x := range c.kinds[i].dist.cell {
			f.long = f.long || x > denseMost
		}
	}
	return !f.long || f.overMost < longTolls
}

// denseTables makes the rows of distances.
func (f *flat) denseTables() {
	if f.long {
		f.longIn, f.longOut = sidedRows[int32](f, longBar)
	} else {
		f.in, f.out = sidedRows[int16](f, denseBar)
	}
}

// sidedRows is the distances from all places and to them, by customer.
func sidedRows[T int16 | int32](f *flat, bar T) (in, out []T) {
	c := f.rchain
	in = make([]T, (c.nodes+1)*densePlaces)
	out = in
	if c.sided {
		out = make([]T, len(in))
	}
	for v := range c.nodes + 1 {
		for w := range c.nodes + 1 {
			x := T(f.rows[v*f.stride+w])
			i := v*densePlaces + w
			in[i], out[i] = x, x
			// A delivery goes behind no pickup, a pickup before no delivery.
			if c.sided && c.side[v]&2 != 0 && c.side[w]&1 != 0 {
				in[i] = bar
			}
			if c.sided && c.side[v]&1 != 0 && c.side[w]&2 != 0 {
				out[i] = bar
			}
		}
	}
	return in, out
}

// wayFrom is the distance from a place of a row.
func (f *flat) wayFrom(i int) int32 {
	if f.long {
		return f.longIn[i]
	}
	return int32(f.in[i])
}

// denseBestGo is the last of the cheapest positions below most, and what it costs; -1: none.
func denseBestGo(a *denseAsk) (int32, int32) {
	d := a.lists
	i := uintptr(a.row) * densePlaces
	cost, at := a.most-1, int32(-1)
	for p := range a.end {
		r, from, to := d.route[p]&(denseRoutes-1), i+uintptr(d.at[p]), i+uintptr(d.to[p])
		var before, behind, leg, spare, bar, absent int32
		if a.far != 0 {
			before, behind = nth(a.longIn, from), nth(a.longOut, to)
			leg, spare, bar, absent = d.long[p], d.slack[r], longBar, absentLeg
		} else {
			before, behind = int32(nth(a.in, from)), int32(nth(a.out, to))
			leg, spare, bar, absent = int32(d.leg[p]), int32(d.spare[r]), denseBar, denseAbsent
		}
		if leg == absent || before == bar || behind == bar || before+behind-leg > spare {
			continue
		}
		delta := before + behind - leg
		more := max(a.get-int32(d.gets[r]), a.give-int32(d.gives[r]))
		if a.mixed != 0 {
			more = max(a.get+int32(d.pre[p]), a.give+int32(d.suf[p])) - int32(d.gets[r])
		}
		if more > int32(d.extra[r]) {
			continue
		}
		if more > 0 {
			delta += int32(min(float32(more)*a.toll, tollCap))
		}
		if delta <= cost {
			cost, at = delta, int32(p)
		}
	}
	return cost, at
}

// nth is an element of a list.
func nth[T any](list *T, i uintptr) T {
	return *(*T)(unsafe.Add(unsafe.Pointer(list), i*unsafe.Sizeof(*list)))
}

// charge sets what overload costs.
func (a *denseAsk) charge(toll float32) {
	if a.toll == toll {
		return
	}
	a.toll = toll
	for i := range a.tolls {
		a.tolls[i] = int16(min(float32(i)*toll, denseBar))
	}
	for i := range a.longTolls {
		a.longTolls[i] = int32(min(float32(i)*toll, tollCap))
	}
}

// denseBest is denseBestGo by the quickest version.
func (f *flat) denseBest() (int32, int32) {
	a := &f.denseAsk
	if !denseQuick {
		return denseBestGo(a)
	}
	most, limit := a.most, int32(denseCost)
	var cost, at int32
	if f.long {
		limit = longCost
		a.most = min(most, limit)
		cost, at = denseLongQuick(a)
	} else {
		a.most = min(most, limit)
		cost, at = denseBestQuick(a)
	}
	if at < 0 && most > limit {
		a.most = most
		return denseBestGo(a)
	}
	return cost, at
}

// denseKind is what a kind of vehicle allows, denseCustomer what a customer asks.
type (
	denseKind struct {
		room, maxStops int32
		maxDist        int64
	}
	denseCustomer struct{ get, give int32 }
)

// denseLimits makes them.
func (f *flat) denseLimits() {
	c := f.rchain
	for i := range c.kinds {
		k := &c.kinds[i]
		f.limits = append(f.limits, denseKind{min(k.cap[0], denseMost), int32(k.maxStops), min(k.maxDist, 1<<40)})
	}
	f.wants = make([]denseCustomer, c.nodes)
	for v := range f.wants {
		w := denseCustomer{denseNone, denseNone}
		if q := c.amounts[v].del; q > 0 {
			w.get = q
		}
		if q := c.amounts[v].pick; q > 0 {
			w.give = q
		}
		f.wants[v] = w
	}
}

// pointDense points denseAsk to the lists.
func (f *flat) pointDense() {
	a := &f.denseAsk
	a.lists = f.dense
	if f.least = denseAbsent + 1; f.long {
		a.longIn, a.longOut, a.far, f.least = &f.longIn[0], &f.longOut[0], 1, -flatTime
	} else {
		a.in, a.out = &f.in[0], &f.out[0]
	}
	a.plain = int64(f.base) &^ (denseLanes - 1)
	flag := func(set bool) int32 {
		if set {
			return 1
		}
		return 0
	}
	f.perDist = f.kinds[0].perDist // of all kinds
	a.mixed, a.limited, a.wide = flag(f.mixed), flag(f.limited), flag(f.base > 64)
}

// prime makes denseAsk ready for the insertions of an iteration.
func (f *flat) prime() {
	c, a := f.rchain, &f.denseAsk
	a.charge(float32(float64(float64(c.weights[0])*c.toll) * c.perRate[0]))
}

// findDense is find.
func (f *flat) findDense(v int32, cost float64) (int32, float64) {
	c, a := f.rchain, &f.denseAsk
	w := &f.wants[v]
	a.row, a.get, a.give = int64(v), w.get, w.give
	a.most = max(f.least, min(below(cost*c.perRate[0]), flatTime))
	a.end = int64(denseWhole(int(f.base) + f.routes))
	c.moves += int64(len(c.tasks) + f.routes)
	delta, at := f.denseBest()
	if at < 0 {
		return -1, cost
	}
	if c.wait == 0 {
		delta, at = f.overlook(delta, at)
		if at < 0 {
			return -1, cost
		}
	} else {
		c.wait--
	}
	if sum := float64(float64(delta) * f.perDist); sum < cost {
		return at, sum
	}
	return -1, cost
}

func denseWhole(n int) int { return (n + denseLanes - 1) &^ (denseLanes - 1) }

// legAt is the distance of a position's way, setLeg sets it; absentLeg: it is not in use.
func (f *flat) legAt(p int32) int32 {
	if d := f.dense; d != nil {
		if f.long {
			return d.long[p]
		}
		return int32(d.leg[p])
	}
	return f.leg[p]
}

func (f *flat) setLeg(p, leg int32) {
	d := f.dense
	switch {
	case d == nil:
		f.leg[p] = leg
	case f.long:
		d.long[p] = leg
	default:
		d.leg[p] = int16(max(denseAbsent, leg))
	}
}

// copy takes the lists of another that are in use.
func (d *dense) copy(of *dense, long, mixed bool) {
	from, to := unsafe.Offsetof(d.to), unsafe.Offsetof(d.pre)
	if long {
		from = 0
	}
	if mixed {
		to = unsafe.Sizeof(*d)
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(d)), to)[from:], unsafe.Slice((*byte)(unsafe.Pointer(of)), to)[from:])
}

// clear leaves no position in use.
func (d *dense) clear() {
	*d = dense{}
	for p := range d.leg {
		d.leg[p], d.long[p], d.at[p] = denseAbsent, absentLeg, int16(p)
	}
	for r := range d.spare {
		d.spare[r], d.slack[r] = denseBar, flatTime
	}
}

// refreshDense is refresh.
func (f *flat) refreshDense(r int32) bool {
	d := f.dense
	k := &f.kinds[f.kind[r]]
	h := f.base + r
	d.at[h], d.route[h] = int16(k.start), int16(r)
	var dist int64
	var count, del, pick int32
	from := k.start
	for p := h; ; {
		v, to := f.succ[p], k.end
		if v >= 0 {
			to = v
		}
		leg := f.wayFrom(int(to)*densePlaces + int(from))
		d.to[p] = int16(to)
		f.setLeg(p, leg)
		dist += int64(leg)
		if v < 0 {
			break
		}
		f.pred[v], f.route[v], d.route[v] = p, r, int16(r)
		count++
		a := &f.amounts[v]
		del, pick = del+a.del, pick+a.pick
		p, from = v, v
	}
	f.dist[r], f.count[r], f.del[r], f.pick[r] = dist, count, del, pick
	if f.mixed {
		f.densePeaks(r)
	}
	return f.settle(r)
}

// settle brings what stands by route up to its customers. It is false where the route breaks a
// limit.
func (f *flat) settle(r int32) bool {
	d := f.dense
	k := &f.limits[f.kind[r]]
	del, pick := f.del[r], f.pick[r]
	peak := max(del, pick)
	if f.mixed {
		peak = int32(d.suf[f.base+r])
		del, pick = 0, 0
	}
	over := max(0, peak-k.room)
	f.over[r] = int64(over) * f.weights[0]
	most := int32(0)
	if f.soft {
		most = f.overMost
	}
	room := k.room + over
	i := r & (denseRoutes - 1)
	d.extra[i] = int16(max(0, most-over))
	d.gets[i], d.gives[i] = int16(room-del), int16(room-pick)
	ok := f.soft || over == 0
	if f.limited {
		left := k.maxDist - f.dist[r]
		ok = ok && left >= 0 && f.count[r] <= k.maxStops
		if f.count[r] >= k.maxStops {
			left = -flatTime
		}
		if f.long {
			d.slack[i] = int32(max(-flatTime, min(flatTime, left)))
		} else {
			d.spare[i] = int16(max(-denseBar, min(denseBar, left)))
		}
	}
	return ok
}

// densePeaks sets what is on board along a route.
func (f *flat) densePeaks(r int32) {
	d := f.dense
	succ, pred := (*[densePositions]int32)(f.succ), (*[densePositions]int32)(f.pred)
	h := f.base + r
	load := f.del[r]
	most := load
	p := h
	for {
		most = max(most, load)
		d.pre[p], d.load[p] = int16(most), int16(load)
		v := succ[p]
		if v < 0 {
			break
		}
		a := &f.amounts[v]
		load += a.pick - a.del
		p = v
	}
	for tail := int16(0); ; p = pred[p] {
		tail = max(tail, d.load[p])
		d.suf[p] = tail
		if p == h {
			return
		}
	}
}

// board brings what is on board along a route up to a customer who was put behind a position.
func (f *flat) board(r, v, p int32) {
	d := f.dense
	succ, pred := (*[densePositions]int32)(f.succ), (*[densePositions]int32)(f.pred)
	a := &f.amounts[v]
	del, pick := int16(a.del), int16(a.pick)
	next := succ[v]
	load := d.load[p] + pick
	tail := int16(0)
	if next >= 0 {
		tail = d.suf[next] + pick
	}
	tail = max(tail, load)
	d.load[v], d.suf[v] = load, tail
	switch {
	case pick == 0:
		// more to deliver before
		most := d.pre[p] + del
		for q := p; ; q = pred[q] {
			load = d.load[q] + del
			tail = max(tail, load)
			d.load[q], d.suf[q] = load, tail
			d.pre[q] += del
			if q >= f.base {
				break
			}
		}
		d.pre[v] = most
		for q := next; q >= 0 && d.pre[q] < most; q = succ[q] {
			d.pre[q] = most
		}
	case del == 0:
		// more that was picked up behind
		most := max(d.pre[p], load)
		d.pre[v] = most
		for q := next; q >= 0; q = succ[q] {
			load = d.load[q] + pick
			most = max(most, load)
			d.load[q], d.pre[q] = load, most
			d.suf[q] += pick
		}
		for q := p; d.suf[q] < tail; q = pred[q] {
			d.suf[q] = tail
			if q >= f.base {
				break
			}
		}
	default:
		f.densePeaks(r)
	}
}

// putDense is put.
func (f *flat) putDense(v, p int32) {
	d := f.dense
	succ, pred, route := (*[densePositions]int32)(f.succ), (*[densePositions]int32)(f.pred), (*[densePositions]int32)(f.route)
	r := route[p]
	f.note(r)
	over := f.over[r]
	next, to, from := succ[p], d.to[p], d.at[p]
	row := int(v) * densePlaces
	var detour int64
	if f.long {
		first, second := f.longIn[row+int(from)], f.longOut[row+int(to)]
		detour = int64(first) + int64(second) - int64(d.long[p])
		d.long[p], d.long[v] = first, second
	} else {
		first, second := f.in[row+int(from)], f.out[row+int(to)]
		detour = int64(first) + int64(second) - int64(d.leg[p])
		d.leg[p], d.leg[v] = first, second
	}
	succ[p], pred[v], succ[v] = v, p, next
	if next >= 0 {
		pred[next] = v
	}
	route[v], d.route[v] = r, int16(r)
	d.to[v], d.to[p] = to, int16(v)
	f.dist[r] += detour
	f.count[r]++
	a := &f.amounts[v]
	f.del[r], f.pick[r] = f.del[r]+a.del, f.pick[r]+a.pick
	if f.mixed {
		f.board(r, v, p)
	}
	f.settle(r)
	f.book(float64(float64(detour)*f.perDist), f.over[r]-over)
}

// unlink takes the removed customers out of their routes.
func (f *flat) unlink() {
	c, d := f.rchain, f.dense
	succ, pred, route := (*[densePositions]int32)(f.succ), (*[densePositions]int32)(f.pred), (*[densePositions]int32)(f.route)
	taken, tick, long := c.taken, c.tick, f.long
	for _, v := range c.removed {
		r := route[v]
		if r < 0 {
			continue
		}
		if f.seenAt[r] != tick {
			f.note(r)
			f.priceWas[r], f.overWas[r] = f.price(r), f.over[r]
		}
		// all that leave from here on
		p := pred[v]
		legs := int64(f.legAt(p))
		to := int16(0)
		var count, del, pick int32
		for {
			if long {
				legs += int64(d.long[v])
				d.long[v] = absentLeg
			} else {
				legs += int64(d.leg[v])
				d.leg[v] = denseAbsent
			}
			count++
			a := &f.amounts[v]
			del, pick = del+a.del, pick+a.pick
			route[v] = -1
			next := succ[v]
			if next >= 0 && taken[next] == tick {
				v = next
				continue
			}
			to = d.to[v]
			succ[p] = next
			if next >= 0 {
				pred[next] = p
			}
			break
		}
		leg := f.wayFrom(int(to)*densePlaces + int(d.at[p]))
		d.to[p] = to
		f.setLeg(p, leg)
		f.dist[r] += int64(leg) - legs
		f.count[r] -= count
		f.del[r], f.pick[r] = f.del[r]-del, f.pick[r]-pick
	}
	for _, r := range f.touch {
		if f.mixed {
			f.densePeaks(r)
		}
		if f.count[r] > 0 && !f.settle(r) {
			for v := f.succ[f.base+r]; v >= 0; v = f.succ[v] {
				c.taken[v] = c.tick
				c.removed = append(c.removed, v)
				f.route[v] = -1
				f.setLeg(v, absentLeg)
			}
			f.count[r] = 0
		}
		if f.count[r] == 0 {
			c.used[f.kind[r]]--
			f.dist[r], f.over[r] = 0, 0
			f.close(r)
		}
		c.book(f.price(r)-f.priceWas[r], f.over[r]-f.overWas[r])
	}
	f.prime()
}
