package prove

// All routes below a reduced cost: from the depot on, customer by customer, as long as some rest
// can complete the route below that cost. Where no route can return to a customer in time, the
// rests are exact, and every branch leads to a route.

// prefix is the beginning of a route.
type prefix struct {
	cost  float64
	dist  int64
	ready int64 // it leaves its last customer at the soonest
	// of the last customer's own side; where the order matters, picked up and the most on board
	load, peak int32
	node       int32
	set        [2]uint64
	odd        uint64
}

// completes reports whether some ending from customer j on completes the route below a reduced
// cost.
func (p *pricer) completes(a *prefix, j int32, below float64) bool {
	out := p.out[j]
	drive := p.goOut[j]
	if a.node >= 0 {
		out = p.leg[int(a.node)*p.n+int(j)]
		drive = p.drive[int(a.node)*p.n+int(j)]
	}
	cost := a.cost + float64(float64(out)*p.k.PerDist)
	arrive := a.ready + int64(drive)
	fresh := a.node < 0 || p.order && p.pick[a.node] == 0 && p.pick[j] > 0
	for _, id := range p.at[j] {
		e := &p.ends[id]
		if cost+e.cost >= below {
			return false
		}
		if p.timed && arrive > int64(e.due) || p.limit && a.dist+int64(out)+e.dist > p.k.MaxDist {
			continue
		}
		if p.mixed {
			if max(a.peak+e.load, a.load+e.peak) > p.cap {
				continue
			}
		} else if !fresh && a.load+e.load > p.cap {
			continue
		}
		if p.again && e.set[0]&a.set[0]|e.set[1]&a.set[1] != 0 {
			continue
		}
		if both := e.odd & a.odd; both != 0 && cost+e.cost+p.cutPrice(both) >= below {
			continue
		}
		return true
	}
	return false
}

// extend is a with customer j behind it.
func (p *pricer) extend(a *prefix, j int32) prefix {
	out, drive := p.out[j], p.goOut[j]
	if a.node >= 0 {
		out, drive = p.leg[int(a.node)*p.n+int(j)], p.drive[int(a.node)*p.n+int(j)]
	}
	s := &p.spans[j]
	b := prefix{cost: a.cost + float64(float64(out)*p.k.PerDist) - p.price[j], dist: a.dist + int64(out), node: j, set: a.set}
	b.ready = max(a.ready+int64(drive), int64(s.Early)) + int64(s.Service)
	del, pick := p.del[j], p.pick[j]
	switch {
	case p.mixed:
		b.peak = max(a.peak+del, a.load+max(del, pick))
		b.load = a.load + pick
	case a.node >= 0 && p.order && p.pick[a.node] == 0 && pick > 0:
		b.load = pick
	default:
		b.load = a.load + del + pick
	}
	b.set[j>>6] |= 1 << (j & 63)
	b.odd = a.odd ^ p.cuts[j]
	if both := a.odd & p.cuts[j]; both != 0 {
		b.cost += p.cutPrice(both)
	}
	return b
}

// all calls found for every route below a reduced cost, with its distance, and is false where it
// is stopped or found says no.
func (p *pricer) all(below float64, stop func() bool, found func(line []int32, dist int64) bool) bool {
	var line []int32
	turns := 0
	begin := prefix{cost: p.k.Fixed, ready: p.k.StartSeg.Early + p.k.StartSeg.Dur, node: -1}
	var down func(a *prefix) bool
	down = func(a *prefix) bool {
		if a.node >= 0 {
			// Home from here.
			i := a.node
			cost := a.cost + float64(float64(p.home[i])*p.k.PerDist)
			if cost < below && (!p.timed || a.ready+int64(p.goHome[i]) <= p.k.EndSeg.Late) && (!p.limit || a.dist+int64(p.home[i]) <= p.k.MaxDist) {
				if !found(line, a.dist+int64(p.home[i])) {
					return false
				}
			}
			p.work += len(p.succs[i])
			if turns++; turns%1024 == 0 && stop() {
				return false
			}
			for _, j := range p.succs[i] {
				if p.again && a.set[j>>6]>>(j&63)&1 != 0 || !p.completes(a, j, below) {
					continue
				}
				b := p.extend(a, j)
				line = append(line, j)
				ok := down(&b)
				line = line[:len(line)-1]
				if !ok {
					return false
				}
			}
			return true
		}
		for j := range int32(p.n) {
			if !p.completes(a, j, below) {
				continue
			}
			b := p.extend(a, j)
			line = append(line[:0], j)
			if !down(&b) {
				return false
			}
		}
		return true
	}
	return down(&begin)
}
