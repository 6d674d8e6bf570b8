package search

import (
	"unsafe"

	"haul/internal/search/model"
)

// Routes of problems whose numbers fit 16 bits (distances may take 32): up to 127 places,
// without windows. What limits an insertion is stored per route, not per position, so that an
// insertion changes a few numbers, and thirty-two positions are judged at once (sixteen with
// 32-bit distances). A sum that is compared may wrap only if it is
// too long in any case. The order of deliveries and pickups is part of the distance rows: a
// forbidden neighbour is at denseBar or longBar.
const (
	denseLanes     = 32
	densePlaces    = 128 // at most, and the length of a row
	denseRoutes    = 64
	densePositions = densePlaces + denseRoutes
	denseMost      = 1<<13 - 1 // a distance at most
	denseTolls     = 64        // overload that has a penalty
	denseBar       = 1<<15 - 1
	denseAbsent    = -1 << 15             // the leg of a position that is not in use
	denseCost      = denseBar - denseMost // below every detour that is barred
	denseNone      = -2 * (denseMost + 1) // the amount of a customer who gets none

	// the same where distances take 32 bits
	longRoutes, longTolls = 32, 32
	longBar               = 1<<29 - 1
	longCost              = longBar - model.Largest32
)

// dense is the lists that an insertion reads.
type dense struct {
	long  [densePositions]int32 // legs that take 32 bits
	slack [denseRoutes]int32    // and spares
	// by position
	to, leg, route [densePositions]int16
	at             [densePositions]int16 // the place where the way begins
	// by route
	// as in flat; where the order matters, the most on board without more overload
	gets  [denseRoutes]int16
	gives [denseRoutes]int16
	extra [denseRoutes]int16
	spare [denseRoutes]int16
	// by position, where the order matters
	pre, suf [densePositions]int16
	load     [densePositions]int16 // what is on board there
}

// denseOn reports whether routes may be dense: flat ones are quicker in plain Go.
var denseOn = denseQuick

// narrowest is the width that holds the numbers of a problem. Overload is twice the mean of the
// larger amounts of customers at most, so that all amounts together are at most denseMost.
func (f *flat) narrowest() width {
	c := f.candidate
	if !denseOn || c.Traits.Time == model.WindowsOnly || c.Nodes >= densePlaces || f.overMost >= denseTolls {
		return widthLists
	}
	for i := range c.Types {
		for _, x := range c.Types[i].Distances.Cell {
			if x <= denseMost {
				continue
			}
			if f.overMost < longTolls {
				return width32
			}
			return widthLists
		}
	}
	return width16
}

// denseTables makes the rows of distances.
func (f *flat) denseTables() {
	if f.width == width32 {
		f.longIn, f.longOut = sidedRows[int32](f, longBar)
	} else {
		f.in, f.out = sidedRows[int16](f, denseBar)
	}
}

// sidedRows is the distances from all places and to them, by customer.
func sidedRows[T int16 | int32](f *flat, bar T) (in, out []T) {
	c := f.candidate
	in = make([]T, (c.Nodes+1)*densePlaces)
	out = in
	if c.Traits.Order == model.BackhaulsLastBySide {
		out = make([]T, len(in))
	}
	for v := range c.Nodes + 1 {
		for w := range c.Nodes + 1 {
			x := T(f.rows[v*f.stride+w])
			i := v*densePlaces + w
			in[i], out[i] = x, x
			// A delivery goes behind no pickup, a pickup before no delivery.
			if c.Traits.Order == model.BackhaulsLastBySide && c.Side[v]&2 != 0 && c.Side[w]&1 != 0 {
				in[i] = bar
			}
			if c.Traits.Order == model.BackhaulsLastBySide && c.Side[v]&1 != 0 && c.Side[w]&2 != 0 {
				out[i] = bar
			}
		}
	}
	return in, out
}

// wayFrom is the distance from a place of a row.
func (f *flat) wayFrom(i int) int32 {
	if f.width == width32 {
		return f.longIn[i]
	}
	return int32(f.in[i])
}

// legAt is the distance of a position's way, setLeg sets it; absentLeg: it is not in use.
func (f *flat) legAt(p int32) int32 {
	if d := f.dense; d != nil {
		if f.width == width32 {
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
	case f.width == width32:
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
		d.spare[r], d.slack[r] = denseBar, model.MaxTime32
	}
}

// refreshDense is refresh.
func (f *flat) refreshDense(r int32) bool {
	d := f.dense
	k := &f.Types[f.kind[r]]
	h := f.base + r
	d.at[h], d.route[h] = int16(k.Start), int16(r)
	var dist int64
	var count, del, pick int32
	from := k.Start
	for p := h; ; {
		v, to := f.succ[p], k.End
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
		a := &f.Amounts[v]
		del, pick = del+a.Del, pick+a.Pick
		p, from = v, v
	}
	f.dist[r], f.count[r], f.del[r], f.pick[r] = dist, count, del, pick
	if f.Traits.Load.InOrder() {
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
	if f.Traits.Load.InOrder() {
		peak = int32(d.suf[f.base+r])
		del, pick = 0, 0
	}
	over := max(0, peak-k.room)
	f.over[r] = int64(over) * f.OverloadWeights[0]
	most := int32(0)
	if f.overloads != noOverload {
		most = f.overMost
	}
	room := k.room + over
	i := r & (denseRoutes - 1)
	d.extra[i] = int16(max(0, most-over))
	d.gets[i], d.gives[i] = int16(room-del), int16(room-pick)
	ok := f.overloads != noOverload || over == 0
	if f.limited {
		left := k.maxDist - f.dist[r]
		ok = ok && left >= 0 && f.count[r] <= k.maxStops
		if f.count[r] >= k.maxStops {
			left = -model.MaxTime32
		}
		if f.width == width32 {
			d.slack[i] = int32(max(-model.MaxTime32, min(model.MaxTime32, left)))
		} else {
			d.spare[i] = int16(max(-denseBar, min(denseBar, left)))
		}
	}
	return ok
}
