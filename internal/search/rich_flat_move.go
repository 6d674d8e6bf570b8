package search

import (
	"math"

	"haul/internal/search/model"
)

// An iteration over flat routes, with the random draws and positions of rich_ruin and rich_simple.
// Put and compact update every list of a route that a later insertion reads; undo copies all of
// them back.

// step is one iteration at a temperature, over flat routes where the problem allows.
func (c *candidate) step(temperature float64) {
	if f := c.flat; f != nil && (f.live || f.load()) {
		f.iterate(temperature)
		return
	}
	c.iterate(temperature)
}

func (f *flat) iterate(temperature float64) {
	c := f.candidate
	c.tick++
	c.removed, c.costChange, c.overloadChange = c.removed[:0], 0, 0
	c.usedWas = append(c.usedWas[:0], c.used...)
	if f.eased != c.soft {
		f.eased, f.saved = c.soft, false
		for r := range int32(f.routes) {
			f.refresh(r)
		}
	}
	if !f.saved {
		f.save()
	}
	f.saved = false
	f.touch = f.touch[:0]
	f.ruin()
	limit := temperature*c.Exponential() + 1e-9
	if f.recreate(limit) {
		f.keep()
		if c.overload == 0 && c.cost < c.bestCost-1e-9 {
			f.remember()
		}
	} else {
		f.undo()
		c.used = append(c.used[:0], c.usedWas...)
	}
	if c.soft {
		c.updatePenalty()
	}
}

// save copies all lists, and undo gives them back.
func (f *flat) save() {
	copy(f.was, f.state)
	copy(f.past, f.wide)
	if f.dense != nil {
		f.denseWas.copy(f.dense, f.long, f.Traits.Load.InOrder())
	}
	f.before = f.routes
}

func (f *flat) undo() {
	copy(f.state, f.was)
	copy(f.wide, f.past)
	if f.dense != nil {
		f.dense.copy(&f.denseWas, f.long, f.Traits.Load.InOrder())
	}
	f.routes = f.before
	f.saved = true
}

// ruin is rchain.ruin.
func (f *flat) ruin() {
	c := f.candidate
	n := len(c.Tasks)
	whole := float64(n) / float64(f.routes)
	longest := min(stringMax, whole)
	removed := float64(removedMean)
	if c.Traits.Moves.Has(model.LongStrings) && whole > stringMax && c.IntN(longStringEach) == 0 {
		longest = min(longStringMost, whole)
		removed = longest
	}
	count := 1 + int(c.Float()*(4*removed/(1+longest)-1))
	few := f.routes < count
	seed := int32(c.Depots + c.IntN(c.Nodes-c.Depots))
	f.cutString(seed, longest)
	for _, v := range c.NearOf(seed) {
		if count == 1 {
			break
		}
		if r := f.route[v]; (f.cutAt[r] != c.tick || few && c.IntN(2) == 0) && c.removedAt[v] != c.tick {
			f.cutString(v, longest)
			count--
		}
	}
	if f.dense != nil {
		f.unlink()
		return
	}
	for i := 0; i < len(c.removed); i++ {
		if r := f.route[c.removed[i]]; r >= 0 {
			f.compact(r)
		}
	}
}

// cutString is rchain.cutString.
func (f *flat) cutString(v int32, longest float64) {
	c := f.candidate
	r := f.route[v]
	f.cutAt[r] = c.tick
	count := int(f.count[r])
	at := 0
	for p := f.pred[v]; p < f.base; p = f.pred[p] {
		at++
	}
	lo, span, hole, kept := c.drawString(at, count, longest)
	w := v
	for ; at > lo; at-- {
		w = f.pred[w]
	}
	for i := lo; i < lo+span; i++ {
		if (i < hole || i >= hole+kept) && c.removedAt[w] != c.tick {
			c.removedAt[w] = c.tick
			c.removed = append(c.removed, w)
		}
		w = f.succ[w]
	}
}

// note lists a route as changed by this iteration.
func (f *flat) note(r int32) {
	if f.seenAt[r] != f.tick {
		f.seenAt[r] = f.tick
		f.touch = append(f.touch, r)
	}
}

