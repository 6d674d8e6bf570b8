package search

import "math"

// The best route through tasks that have a value, by a dynamic programme over labels. A task
// that is left out is worth its price; a task of another route is worth what its removal saves
// there. What a reader could break: the programme only proposes. It keeps few labels per
// customer and follows short lists of neighbours; the chain evaluates the changes of its route
// by its own arithmetic.

const (
	tourLabels  = 6   // kept per customer
	tourNear    = 40  // neighbours that a label goes on to
	tourAround  = 400 // customers that one programme looks at, for a route
	tourPart    = 150 // and for a part of one
	tourSpan    = 15  // customers of such a part
	tourBuckets = 1024
	tourRatio   = 0.1 // labels made for each position evaluated by insertions
	tourOpen    = 4   // one of so many programmes opens a route
	tourSkip    = 10  // one of so many customers is passed over, so that no two programmes are equal
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

// tourist is the programme's memory.
type tourist struct {
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

// tours is whether routes may be found by the programme: one load, windows, and nothing that a
// label does not know.
func (c *rchain) tours() bool {
	if !c.choosy || !c.simple || !c.timed || c.clocked || c.perDur || c.sorted || !c.oneGrid || c.kinds[0].dist.cell == nil {
		return false
	}
	for i := range c.kinds {
		k := &c.kinds[i]
		if k.maxDur < endless || k.maxDist < endless || k.maxStops < c.nodes {
			return false
		}
	}
	for _, v := range c.tasks {
		if c.members[v] != nil || c.places[v].release > 0 {
			return false
		}
	}
	return true
}

// seenBit is a customer's place in a label's set, which two customers may share.
func seenBit(v int32) (int, uint64) {
	x := uint32(v) * 2654435761
	return int(x >> 30), 1 << (x >> 24 & 63)
}

// visited is whether a label's way has a customer.
func (t *tourist) visited(l *label, v int32) bool {
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
func (t *tourist) offer(l label, slot int) {
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

// gap is what a tour fills: from a stop that is left at a time to one that is reached by another,
// with a room for loads between.
type gap struct {
	kind      int32
	from, to  int32
	leave     int64
	due       int64
	del, pick int32
	cost      float64 // of a route that is opened for it
}

// tour finds a way through the customers of t.list; it is in t.seq. It is false where none costs
// less than a limit.
func (c *rchain) tour(g gap, limit float64) bool {
	t, k := c.tourist, &c.kinds[g.kind]
	t.labels = t.labels[:0]
	t.bucket, t.tail = resize(t.bucket, tourBuckets), resize(t.tail, tourBuckets)
	for i := range t.bucket {
		t.bucket[i], t.tail[i] = -1, -1
	}
	width := max(1, (min(g.due, 1<<30)-g.leave)/(tourBuckets-1)+1)
	for _, v := range t.list {
		t.kept[v] = t.kept[v][:0]
	}
	legs, times := k.dist, k.dur
	extend := func(id int32, l *label, u, v int32, leave int64) {
		p := &c.places[v]
		time := leave + int64(times.at(u, v))
		if time > p.late {
			return
		}
		time = max(time, p.early)
		if time+p.service+int64(times.at(v, g.to)) > g.due {
			return
		}
		del, pick := l.del+p.delivery, l.pick+p.pick
		if del > g.del || pick > g.pick {
			return
		}
		if id >= 0 && t.visited(l, v) {
			return
		}
		t.work++
		t.offer(label{at: v, from: id, time: time, del: del, pick: pick, seen: l.seen,
			cost: l.cost + float64(float64(legs.at(u, v))*k.perDist) - t.worth[v]}, int((time-g.leave)/width))
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
			if cost := l.cost + float64(float64(legs.at(l.at, g.to))*k.perDist); cost < least {
				best, least = id, cost
			}
			leave := l.time + c.places[l.at].service
			left := tourNear
			for _, v := range c.nearOf(l.at) {
				if t.worth[v] < 0 || leave > c.places[v].late {
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

// appraise makes the list of customers for a kind's tour around some of them, which route r gives
// up, and says what each is worth; the others of that route stay.
func (c *rchain) appraise(around []int32, kind, r int32, most int, noise float64) {
	t := c.tourist
	for _, v := range t.list {
		t.worth[v] = -1
	}
	t.list = t.list[:0]
	add := func(v int32, own bool) {
		if t.worth[v] >= 0 || c.below(tourSkip) == 0 || !c.mayServe(&c.kinds[kind], v) {
			return
		}
		worth := c.places[v].price
		if l := &c.link[v]; l.route >= 0 && !own {
			s := &c.slots[c.slot[l.route]]
			if s.lock > 0 || l.route == r {
				return
			}
			k := &c.kinds[s.kind]
			worth = float64(float64(l.in+l.out-k.dist.at(l.prev, l.next)) * k.perDist)
		}
		t.worth[v] = max(0, worth+noise*(c.unit()-0.5))
		t.list = append(t.list, v)
	}
	for _, v := range around {
		add(v, true)
	}
	for i := 0; i < len(t.list) && len(t.list) < most; i++ {
		near := c.nearOf(t.list[i])
		for _, v := range near[:min(len(near), tourNear)] {
			if add(v, false); len(t.list) >= most {
				break
			}
		}
	}
}

// newTourist is the programme's memory for a chain.
func (c *rchain) newTourist() *tourist {
	t := &tourist{kept: make([][]int32, c.nodes+1), worth: make([]float64, c.nodes+1)}
	for v := range t.worth {
		t.worth[v] = -1
	}
	return t
}

// retour is an iteration that fills a part of a route anew, or opens one.
func (c *rchain) retour(temperature float64, open bool) {
	t := c.tourist
	c.begin()
	limit := temperature*c.exponential() + 1e-9
	below := math.Inf(1)
	var g gap
	r, from, to := int32(-1), 0, 0
	t.serving = t.serving[:0]
	most := tourAround
	if !open && len(c.slot) > 0 {
		r = int32(c.below(len(c.slot)))
		s := &c.slots[c.slot[r]]
		if s.lock > 0 {
			return
		}
		n := len(s.stops)
		size := min(n-2, tourSpan)
		from = c.below(n - 1 - size)
		to = from + size + 1
		k := &c.kinds[s.kind]
		room := c.room(k, 0, 0)
		var leave, due int64
		if c.prompt {
			leave, due = s.ready[from], s.due[to]
		} else {
			leave, due = s.pre[from].early+s.pre[from].dur, s.suf[to].late
		}
		g = gap{kind: s.kind, from: s.stops[from].node, to: s.stops[to].node, leave: leave, due: due,
			del: room - s.load[0].del, pick: room - s.load[0].pick}
		for _, at := range s.stops[from+1 : to] {
			t.serving = append(t.serving, at.node)
			g.del, g.pick = g.del+c.places[at.node].delivery, g.pick+c.places[at.node].pick
		}
		most = tourPart
	} else {
		if len(c.absent) == 0 || c.routes() >= c.most {
			return
		}
		kind := int32(c.below(len(c.kinds)))
		k := &c.kinds[kind]
		if c.used[kind] >= k.count {
			return
		}
		t.serving = append(t.serving, c.absent[c.below(len(c.absent))])
		room := c.room(k, 0, 0)
		g = gap{kind: kind, from: k.start, to: k.end, leave: k.startSeg.early + k.startSeg.dur, due: k.endSeg.late, del: room, pick: room, cost: k.fixed}
		below = limit
	}
	c.appraise(t.serving, g.kind, r, most, temperature)
	if !c.tour(g, below) {
		return
	}
	if r >= 0 {
		for _, v := range t.serving {
			c.mark(v)
		}
	}
	for _, v := range t.seq {
		if c.missing[v] {
			c.recall(v)
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
		if c.link[lead].route < 0 {
			c.place(lead, 0, math.Inf(1))
		}
	}
	c.polish()
	if c.change >= limit {
		c.undo()
		return
	}
	c.keep()
	if c.over == 0 && c.cost < c.bestCost-1e-9 {
		c.remember()
	}
}

// fillGap puts a tour behind a stop of a route, or on a route of its own.
func (c *rchain) fillGap(g gap, r int32, behind int) bool {
	t := c.tourist
	if r < 0 || c.slots[c.slot[r]].kind < 0 {
		if r >= 0 && behind > 0 {
			return false // the rest of the route went too
		}
		r, behind = c.open(g.kind), 0
	}
	s := c.touch(r)
	was, over := s.cost, s.over
	k := &c.kinds[g.kind]
	rest := append(t.rest[:0], s.stops[behind+1:]...)
	t.rest = rest
	s.stops = s.stops[:behind+1]
	last := s.stops[behind].node
	for _, v := range t.seq {
		s.stops = append(s.stops, stop{v, k.dist.at(last, v)})
		last = v
	}
	rest[0].leg = k.dist.at(last, rest[0].node)
	s.stops = append(s.stops, rest...)
	if !c.refresh(s, 0, len(s.stops)-1) {
		return false
	}
	c.reindex(r, 0)
	c.book(s.cost-was, s.over-over)
	return true
}

// tourAgain spends the credit of the positions evaluated since the last programme.
func (c *rchain) tourAgain(temperature float64, moves int64) int {
	t := c.tourist
	if t.credit += moves; float64(t.credit)*tourRatio < float64(t.work) {
		return 0
	}
	t.credit, t.work = 0, 0
	c.retour(temperature, c.below(tourOpen) == 0)
	return 1
}
