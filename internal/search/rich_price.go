package search

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Routes that are worth more than they cost at given prices of the customers, by a dynamic
// programme from the routes' ends. A label is the rest of a route from one customer on. It is
// dropped if another rest from the same customer costs no more and leaves as much time, room and
// length. What a reader could break: dominance compares everything for which a customer in front
// of the label may be refused.

const (
	priceSlots = 1 << 12 // lists of labels by time or load at most
	priceNear  = 8       // customers that an ending remembers, where routes might return
)

// ending is the end of a route, from a customer on.
type ending struct {
	cost  float64 // with the way home, less the prices of its customers
	dist  int64
	due   int32 // its customer is reached at the latest
	load  int32 // deliveries, or of the customer's own side where pickups come last
	peak  int32 // the most on board, where the order matters
	node  int32
	next  int32 // the ending behind its customer; -1: the way home
	count int32
	dead  bool
	set   [2]uint64 // customers that may not come before it
	odd   uint64    // cuts of which it has an odd number of customers
}

// tariff is what routes get for their customers, and what they pay for every second customer of a
// cut.
type tariff struct {
	price []float64 // by customer
	fines []float64 // by cut
	cuts  []uint64  // by customer: bits of the cuts that it is in
}

// pricer finds routes of one kind of vehicle.
type pricer struct {
	m     *model
	k     *kind
	kind  int32
	n     int // customers
	cap   int32
	timed bool
	order bool // pickups come last
	mixed bool
	limit bool // of length
	again bool // a route could come back to a customer in time
	width int32
	last  int32 // the latest time
	first int32 // the earliest
	near  [][2]uint64

	spans  []flatSpan // by customer
	del    []int32
	pick   []int32
	leg    []int32 // n × n, and the ways out and home
	drive  []int32
	out    []int32
	home   []int32
	goOut  []int32 // durations
	goHome []int32
	preds  [][]int32
	succs  [][]int32

	price []float64 // by customer
	fines []float64 // by cut, for every second of its customers
	cuts  []uint64  // by customer: the cuts that it is in
	ends  []ending
	at    [][]int32 // by customer: its endings, cheapest first
	slots [][]int32
	work  int
	loose bool // endings are compared by time and cost alone
}

// prices is whether routes of a model can be priced so: what flat routes ask, and as many vehicles
// of each kind as there are customers. Of one kind there may be fewer, which a solution is checked
// for.
func (c *rchain) prices() bool {
	m := c.model
	if c.flat == nil || len(m.tasks) > 126 || len(m.tasks) != m.nodes-m.depots {
		return false
	}
	for i := range m.kinds {
		if k := &m.kinds[i]; k.count < len(m.tasks) && len(m.kinds) > 1 || k.maxStops < len(m.tasks) {
			return false
		}
	}
	for _, v := range m.tasks {
		if m.sorted && m.side[v] == 3 {
			return false
		}
	}
	return true
}