// compact drops the removed customers from a route.
func (f *flat) compact(r int32) {
	c := f.candidate
	f.note(r)
	was, over := f.price(r), f.over[r]
	h := f.base + r
	last := h
	for v := f.succ[h]; v >= 0; {
		next := f.succ[v]
		if c.removedAt[v] == c.tick {
			f.route[v], f.leg[v] = -1, absentLeg
		} else {
			f.succ[last] = v
			last = v
		}
		v = next
	}
	f.succ[last] = -1
	if last != h && !f.refresh(r) {
		// What is left breaks a limit, as where distances are no metric: all of it goes.
		for v := f.succ[h]; v >= 0; v = f.succ[v] {
			c.removedAt[v] = c.tick
			c.removed = append(c.removed, v)
			f.route[v], f.leg[v] = -1, absentLeg
		}
		last = h
	}
	if last == h {
		c.used[f.kind[r]]--
		f.count[r], f.dist[r], f.over[r] = 0, 0, 0
		f.close(r)
	}
	c.addChange(f.price(r)-was, f.over[r]-over)
}

// recreate is rchain.recreate.
func (f *flat) recreate(limit float64) bool {
	c := f.candidate
	f.order()
	for _, v := range c.removed {
		if !f.place(v, limit-c.costChange) || c.costChange >= limit {
			return false
		}
	}
	if len(c.Types) > 1 {
		for _, r := range f.touch {
			if f.count[r] > 0 {
				f.retype(r)
			}
		}
	}
	return c.costChange < limit
}

// order is rchain.sortRemoved.
func (f *flat) order() {
	c := f.candidate
	rule := c.IntN(13)
	if !c.Traits.Time.Timed() {
		rule = c.IntN(11)
	}
	list := f.sorts[rule]
	f.keys = f.keys[:0]
	for _, v := range c.removed {
		f.keys = append(f.keys, c.Next()>>32|uint64(list[v])<<32)
	}
	if n := len(f.keys); flatAVX512 && n > 0 && n <= rankMost {
		// Which of two comes first is a toss: ranks are counted without a branch.
		f.line = append(f.line[:0], c.removed...)
		f.keys = f.keys[:rankMost]
		rankAVX512(&f.keys[0], n, &c.removed[0], &f.line[0])
		return
	}
	sortByKey(c.removed, f.keys)
}

// sortByKey sorts a short list by keys, which are sorted as well.
func sortByKey(list []int32, keys []uint64) {
	for i, key := range keys {
		v, j := list[i], i
		for ; j > 0 && keys[j-1] > key; j-- {
			keys[j], list[j] = keys[j-1], list[j-1]
		}
		keys[j], list[j] = key, v
	}
}

// sortKeys makes what each rule of sortRemoved sorts by.
func (f *flat) sortKeys() {
	c := f.candidate
	start, dist := c.Types[0].Start, c.Types[0].Distances
	if int(start) == c.Nodes {
		start = 0
	}
	none := make([]uint32, c.Nodes)
	var keys [5][]uint32
	for i := range keys {
		keys[i] = make([]uint32, c.Nodes)
	}
	for v := c.Depots; v < c.Nodes; v++ {
		at, far := &c.Locations[v], dist.At(start, int32(v))
		keys[0][v] = uint32(math.MaxInt32 - max(at.Delivery, at.Pickup))
		keys[1][v], keys[2][v] = uint32(1<<30-far), uint32(far)
		keys[3][v], keys[4][v] = uint32(min(at.Late-at.Early, 1<<31-1)), uint32(min(at.Late, 1<<31-1))
	}
	for rule := range f.sorts {
		switch {
		case rule < 4:
			f.sorts[rule] = none
		case rule < 8:
			f.sorts[rule] = keys[0]
		case rule < 10:
			f.sorts[rule] = keys[1]
		default:
			f.sorts[rule] = keys[rule-8]
		}
	}
}

