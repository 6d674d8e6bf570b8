package search

import (
	"math"

	"haul/internal/search/model"
)

// What an iteration does to flat routes, with the random draws and positions of ruin and
// scan_simple. Put and compact update every list of a route that a later insertion reads; undo
// copies all of them back.

// begin starts an iteration.
func (f *flat) begin() {
	c := f.candidate
	c.tick++
	c.removed, c.costChange, c.overloadChange = c.removed[:0], 0, 0
	c.usedWas = append(c.usedWas[:0], c.used...)
	if f.eased != c.overloads {
		f.eased, f.saved = c.overloads, false
		for r := range int32(f.routes) {
			f.refresh(r)
		}
	}
	if !f.saved {
		f.save()
	}
	f.saved = false
	f.touch = f.touch[:0]
}

// save copies all lists, and undo gives them back.
func (f *flat) save() {
	copy(f.was, f.state)
	copy(f.past, f.wide)
	if f.dense != nil {
		f.denseWas.copy(f.dense, f.width == width32, f.Traits.Load.InOrder())
	}
	f.before = f.routes
}

func (f *flat) undo() {
	copy(f.state, f.was)
	copy(f.wide, f.past)
	if f.dense != nil {
		f.dense.copy(&f.denseWas, f.width == width32, f.Traits.Load.InOrder())
	}
	f.routes = f.before
	f.saved = true
	f.used = append(f.used[:0], f.usedWas...)
}

func (f *flat) routeCount() int { return f.routes }

// mayCut is as stringStore has it.
func (f *flat) mayCut(v int32, few bool) bool {
	return (f.cutAt[f.route[v]] != f.tick || few && f.IntN(2) == 0) && f.removedAt[v] != f.tick
}

// compactAll drops the removed customers from their routes.
func (f *flat) compactAll() {
	if f.dense != nil {
		f.unlink()
		return
	}
	for i := 0; i < len(f.removed); i++ {
		if r := f.route[f.removed[i]]; r >= 0 {
			f.compact(r)
		}
	}
}

// cutString marks a string around a customer as removed.
func (f *flat) cutString(v int32, longest float64) {
	c := f.candidate
	r := f.route[v]
	f.cutAt[r] = c.tick
	count := int(f.count[r])
	at := 0
	for p := f.pred[v]; p < f.base; p = f.pred[p] {
		at++
	}
	lo, span, hole, kept := drawString(&c.Stream, at, count, longest, c.splitDeeper)
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

// polish gives the changed routes better vehicles.
func (f *flat) polish() {
	if len(f.Types) == 1 {
		return
	}
	for _, r := range f.touch {
		if f.count[r] > 0 {
			f.retype(r)
		}
	}
}

// place gives a customer its cheapest position. Where there is none below a cost, no routes come of
// the iteration.
func (f *flat) place(v int32, _, most float64) {
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
			c.costChange = math.Inf(1)
			return
		}
		r := f.open(kind)
		c.used[kind]++
		f.note(r)
		h := f.base + r
		f.succ[h], f.succ[v] = v, -1
		f.refresh(r)
		c.addChange(f.price(r), f.over[r])
		return
	}
	if at < 0 {
		c.costChange = math.Inf(1)
		return
	}
	f.put(v, at)
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
	if c.untilSkip > 0 {
		c.untilSkip--
	} else if delta, at = f.overlook(delta, at); at < 0 {
		return -1, cost
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