func newPricer(m *model, kind int) *pricer {
	k := &m.kinds[kind]
	n := len(m.tasks)
	p := &pricer{m: m, k: k, kind: int32(kind), n: n, cap: k.cap[0], timed: m.prompt, order: m.sorted, mixed: m.mixed, limit: k.maxDist < endless}
	narrow := func(x int64) int32 { return int32(max(-flatTime, min(flatTime, x))) }
	p.at = make([][]int32, n)
	p.leg, p.drive = make([]int32, n*n), make([]int32, n*n)
	p.preds, p.succs = make([][]int32, n), make([][]int32, n)
	step := int64(math.MaxInt64)
	for _, v := range m.tasks {
		at := &m.places[v]
		s := flatSpan{narrow(at.early), narrow(at.late), narrow(at.service)}
		if !p.timed {
			s = flatSpan{0, flatTime, 0}
		}
		a := m.amounts[v]
		p.spans = append(p.spans, s)
		p.del, p.pick = append(p.del, a.del), append(p.pick, a.pick)
		p.last, p.first = max(p.last, s.late), min(p.first, s.early)
		p.out, p.home = append(p.out, k.dist.at(k.start, v)), append(p.home, k.dist.at(v, k.end))
		p.goOut, p.goHome = append(p.goOut, k.dur.at(k.start, v)), append(p.goHome, k.dur.at(v, k.end))
		if !p.timed {
			step = min(step, int64(a.del+a.pick))
		}
	}
	for i, v := range m.tasks {
		back, soonest := int64(math.MaxInt64), &p.spans[i]
		for j, w := range m.tasks {
			p.leg[i*n+j], p.drive[i*n+j] = k.dist.at(v, w), k.dur.at(v, w)
			if i == j {
				continue
			}
			back = min(back, int64(p.drive[i*n+j])+int64(p.spans[j].service))
			late := p.timed && int64(soonest.early)+int64(soonest.service)+int64(p.drive[i*n+j]) > int64(p.spans[j].late)
			if late || p.order && m.side[v]&1 != 0 && m.side[w]&2 != 0 {
				continue
			}
			if p.timed {
				step = min(step, int64(soonest.service)+int64(p.drive[i*n+j]))
			}
			p.preds[j] = append(p.preds[j], int32(i))
			p.succs[i] = append(p.succs[i], int32(j))
		}
		if int64(soonest.service)+back <= int64(soonest.late)-int64(soonest.early) {
			p.again = true
		}
	}
	p.again = p.again || !p.timed
	span := int64(p.last) - int64(p.first)
	if !p.timed {
		span = 2 * int64(p.cap)
	}
	p.width = int32(max(1, min(step, span+1)))
	if span/int64(p.width) >= priceSlots {
		return nil
	}
	p.slots = make([][]int32, span/int64(p.width)+1)
	if p.again {
		p.near = make([][2]uint64, n)
		list := make([]int32, n)
		for i := range n {
			for j := range list {
				list[j] = int32(j)
			}
			slices.SortFunc(list, func(a, b int32) int {
				return cmp.Or(cmp.Compare(p.leg[i*n+int(a)], p.leg[i*n+int(b)]), cmp.Compare(a, b))
			})
			for _, j := range list[:min(n, priceNear+1)] {
				p.near[i][j>>6] |= 1 << (j & 63)
			}
		}
	}
	return p
}

// slot is the list that an ending waits in: those that it may be put before lie in lists behind.
func (p *pricer) slot(e *ending) int {
	if p.timed {
		return int((p.last - e.due) / p.width)
	}
	return int(e.count / p.width)
}

// put keeps an ending unless another one is as good, and drops those that are no better.
func (p *pricer) put(e *ending) {
	list := p.at[e.node]
	i := 0
	for ; i < len(list); i++ {
		o := &p.ends[list[i]]
		if o.cost > e.cost {
			break
		}
		if p.covers(o, e) {
			return
		}
	}
	id := int32(len(p.ends))
	p.ends = append(p.ends, *e)
	kept := i
	for j := i; j < len(list); j++ {
		o := &p.ends[list[j]]
		if p.covers(e, o) {
			o.dead = true
		} else {
			list[kept] = list[j]
			kept++
		}
	}
	list = append(list[:kept], 0)
	copy(list[i+1:], list[i:])
	list[i] = id
	p.at[e.node] = list
	s := p.slot(e)
	p.slots[s] = append(p.slots[s], id)
}

// covers is whether ending a, of the same customer and no dearer, may stand for b.
func (p *pricer) covers(a, b *ending) bool {
	if a.due < b.due {
		return false
	}
	if p.loose {
		return true
	}
	if a.load > b.load || a.peak > b.peak || p.limit && a.dist > b.dist {
		return false
	}
	if a.set[0]&^b.set[0]|a.set[1]&^b.set[1] != 0 {
		return false
	}
	// What a may be fined for sooner than b.
	odd := a.odd &^ b.odd
	if odd == 0 {
		return true
	}
	return a.cost+p.fine(odd) <= b.cost
}

// fine is what the cuts of a set cost.
func (p *pricer) fine(of uint64) (sum float64) {
	for ; of != 0; of &= of - 1 {
		sum += p.fines[bits.TrailingZeros64(of)]
	}
	return sum
}