// place gives a customer its cheapest position; false where there is none below a cost.
func (f *flat) place(v int32, most float64) bool {
	c := f.candidate
	at, cost := f.find(v, min(f.worth[v], most))
	kind := int32(-1)
	// a route of its own, as in scanNewRoute
	if c.vehiclesUsed() < c.most {
		for i := range c.Types {
			k := &c.Types[i]
			way := f.alone[i*c.Nodes+int(v)]
			if way < 0 {
				way = int64(k.Distances.At(k.Start, v)) + int64(k.Distances.At(v, k.End))
			}
			sum := k.Fixed + float64(float64(way)*k.PerDist)
			if sum >= cost || c.used[i] >= k.Count || len(c.Types) > 1 && c.IntN(overlook) == 0 {
				continue
			}
			if f.alone[i*c.Nodes+int(v)] >= 0 {
				cost, kind = sum, int32(i)
			}
		}
	}
	if kind >= 0 {
		if f.routes == len(f.kind) {
			return false
		}
		r := f.open(kind)
		c.used[kind]++
		f.note(r)
		h := f.base + r
		f.succ[h], f.succ[v] = v, -1
		f.refresh(r)
		c.addChange(f.price(r), f.over[r])
		return true
	}
	if at < 0 {
		return false
	}
	f.put(v, at)
	return true
}

// find is the cheapest position of a customer below a cost; -1: none.
func (f *flat) find(v int32, cost float64) (int32, float64) {
	if f.dense != nil {
		return f.findDense(v, cost)
	}
	c := f.candidate
	k := &c.Types[0]
	a := &f.ask
	row := int(v) * f.stride
	a.row, a.in, a.out = &f.rows[row], &f.ins[row], &f.outs[row]
	a.end = int64(f.base) + int64(lanes(f.routes))
	a.most = max(-model.MaxTime32, min(detourLimit(cost*c.perRate[0]), model.MaxTime32))
	a.get, a.give = 2*flatBar, 2*flatBar
	if q := c.Amounts[v].Del; q > 0 {
		a.get = q
	}
	if q := c.Amounts[v].Pick; q > 0 {
		a.give = q
	}
	a.toll = float32(float64(float64(c.OverloadWeights[0])*c.penalty) * c.perRate[0])
	s := &f.spans[v]
	a.early, a.late, a.service = s.Early, s.Late, s.Service
	c.moves += int64(len(c.Tasks) + f.routes)
	delta, at := flatBest(a)
	return f.chosen(delta, at, cost, k.PerDist)
}

// chosen is the cheapest position and its cost, or another where it is overlooked; -1: none below a
// cost.
func (f *flat) chosen(delta, at int32, cost, perDist float64) (int32, float64) {
	c := f.candidate
	if at < 0 {
		return -1, cost
	}
	if c.untilSkip == 0 {
		delta, at = f.overlook(delta, at)
		if at < 0 {
			return -1, cost
		}
	} else {
		c.untilSkip--
	}
	if sum := float64(float64(delta) * perDist); sum < cost {
		return at, sum
	}
	return -1, cost
}

// best is the cheapest position for whom ask tells of.
func (f *flat) best() (int32, int32) {
	if f.dense != nil {
		return f.denseBest()
	}
	return flatBest(&f.ask)
}

// overlook is the cheapest position but those that are overlooked, the one at hand first.
func (f *flat) overlook(delta, at int32) (int32, int32) {
	c := f.candidate
	var gone [8]struct{ at, leg int32 }
	n := 0
	for c.untilSkip == 0 && at >= 0 && n < len(gone) {
		c.untilSkip = c.UntilNextSkip()
		gone[n] = struct{ at, leg int32 }{at, f.legAt(at)}
		n++
		f.setLeg(at, absentLeg)
		delta, at = f.best()
	}
	for _, g := range gone[:n] {
		f.setLeg(g.at, g.leg)
	}
	return delta, at
}

