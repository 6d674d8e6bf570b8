package search

import "unsafe"

// Flat routes of problems whose numbers are so small that 16 bits hold them: up to 127 places, no
// windows. What a route asks of an insertion stands by route and not by position, so that an
// insertion changes a few numbers, and thirty-two positions are judged at once. What a reader could
// break: no sum of numbers that are looked at passes 16 bits but one that is too long in any case,
// and the order of deliveries and pickups shows in the rows of distances: a neighbour whom it
// forbids is at denseBar.
const (
	denseLanes     = 32
	denseBase      = 128 // places at most, and the position of the first route's start
	denseRoutes    = 64
	densePositions = denseBase + denseRoutes
	denseMost      = 1<<13 - 1 // a distance at most
	denseTolls     = 64        // overload that has a toll
	denseBar       = 1<<15 - 1
	denseAbsent    = -1 << 15             // the leg of a position that is not in use
	denseCost      = denseBar - denseMost // below every detour that is barred
	denseNone      = -2 * (denseMost + 1) // the amount of a customer who gets none
)

// dense is the lists that an insertion reads.
type dense struct {
	// by position
	to, leg, route [densePositions]int16
	// by route
	gets  [denseRoutes]int16 // as in flat; where the order matters, the most on board without more overload
	gives [denseRoutes]int16
	extra [denseRoutes]int16
	spare [denseRoutes]int16
	from  [denseRoutes]int16 // where it starts
	// by position, where the order matters
	pre, suf [densePositions]int16
}

// denseAsk is a customer, and the lists.
type denseAsk struct {
	in, out         *int16 // by place: the distance from there, and to there
	lists           *dense
	places, starts  int64 // positions of customers and of starts, whole numbers of lanes
	most, get, give int32
	mixed           int32
	toll            float32
	tolls           [denseTolls]int16 // by amount
}

// denseOn is whether routes may be dense: flat ones are quicker in plain Go.
var denseOn = denseQuick

// fits is whether 16 bits hold the numbers of a problem. Overload is twice the mean of the larger
// amounts of customers at most, so that all amounts together are at most denseMost.
func (f *flat) fits() bool {
	c := f.rchain
	if !denseOn || c.prompt || c.nodes >= denseBase || f.overMost >= denseTolls {
		return false
	}
	for i := range c.kinds {
		for _, x := range c.kinds[i].dist.cell {
			if x > denseMost {
				return false
			}
		}
	}
	return true
}

// denseTables makes the rows of distances.
func (f *flat) denseTables() {
	c := f.rchain
	f.in = make([]int16, (c.nodes+1)*denseBase)
	f.out = f.in
	if c.sided {
		f.out = make([]int16, len(f.in))
	}
	for v := range c.nodes + 1 {
		for w := range c.nodes + 1 {
			x := int16(f.rows[v*f.stride+w])
			i := v*denseBase + w
			f.in[i], f.out[i] = x, x
			// A delivery goes behind no pickup, a pickup before no delivery.
			if c.sided && c.side[v]&2 != 0 && c.side[w]&1 != 0 {
				f.in[i] = denseBar
			}
			if c.sided && c.side[v]&1 != 0 && c.side[w]&2 != 0 {
				f.out[i] = denseBar
			}
		}
	}
}

// denseBestGo is the last of the cheapest positions below most, and what it costs; -1: none.
func denseBestGo(a *denseAsk) (int32, int32) {
	d := a.lists
	in, out := unsafe.Slice(a.in, denseBase), unsafe.Slice(a.out, denseBase)
	cost, at := a.most-1, int32(-1)
	for p := range densePositions {
		if p >= int(a.places) && p < denseBase || p >= denseBase+int(a.starts) || d.leg[p] == denseAbsent {
			continue
		}
		r, from := d.route[p]&(denseRoutes-1), p
		if p >= denseBase {
			from = int(d.from[p-denseBase])
		}
		before, behind := int32(in[from]), int32(out[d.to[p]])
		delta := before + behind - int32(d.leg[p])
		if before == denseBar || behind == denseBar || delta > int32(d.spare[r]) {
			continue
		}
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

// charge sets what overload costs.
func (a *denseAsk) charge(toll float32) {
	if a.toll == toll {
		return
	}
	a.toll = toll
	for i := range a.tolls {
		a.tolls[i] = int16(min(float32(i)*toll, denseBar))
	}
}

// denseBest is denseBestGo by the quickest version.
func (f *flat) denseBest() (int32, int32) {
	a := &f.denseAsk
	if !denseQuick {
		return denseBestGo(a)
	}
	most := a.most
	a.most = min(most, denseCost)
	cost, at := denseBestQuick(a)
	if at < 0 && most > denseCost {
		a.most = most
		return denseBestGo(a)
	}
	return cost, at
}

// askDense makes denseAsk of ask.
func (f *flat) askDense(v int32) {
	a, from := &f.denseAsk, &f.ask
	row := int(v) * denseBase
	a.in, a.out, a.lists = &f.in[row], &f.out[row], f.dense
	a.places, a.starts = int64(denseWhole(f.nodes+1)), int64(denseWhole(f.routes))
	a.most, a.get, a.give = max(denseAbsent+1, from.most), max(denseNone, from.get), max(denseNone, from.give)
	if f.mixed {
		a.mixed = 1
	}
	a.charge(from.toll)
}

func denseWhole(n int) int { return (n + denseLanes - 1) &^ (denseLanes - 1) }

// legAt is the distance of a position's way, setLeg sets it; absentLeg: it is not in use.
func (f *flat) legAt(p int32) int32 {
	if f.dense != nil {
		return int32(f.dense.leg[p])
	}
	return f.leg[p]
}

func (f *flat) setLeg(p, leg int32) {
	if f.dense != nil {
		f.dense.leg[p] = int16(max(denseAbsent, leg))
		return
	}
	f.leg[p] = leg
}

// copy takes the lists of another.
func (d *dense) copy(of *dense, mixed bool) {
	size := unsafe.Offsetof(d.pre)
	if mixed {
		size = unsafe.Sizeof(*d)
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(d)), size), unsafe.Slice((*byte)(unsafe.Pointer(of)), size))
}

