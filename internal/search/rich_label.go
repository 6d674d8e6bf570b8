package search

import (
	"math"

	"haul/internal/search/model"
)

// The best route through tasks that have a value, by a dynamic programme over labels. A task that
// is left out is worth its price; a task of another route is worth what its removal saves there.
// The programme only proposes. It keeps few labels per customer and follows short lists of
// neighbours; the chain evaluates the changes of its route by its own arithmetic.

const (
	tourLabels  = 6   // kept per customer
	tourNear    = 40  // neighbours that a label goes on to
	tourAround  = 400 // customers that one programme looks at, for a route
	tourPart    = 150 // and for a part of one
	tourSpan    = 15  // customers of such a part
	tourBuckets = 1024
	tourRatio   = 0.1 // labels made for each position evaluated by insertions
	tourOpen    = 4   // one of so many programmes opens a route
	// one of so many customers is passed over, so that no two programmes are equal
	labelSkip = 10
)

// label is a way from the depot to a customer.
type label struct {
	at, from  int32 // from: the label before; -1: the depot
	time      int64 // when its service begins
	del, pick int32
	cost      float64 // of the way, less the worth of its customers
	seen      [4]uint64
	dead      bool
	next      int32 // in its bucket
}

// labelling is the programme's memory.
type labelling struct {
	labels  []label
	kept    [][]int32 // by customer: its labels
	worth   []float64 // by customer; below 0: not to be visited
	list    []int32   // those that may be
	bucket  []int32
	tail    []int32
	seq     []int32
	credit  int64   // positions evaluated since the last programme
	work    int64   // labels that it made
	serving []int32 // customers that the gap had
	rest    []stop
}

// seenBit is a customer's place in a label's set, which two customers may share.
func seenBit(v int32) (int, uint64) {
	x := uint32(v) * 2654435761
	return int(x >> 30), 1 << (x >> 24 & 63)
}

// visited reports whether a label's way has a customer.
func (t *labelling) visited(l *label, v int32) bool {
	w, bit := seenBit(v)
	if l.seen[w]&bit == 0 {
		return false
	}
	for {
		if l.at == v {
			return true
		}
		if l.from < 0 {
			return false
		}
		l = &t.labels[l.from]
	}
}

// offer adds a label to its customer's, unless one of those is better in every way.
func (t *labelling) offer(l label, slot int) {
	list := t.kept[l.at]
	worst, most := -1, math.Inf(-1)
	for i := 0; i < len(list); i++ {
		o := &t.labels[list[i]]
		if o.time <= l.time && o.del <= l.del && o.pick <= l.pick && o.cost <= l.cost {
			return
		}
		if l.time <= o.time && l.del <= o.del && l.pick <= o.pick && l.cost <= o.cost {
			o.dead = true
			list[i] = list[len(list)-1]
			list = list[:len(list)-1]
			i--
			continue
		}
		if o.cost > most {
			worst, most = i, o.cost
		}
	}
	id := int32(len(t.labels))
	if len(list) < tourLabels {
		list = append(list, id)
	} else if l.cost < most {
		t.labels[list[worst]].dead = true
		list[worst] = id
	} else {
		t.kept[l.at] = list
		return
	}
	t.kept[l.at] = list
	l.next = -1
	w, bit := seenBit(l.at)
	l.seen[w] |= bit
	t.labels = append(t.labels, l)
	if t.tail[slot] < 0 {
		t.bucket[slot] = id
	} else {
		t.labels[t.tail[slot]].next = id
	}
	t.tail[slot] = id
}

// routeHole is what a tour fills: from a stop that is left at a time to one that is reached by
// another, with a room for loads between.
type routeHole struct {
	kind      int32
	from, to  int32
	leave     int64
	due       int64
	del, pick int32
	cost      float64 // of a route that is opened for it
}