// put inserts a customer behind a position.
func (f *flat) put(v, p int32) {
	if f.dense != nil {
		f.putDense(v, p)
		return
	}
	c := f.candidate
	r := f.route[p]
	f.note(r)
	kind := f.kind[r]
	k := &c.Types[kind]
	was, over := f.dist[r], f.over[r]
	row := f.rows[int(v)*f.stride:][:f.stride]
	next := f.succ[p]
	f.succ[p], f.pred[v], f.succ[v] = v, p, next
	if next >= 0 {
		f.pred[next] = v
	}
	f.route[v] = r
	f.to[v], f.to[p] = f.to[p], v
	old := f.leg[p]
	f.leg[p], f.leg[v] = row[f.from[p]], row[f.to[v]]
	f.dist[r] += int64(f.leg[p]) + int64(f.leg[v]) - int64(old)
	f.count[r]++
	a := &c.Amounts[v]
	f.del[r], f.pick[r] = f.del[r]+a.Del, f.pick[r]+a.Pick
	peak := max(f.del[r], f.pick[r])
	if c.Traits.Load.InOrder() {
		peak = f.peaks(r)
	}
	f.over[r] = c.overloadOf(peak, k, 0, 0)
	f.extra[v] = f.extra[p]
	f.fill(r, peak, false)
	if c.Traits.Time == model.WindowsOnly {
		f.delay(v, p)
	}
	c.addChange(float64(float64(f.dist[r]-was)*k.PerDist), f.over[r]-over)
}

// delay brings the times of a route up to a customer that was put behind a position.
func (f *flat) delay(v, p int32) {
	row := int(v) * f.stride
	f.drive[p], f.drive[v] = f.ins[row+int(f.from[p])], f.outs[row+int(f.to[v])]
	f.due[v] = f.due[p]
	at := f.ready[p]
	for q := p; ; {
		w := f.succ[q]
		if w < 0 {
			break
		}
		s := &f.spans[w]
		at = max(at+f.drive[q], s.Early) + s.Service
		if w != v && f.ready[w] == at {
			break
		}
		f.ready[w] = at
		q = w
	}
	for w := v; w < f.base; {
		s := &f.spans[w]
		due := min(f.due[w]-f.drive[w]-s.Service, s.Late)
		w = f.pred[w]
		if f.due[w] == due {
			break
		}
		f.due[w] = due
	}
}

// retype gives a route the kind of vehicle with which it costs least.
func (f *flat) retype(r int32) {
	c := f.candidate
	h := f.base + r
	first := f.succ[h]
	last := first
	for f.succ[last] >= 0 {
		last = f.succ[last]
	}
	now := f.penalizedCost(r)
	for i := range c.Types {
		k, was := &c.Types[i], f.kind[r]
		if int32(i) == was || c.used[i] >= k.Count {
			continue
		}
		dist := f.dist[r] - int64(f.legAt(h)) - int64(f.legAt(last)) + int64(k.Distances.At(k.Start, first)) + int64(k.Distances.At(last, k.End))
		if k.Fixed+float64(float64(dist)*k.PerDist) >= now {
			continue
		}
		over := f.over[r]
		price := f.price(r)
		f.kind[r] = int32(i)
		if f.refresh(r) && f.penalizedCost(r) < now {
			c.addChange(f.price(r)-price, f.over[r]-over)
			c.used[was]--
			c.used[i]++
			now = f.penalizedCost(r)
			continue
		}
		f.kind[r] = was
		f.refresh(r)
	}
}

// keep makes the iteration's routes the present ones, and closes the gaps that empty ones leave.
func (f *flat) keep() {
	c := f.candidate
	c.cost += c.costChange
	c.overload += c.overloadChange
	for _, r := range f.touch {
		if int(r) < f.routes && f.count[r] == 0 {
			for r := int32(0); int(r) < f.routes; {
				if f.count[r] > 0 {
					r++
					continue
				}
				f.routes--
				if last := int32(f.routes); r < last {
					f.kind[r] = f.kind[last]
					f.succ[f.base+r] = f.succ[f.base+last]
					f.cutAt[r] = 0
					f.route[f.base+r] = r
					if f.count[last] > 0 {
						f.refresh(r)
					} else {
						f.count[r] = 0
					}
				}
				f.close(int32(f.routes))
			}
			break
		}
	}
}
