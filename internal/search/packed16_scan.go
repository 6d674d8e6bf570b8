package search

import (
	"unsafe"

	"haul/internal/search/model"
)

// The cheapest position of a customer in dense routes; assembly does this for thirty-two positions
// at a time. DenseBestGo is the reference, and every other version returns the same bits.

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
			delta += int32(min(float32(more)*a.toll, maxPenalty))
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
		a.longTolls[i] = int32(min(float32(i)*toll, maxPenalty))
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
	if f.width == width32 {
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
	c := f.candidate
	for i := range c.Types {
		k := &c.Types[i]
		f.limits = append(f.limits, denseKind{min(k.Capacity[0], denseMost), int32(k.MaxStops), min(k.MaxDist, 1<<40)})
	}
	f.wants = make([]denseCustomer, c.Nodes)
	for v := range f.wants {
		w := denseCustomer{denseNone, denseNone}
		if q := c.Amounts[v].Del; q > 0 {
			w.get = q
		}
		if q := c.Amounts[v].Pick; q > 0 {
			w.give = q
		}
		f.wants[v] = w
	}
}

// pointDense points denseAsk to the lists.
func (f *flat) pointDense() {
	a := &f.denseAsk
	a.lists = f.dense
	if f.least = denseAbsent + 1; f.width == width32 {
		a.longIn, a.longOut, a.far, f.least = &f.longIn[0], &f.longOut[0], 1, -model.MaxTime32
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
	f.perDist = f.Types[0].PerDist // of all kinds
	a.mixed, a.limited, a.wide = flag(f.Traits.Load.InOrder()), flag(f.limited), flag(f.base > 64)
}

// prime makes denseAsk ready for the insertions of an iteration.
func (f *flat) prime() {
	c, a := f.candidate, &f.denseAsk
	a.charge(float32(float64(float64(c.OverloadWeights[0])*c.penalty) * c.perRate[0]))
}

// findDense is find.
func (f *flat) findDense(v int32, cost float64) (int32, float64) {
	c, a := f.candidate, &f.denseAsk
	w := &f.wants[v]
	a.row, a.get, a.give = int64(v), w.get, w.give
	a.most = max(f.least, min(detourLimit(cost*c.perRate[0]), model.MaxTime32))
	a.end = int64(denseWhole(int(f.base) + f.routes))
	c.moves += int64(len(c.Tasks) + f.routes)
	delta, at := f.denseBest()
	return f.chosen(delta, at, cost, f.perDist)
}

func denseWhole(n int) int { return (n + denseLanes - 1) &^ (denseLanes - 1) }