// relabelHole finds a way through the customers of t.list; it is in t.seq. It is false where none
// costs less than a limit.
func (c *candidate) relabelHole(g routeHole, limit float64) bool {
	t, k := c.labelling, &c.Types[g.kind]
	t.labels = t.labels[:0]
	t.bucket, t.tail = model.Resize(t.bucket, tourBuckets), model.Resize(t.tail, tourBuckets)
	for i := range t.bucket {
		t.bucket[i], t.tail[i] = -1, -1
	}
	width := max(1, (min(g.due, 1<<30)-g.leave)/(tourBuckets-1)+1)
	for _, v := range t.list {
		t.kept[v] = t.kept[v][:0]
	}
	legs, times := k.Distances, k.Durations
	extend := func(id int32, l *label, u, v int32, leave int64) {
		p := &c.Locations[v]
		time := leave + int64(times.At(u, v))
		if time > p.Late {
			return
		}
		time = max(time, p.Early)
		if time+p.Service+int64(times.At(v, g.to)) > g.due {
			return
		}
		del, pick := l.del+p.Delivery, l.pick+p.Pickup
		if del > g.del || pick > g.pick {
			return
		}
		if id >= 0 && t.visited(l, v) {
			return
		}
		t.work++
		t.offer(label{at: v, from: id, time: time, del: del, pick: pick, seen: l.seen,
			cost: l.cost + float64(float64(legs.At(u, v))*k.PerDist) - t.worth[v]}, int((time-g.leave)/width))
	}
	first := label{cost: g.cost}
	for _, v := range t.list {
		extend(-1, &first, g.from, v, g.leave)
	}
	best, least := int32(-1), limit
	for slot := range t.bucket {
		for id := t.bucket[slot]; id >= 0; id = t.labels[id].next {
			if t.labels[id].dead {
				continue
			}
			l := t.labels[id]
			if cost := l.cost + float64(float64(legs.At(l.at, g.to))*k.PerDist); cost < least {
				best, least = id, cost
			}
			leave := l.time + c.Locations[l.at].Service
			left := tourNear
			for _, v := range c.NearOf(l.at) {
				if t.worth[v] < 0 || leave > c.Locations[v].Late {
					continue
				}
				extend(id, &l, l.at, v, leave)
				if left--; left == 0 {
					break
				}
			}
		}
	}
	t.seq = t.seq[:0]
	for id := best; id >= 0; id = t.labels[id].from {
		t.seq = append(t.seq, t.labels[id].at)
	}
	for i, j := 0, len(t.seq)-1; i < j; i, j = i+1, j-1 {
		t.seq[i], t.seq[j] = t.seq[j], t.seq[i]
	}
	return best >= 0
}

// candidateValues makes the list of customers for a kind's tour around some of them, which route r
// gives up, and says what each is worth; the others of that route stay.
func (c *candidate) candidateValues(around []int32, kind, r int32, most int, noise float64) {
	t := c.labelling
	for _, v := range t.list {
		t.worth[v] = -1
	}
	t.list = t.list[:0]
	add := func(v int32, own bool) {
		if t.worth[v] >= 0 || c.IntN(labelSkip) == 0 || !c.MayServe(&c.Types[kind], v) {
			return
		}
		worth := c.Locations[v].Price
		if l := &c.links[v]; l.route >= 0 && !own {
			s := &c.states[c.routes[l.route]]
			if s.lock > 0 || l.route == r {
				return
			}
			k := &c.Types[s.kind]
			worth = float64(float64(l.in+l.out-k.Distances.At(l.prev, l.next)) * k.PerDist)
		}
		t.worth[v] = max(0, worth+noise*(c.Float()-0.5))
		t.list = append(t.list, v)
	}
	for _, v := range around {
		add(v, true)
	}
	for i := 0; i < len(t.list) && len(t.list) < most; i++ {
		near := c.NearOf(t.list[i])
		for _, v := range near[:min(len(near), tourNear)] {
			if add(v, false); len(t.list) >= most {
				break
			}
		}
	}
}

// newLabelling is the programme's memory for a chain.
func (c *candidate) newLabelling() *labelling {
	t := &labelling{kept: make([][]int32, c.Nodes+1), worth: make([]float64, c.Nodes+1)}
	for v := range t.worth {
		t.worth[v] = -1
	}
	return t
}

