package prove

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"haul/internal/search/model"
)

// Routes that are worth more than they cost at given prices of the customers, by a dynamic
// programme from the routes' ends. A label is the rest of a route from one customer on. It is
// dropped if another rest from the same customer costs no more and leaves as much time, room and
// length. Dominance compares everything for which a customer in front of the label may be refused.

const (
	priceSlots = 1 << 12 // lists of labels by time or load at most
	priceNear  = 8       // customers that an ending remembers, where routes might return
)

// backwardLabel is the end of a route, from a customer on.
type backwardLabel struct {
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

// duals is what routes get for their customers, and what they pay for every second customer of a
// cut.
type duals struct {
	price []float64 // by customer
	fines []float64 // by cut
	cuts  []uint64  // by customer: bits of the cuts that it is in
}

// pricer finds routes of one kind of vehicle.
type pricer struct {
	m     *model.Compiled
	k     *model.VehicleType
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

	spans  []model.TimeWindow // by customer
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
	ends  []backwardLabel
	at    [][]int32 // by customer: its endings, cheapest first
	slots [][]int32
	work  int
	loose bool // endings are compared by time and cost alone
}

func newPricer(m *model.Compiled, kind int) *pricer {
	k := &m.Types[kind]
	n := len(m.Tasks)
	p := &pricer{m: m, k: k, kind: int32(kind), n: n, cap: k.Capacity[0], timed: m.Traits.Time == model.WindowsOnly, order: m.Traits.Order != model.AnyOrder, mixed: m.Traits.Load.InOrder(), limit: k.MaxDist < model.Endless}
	narrow := func(x int64) int32 { return int32(max(-model.MaxTime32, min(model.MaxTime32, x))) }
	p.at = make([][]int32, n)
	p.leg, p.drive = make([]int32, n*n), make([]int32, n*n)
	p.preds, p.succs = make([][]int32, n), make([][]int32, n)
	step := int64(math.MaxInt64)
	for _, v := range m.Tasks {
		at := &m.Locations[v]
		s := model.TimeWindow{Early: narrow(at.Early), Late: narrow(at.Late), Service: narrow(at.Service)}
		if !p.timed {
			s = model.TimeWindow{Early: 0, Late: model.MaxTime32, Service: 0}
		}
		a := m.Amounts[v]
		p.spans = append(p.spans, s)
		p.del, p.pick = append(p.del, a.Del), append(p.pick, a.Pick)
		p.last, p.first = max(p.last, s.Late), min(p.first, s.Early)
		p.out, p.home = append(p.out, k.Distances.At(k.Start, v)), append(p.home, k.Distances.At(v, k.End))
		p.goOut, p.goHome = append(p.goOut, k.Durations.At(k.Start, v)), append(p.goHome, k.Durations.At(v, k.End))
		if !p.timed {
			step = min(step, int64(a.Del+a.Pick))
		}
	}
	for i, v := range m.Tasks {
		back, soonest := int64(math.MaxInt64), &p.spans[i]
		for j, w := range m.Tasks {
			p.leg[i*n+j], p.drive[i*n+j] = k.Distances.At(v, w), k.Durations.At(v, w)
			if i == j {
				continue
			}
			back = min(back, int64(p.drive[i*n+j])+int64(p.spans[j].Service))
			late := p.timed && int64(soonest.Early)+int64(soonest.Service)+int64(p.drive[i*n+j]) > int64(p.spans[j].Late)
			if late || p.order && m.Side[v]&1 != 0 && m.Side[w]&2 != 0 {
				continue
			}
			if p.timed {
				step = min(step, int64(soonest.Service)+int64(p.drive[i*n+j]))
			}
			p.preds[j] = append(p.preds[j], int32(i))
			p.succs[i] = append(p.succs[i], int32(j))
		}
		if int64(soonest.Service)+back <= int64(soonest.Late)-int64(soonest.Early) {
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
func (p *pricer) slot(e *backwardLabel) int {
	if p.timed {
		return int((p.last - e.due) / p.width)
	}
	return int(e.count / p.width)
}

// put keeps an ending unless another one is as good, and drops those that are no better.
func (p *pricer) put(e *backwardLabel) {
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

// covers reports whether ending a, of the same customer and no dearer, may stand for b.
func (p *pricer) covers(a, b *backwardLabel) bool {
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
	return a.cost+p.cutPrice(odd) <= b.cost
}

// cutPrice is what the cuts of a set cost.
func (p *pricer) cutPrice(of uint64) (sum float64) {
	for ; of != 0; of &= of - 1 {
		sum += p.fines[bits.TrailingZeros64(of)]
	}
	return sum
}

// before is an ending with customer i before it; false where that breaks a limit.
func (p *pricer) before(e *backwardLabel, next, i int32, to *backwardLabel) bool {
	j := e.node
	to.node, to.next = i, next
	to.dist = e.dist + int64(p.leg[int(i)*p.n+int(j)])
	s := &p.spans[i]
	if p.timed {
		to.due = min(s.Late, e.due-p.drive[int(i)*p.n+int(j)]-s.Service)
		if to.due < s.Early {
			return false
		}
	} else {
		to.due = model.MaxTime32
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
	if to.load > p.cap || p.limit && to.dist+int64(p.out[i]) > p.k.MaxDist {
		return false
	}
	to.count = e.count + del + pick
	to.cost = e.cost + float64(float64(p.leg[int(i)*p.n+int(j)])*p.k.PerDist) - p.price[i]
	to.dead = false
	in := p.cuts[i]
	if both := e.odd & in; both != 0 {
		to.cost += p.cutPrice(both)
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
func (p *pricer) fill(at *duals, loose bool, stop func() bool) bool {
	price := at.price
	p.price, p.fines, p.cuts, p.loose = price, at.fines, at.cuts, loose
	p.ends = p.ends[:0]
	for i := range p.at {
		p.at[i] = p.at[i][:0]
	}
	for i := range p.slots {
		p.slots[i] = p.slots[i][:0]
	}
	var e backwardLabel
	for i := range int32(p.n) {
		e = backwardLabel{node: i, next: -1, dist: int64(p.home[i]), due: model.MaxTime32, load: p.del[i] + p.pick[i], count: p.del[i] + p.pick[i], odd: p.cuts[i]}
		if p.timed {
			s := &p.spans[i]
			e.due = int32(min(int64(s.Late), p.k.EndSeg.Late-int64(p.goHome[i])-int64(s.Service)))
			if e.due < s.Early {
				continue
			}
		}
		if p.mixed {
			e.load, e.peak = p.del[i], max(p.del[i], p.pick[i])
		}
		if e.load > p.cap || e.peak > p.cap || p.limit && e.dist+int64(p.out[i]) > p.k.MaxDist {
			continue
		}
		e.cost = float64(float64(p.home[i])*p.k.PerDist) - price[i]
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
func (p *pricer) whole(e *backwardLabel) (float64, bool) {
	i := e.node
	if p.timed && p.k.StartSeg.Early+p.k.StartSeg.Dur+int64(p.goOut[i]) > int64(e.due) {
		return 0, false
	}
	return e.cost + p.k.Fixed + float64(float64(p.out[i])*p.k.PerDist), true
}
