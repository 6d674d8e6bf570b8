package search

// Removing customers from dense routes and inserting them. Every removal and insertion updates the
// loads along the route and the room that they leave for further insertions.

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
		a := &f.Amounts[v]
		load += a.Pick - a.Del
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
	a := &f.Amounts[v]
	del, pick := int16(a.Del), int16(a.Pick)
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
	if f.width == width32 {
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
	a := &f.Amounts[v]
	f.del[r], f.pick[r] = f.del[r]+a.Del, f.pick[r]+a.Pick
	if f.Traits.Load.InOrder() {
		f.board(r, v, p)
	}
	f.settle(r)
	f.addChange(float64(float64(detour)*f.perDist), f.over[r]-over)
}

// unlink takes the removed customers out of their routes.
func (f *flat) unlink() {
	c, d := f.candidate, f.dense
	succ, pred, route := (*[densePositions]int32)(f.succ), (*[densePositions]int32)(f.pred), (*[densePositions]int32)(f.route)
	taken, tick, long := c.removedAt, c.tick, f.width == width32
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
			a := &f.Amounts[v]
			del, pick = del+a.Del, pick+a.Pick
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
		if f.Traits.Load.InOrder() {
			f.densePeaks(r)
		}
		if f.count[r] > 0 && !f.settle(r) {
			for v := f.succ[f.base+r]; v >= 0; v = f.succ[v] {
				c.removedAt[v] = c.tick
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
		c.addChange(f.price(r)-f.priceWas[r], f.over[r]-f.overWas[r])
	}
	f.prime()
}