// relabelRoute is an iteration that fills a part of a route anew, or opens one.
func (c *candidate) relabelRoute(temperature float64, open bool) {
	t := c.labelling
	c.begin()
	limit := temperature*c.Exponential() + 1e-9
	below := math.Inf(1)
	var g routeHole
	r, from, to := int32(-1), 0, 0
	t.serving = t.serving[:0]
	most := tourAround
	if !open && len(c.routes) > 0 {
		r = int32(c.IntN(len(c.routes)))
		s := &c.states[c.routes[r]]
		if s.lock > 0 {
			return
		}
		n := len(s.stops)
		size := min(n-2, tourSpan)
		from = c.IntN(n - 1 - size)
		to = from + size + 1
		k := &c.Types[s.kind]
		room := c.tripCapacity(k, 0, 0)
		var leave, due int64
		if c.Traits.Time == model.WindowsOnly {
			leave, due = s.ready[from], s.due[to]
		} else {
			leave, due = s.pre[from].Early+s.pre[from].Dur, s.suf[to].Late
		}
		g = routeHole{kind: s.kind, from: s.stops[from].node, to: s.stops[to].node, leave: leave, due: due,
			del: room - s.load[0].Del, pick: room - s.load[0].Pick}
		for _, at := range s.stops[from+1 : to] {
			t.serving = append(t.serving, at.node)
			g.del, g.pick = g.del+c.Locations[at.node].Delivery, g.pick+c.Locations[at.node].Pickup
		}
		most = tourPart
	} else {
		if len(c.absent) == 0 || c.vehiclesUsed() >= c.most {
			return
		}
		kind := int32(c.IntN(len(c.Types)))
		k := &c.Types[kind]
		if c.used[kind] >= k.Count {
			return
		}
		t.serving = append(t.serving, c.absent[c.IntN(len(c.absent))])
		room := c.tripCapacity(k, 0, 0)
		g = routeHole{kind: kind, from: k.Start, to: k.End, leave: k.StartSeg.Early + k.StartSeg.Dur, due: k.EndSeg.Late, del: room, pick: room, cost: k.Fixed}
		below = limit
	}
	c.candidateValues(t.serving, g.kind, r, most, temperature)
	if !c.relabelHole(g, below) {
		return
	}
	if r >= 0 {
		for _, v := range t.serving {
			c.mark(v)
		}
	}
	for _, v := range t.seq {
		if c.missing[v] {
			c.recallTask(v)
		} else {
			c.mark(v)
		}
	}
	c.compactAll()
	if !c.fillGap(g, r, from) {
		c.undo()
		return
	}
	c.eager = false
	for _, lead := range c.removed {
		if c.links[lead].route < 0 {
			c.place(lead, 0, math.Inf(1))
		}
	}
	c.polish()
	if c.costChange >= limit {
		c.undo()
		return
	}
	c.keep()
	if c.overload == 0 && c.cost < c.bestCost-1e-9 {
		c.remember()
	}
}

// fillGap puts a tour behind a stop of a route, or on a route of its own.
func (c *candidate) fillGap(g routeHole, r int32, behind int) bool {
	t := c.labelling
	if r < 0 || c.states[c.routes[r]].kind < 0 {
		if r >= 0 && behind > 0 {
			return false // the rest of the route went too
		}
		r, behind = c.open(g.kind), 0
	}
	s := c.touch(r)
	was, over := s.cost, s.over
	k := &c.Types[g.kind]
	rest := append(t.rest[:0], s.stops[behind+1:]...)
	t.rest = rest
	s.stops = s.stops[:behind+1]
	last := s.stops[behind].node
	for _, v := range t.seq {
		s.stops = append(s.stops, stop{v, k.Distances.At(last, v)})
		last = v
	}
	rest[0].leg = k.Distances.At(last, rest[0].node)
	s.stops = append(s.stops, rest...)
	if !c.refresh(s, 0, len(s.stops)-1) {
		return false
	}
	c.reindex(r, 0)
	c.addChange(s.cost-was, s.over-over)
	return true
}

// relabelSome spends the credit of the positions evaluated since the last programme.
func (c *candidate) relabelSome(temperature float64, moves int64) int {
	t := c.labelling
	if t.credit += moves; float64(t.credit)*tourRatio < float64(t.work) {
		return 0
	}
	t.credit, t.work = 0, 0
	c.relabelRoute(temperature, c.IntN(tourOpen) == 0)
	return 1
}