// before is an ending with customer i before it; false where that breaks a limit.
func (p *pricer) before(e *ending, next, i int32, to *ending) bool {
	j := e.node
	to.node, to.next = i, next
	to.dist = e.dist + int64(p.leg[int(i)*p.n+int(j)])
	s := &p.spans[i]
	if p.timed {
		to.due = min(s.late, e.due-p.drive[int(i)*p.n+int(j)]-s.service)
		if to.due < s.early {
			return false
		}
	} else {
		to.due = flatTime
	}
	del, pick := p.del[i], p.pick[i]
	switch {
	case p.mixed:
		to.load = del + e.load
		to.peak = max(max(del, pick)+e.load, pick+e.peak)
		if to.peak > p.cap {
			return false
		}
	case p.order && pick == 0 && p.pick[j] > 0:
		to.load, to.peak = del, 0
	default:
		to.load, to.peak = e.load+del+pick, 0
	}
	if to.load > p.cap || p.limit && to.dist+int64(p.out[i]) > p.k.maxDist {
		return false
	}
	to.count = e.count + del + pick
	to.cost = e.cost + float64(float64(p.leg[int(i)*p.n+int(j)])*p.k.perDist) - p.price[i]
	to.dead = false
	in := p.cuts[i]
	if both := e.odd & in; both != 0 {
		to.cost += p.fine(both)
	}
	to.odd = e.odd ^ in
	if p.again {
		if e.set[i>>6]>>(i&63)&1 != 0 {
			return false
		}
		to.set[0], to.set[1] = e.set[0]&p.near[i][0], e.set[1]&p.near[i][1]
		to.set[i>>6] |= 1 << (i & 63)
	}
	return true
}

// fill makes all endings at some prices; false where it was stopped.
func (p *pricer) fill(at *tariff, loose bool, stop func() bool) bool {
	price := at.price
	p.price, p.fines, p.cuts, p.loose = price, at.fines, at.cuts, loose
	p.ends = p.ends[:0]
	for i := range p.at {
		p.at[i] = p.at[i][:0]
	}
	for i := range p.slots {
		p.slots[i] = p.slots[i][:0]
	}
	var e ending
	for i := range int32(p.n) {
		e = ending{node: i, next: -1, dist: int64(p.home[i]), due: flatTime, load: p.del[i] + p.pick[i], count: p.del[i] + p.pick[i], odd: p.cuts[i]}
		if p.timed {
			s := &p.spans[i]
			e.due = int32(min(int64(s.late), p.k.endSeg.late-int64(p.goHome[i])-int64(s.service)))
			if e.due < s.early {
				continue
			}
		}
		if p.mixed {
			e.load, e.peak = p.del[i], max(p.del[i], p.pick[i])
		}
		if e.load > p.cap || e.peak > p.cap || p.limit && e.dist+int64(p.out[i]) > p.k.maxDist {
			continue
		}
		e.cost = float64(float64(p.home[i])*p.k.perDist) - price[i]
		if p.again {
			e.set[i>>6] |= 1 << (i & 63)
		}
		p.put(&e)
	}
	for s := range p.slots {
		for x := 0; x < len(p.slots[s]); x++ {
			id := p.slots[s][x]
			from := p.ends[id]
			if from.dead {
				continue
			}
			list := p.preds[from.node]
			p.work += len(list)
			if x%256 == 255 && stop() {
				return false
			}
			for _, i := range list {
				if p.before(&from, id, i, &e) {
					p.put(&e)
				}
			}
		}
	}
	return true
}

// whole is what a route that consists of an ending costs beyond its prices; false where it may not
// be.
func (p *pricer) whole(e *ending) (float64, bool) {
	i := e.node
	if p.timed && p.k.startSeg.early+p.k.startSeg.dur+int64(p.goOut[i]) > int64(e.due) {
		return 0, false
	}
	return e.cost + p.k.fixed + float64(float64(p.out[i])*p.k.perDist), true
}