// clear leaves no position in use.
func (d *dense) clear() {
	*d = dense{}
	for p := range d.leg {
		d.leg[p] = denseAbsent
	}
	for r := range d.spare {
		d.spare[r] = denseBar
	}
}

// level sets what insertions into a route ask of it.
func (f *flat) level(r, peak int32, k *kind) {
	d := f.dense
	room := min(k.cap[0], denseMost)
	over := max(0, peak-room)
	var extra int32
	if f.soft {
		extra = max(0, f.overMost-over)
	}
	d.extra[r] = int16(extra)
	if f.limited {
		spare := int16(max(-denseBar, min(denseBar, k.maxDist-f.dist[r])))
		if int(f.count[r]) >= k.maxStops {
			spare = -denseBar
		}
		d.spare[r] = spare
	}
	if room += over; f.mixed {
		d.gets[r] = int16(room)
	} else {
		d.gets[r], d.gives[r] = int16(room-f.del[r]), int16(room-f.pick[r])
	}
}

// refreshDense is refresh.
func (f *flat) refreshDense(r int32) bool {
	d := f.dense
	k := &f.kinds[f.kind[r]]
	h := f.base + r
	d.from[r], d.route[h] = int16(k.start), int16(r)
	var dist int64
	var count, del, pick int32
	from := k.start
	for p := h; ; {
		v, to := f.succ[p], k.end
		if v >= 0 {
			to = v
		}
		leg := f.in[int(to)*denseBase+int(from)]
		d.to[p], d.leg[p] = int16(to), leg
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
	return f.settle(r, k)
}

// settle brings what stands by route up to its customers. It is false where the route breaks a
// limit.
func (f *flat) settle(r int32, k *kind) bool {
	peak := max(f.del[r], f.pick[r])
	if f.mixed {
		peak = f.densePeaks(r)
	}
	f.over[r] = f.excess(peak, k, 0, 0)
	f.level(r, peak, k)
	return f.dist[r] <= k.maxDist && int(f.count[r]) <= k.maxStops && (f.soft || f.over[r] == 0)
}

// densePeaks is peaks.
func (f *flat) densePeaks(r int32) int32 {
	d := f.dense
	h := f.base + r
	load := f.del[r]
	most := load
	p := h
	for {
		most = max(most, load)
		d.pre[p], d.suf[p] = int16(most), int16(load)
		v := f.succ[p]
		if v < 0 {
			break
		}
		a := &f.amounts[v]
		load += a.pick - a.del
		p = v
	}
	peak := most
	for tail := int16(0); ; p = f.pred[p] {
		tail = max(tail, d.suf[p])
		d.suf[p] = tail
		if p == h {
			return peak
		}
	}
}

// putDense is put.
func (f *flat) putDense(v, p int32) {
	d := f.dense
	r := f.route[p]
	f.note(r)
	k := &f.kinds[f.kind[r]]
	over := f.over[r]
	next, to, from := f.succ[p], d.to[p], p
	if p >= f.base {
		from = int32(d.from[r])
	}
	row := int(v) * denseBase
	first, second := f.in[row+int(from)], f.out[row+int(to)]
	detour := int64(first) + int64(second) - int64(d.leg[p])
	f.succ[p], f.pred[v], f.succ[v] = v, p, next
	if next >= 0 {
		f.pred[next] = v
	}
	f.route[v], d.route[v] = r, int16(r)
	d.to[v], d.to[p] = to, int16(v)
	d.leg[p], d.leg[v] = first, second
	f.dist[r] += detour
	f.count[r]++
	a := &f.amounts[v]
	f.del[r], f.pick[r] = f.del[r]+a.del, f.pick[r]+a.pick
	f.settle(r, k)
	f.book(float64(float64(detour)*k.perDist), f.over[r]-over)
}

// unlink takes the removed customers out of their routes.
func (f *flat) unlink() {
	c, d := f.rchain, f.dense
	for _, v := range c.removed {
		r := f.route[v]
		if f.seenAt[r] != c.tick {
			f.note(r)
			f.priceWas[r], f.overWas[r] = f.price(r), f.over[r]
		}
		p, next, to := f.pred[v], f.succ[v], d.to[v]
		from := p
		if p >= f.base {
			from = int32(d.from[r])
		}
		f.succ[p] = next
		if next >= 0 {
			f.pred[next] = p
		}
		leg := f.in[int(to)*denseBase+int(from)]
		f.dist[r] += int64(leg) - int64(d.leg[p]) - int64(d.leg[v])
		d.to[p], d.leg[p], d.leg[v] = to, leg, denseAbsent
		f.route[v] = -1
		f.count[r]--
		a := &f.amounts[v]
		f.del[r], f.pick[r] = f.del[r]-a.del, f.pick[r]-a.pick
	}
	for _, r := range f.touch {
		if f.count[r] > 0 && !f.settle(r, &f.kinds[f.kind[r]]) {
			for v := f.succ[f.base+r]; v >= 0; v = f.succ[v] {
				c.taken[v] = c.tick
				c.removed = append(c.removed, v)
				f.route[v], d.leg[v] = -1, denseAbsent
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
}
