package search

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"haul/internal/vrp"
)

// Neighbours of customers in problems with further constraints: a removal takes customers from
// these lists.

// richNear is the length of the neighbour lists.
const richNear = 100

// nearWide is how many of the nearest by distance a list is chosen from, where there is no table.
const nearWide = 3 * richNear

// readNear lists each customer's nearest: by distance, and by the waiting and lateness that windows
// force on a vehicle that goes from one straight to the other. Where ctx has a deadline that is too
// soon, lists are shorter; where it ends, those of the last customers are empty.
func (m *model) readNear(ctx context.Context) {
	n := m.nodes
	m.nearAt = make([]int32, n+1)
	count := min(richNear*m.stands(), n-m.depots-1)
	if count <= 0 {
		return
	}
	l := &nearLists{model: m, list: nearList{most: count}}
	if n > richTable && m.p.Profiles == nil {
		l.finder = newFinder(&metricTable{p: m.p, n: n})
		if m.p.Metric == vrp.GreatCircle { // as on a map: who is nearest of them is told by their distances
			x, y := m.p.Plane()
			l.finder.tree = newKDTree(x, y, n)
		}
		l.find(nearWide)
	} else {
		for w := int32(m.depots); int(w) < n; w++ {
			l.candidates = append(l.candidates, w)
		}
	}
	if share := l.share(ctx); share < 1 {
		l.list.most = max(min(count, startLeast), int(float64(count)*share))
		if l.finder != nil {
			l.find(max(2*startLeast, int(nearWide*share)))
		}
	}
	for v := int32(m.depots); int(v) < n; v++ {
		m.nearAt[v] = int32(len(m.near))
		if v%64 == 0 && ctx.Err() != nil {
			for ; int(v) < n; v++ {
				m.nearAt[v] = int32(len(m.near))
			}
			break
		}
		l.read(v)
		for _, s := range l.list.kept {
			m.near = append(m.near, s.v)
		}
	}
	m.nearAt[n] = int32(len(m.near))
}

// nearLists makes the list of one customer after the other.
type nearLists struct {
	*model
	list       nearList
	finder     *finder // of the nearest by distance; nil: all are candidates
	found      closest // what it finds of one customer
	keys       []uint64
	candidates []int32
}

// find has as many found as a list is chosen from: where nothing but the distance chooses, no more
// than it has.
func (l *nearLists) find(wide int) {
	if !l.timed || l.slow {
		wide = l.list.most + l.depots
	}
	l.found = closest{list: make([]neighbour, 0, wide), k: wide}
}

// share is how much of the lists can be made in half of the time that ctx leaves, by a sample.
func (l *nearLists) share(ctx context.Context) float64 {
	end, clock := ctx.Deadline()
	n := l.nodes - l.depots
	if !clock || n <= 4*startSample {
		return 1
	}
	step := n / startSample
	if l.finder != nil && l.finder.tree == nil {
		step = 1 // columns of a matrix are copied for customers behind each other
	}
	began := time.Now()
	for i := range startSample {
		l.read(int32(l.depots + i*step))
	}
	need := time.Since(began).Seconds() * float64(n) / startSample
	return max(0, min(1, time.Until(end).Seconds()/2/need))
}

// read lists the nearest of v.
func (l *nearLists) read(v int32) {
	if l.finder != nil {
		l.readFound(v)
		return
	}
	candidates := l.candidates
	list := &l.list
	list.kept, list.full = list.kept[:0], false
	a, group := &l.places[v], l.members[l.places[v].lead] != nil
	dist, dur := l.kinds[0].dist, l.kinds[0].dur
	to, from := dist.rows(v)
	toTime, fromTime := dur.rows(v)
	even := l.bothWays()
	for _, w := range candidates {
		b := &l.places[w]
		if w == v || int(w) < l.depots || group && a.lead == b.lead {
			continue
		}
		var there, back int32
		if to != nil {
			there, back = to[w], from[w]
		} else {
			there = dist.f(v, w)
			if back = there; !even {
				back = dist.f(w, v)
			}
		}
		if list.full && float64(min(there, back)) > list.kept[list.most-1].cost {
			continue // waiting and lateness only add to it
		}
		x, y := float64(there), float64(back)
		if l.timed && !l.slow {
			switch {
			case toTime != nil:
				there, back = toTime[w], fromTime[w]
			case dur == dist:
			case even:
				there = dur.f(v, w)
				back = there
			default:
				there, back = dur.f(v, w), dur.f(w, v)
			}
			x, y = x+l.awry(a, b, there), y+l.awry(b, a, back)
		}
		list.add(neighbour{w, min(x, y)})
	}
	list.cut()
}

// readFound is read where a finder has those that are near by distance.
func (l *nearLists) readFound(v int32) {
	l.found.list = l.found.list[:0]
	if l.finder.tree != nil {
		l.finder.tree.find(&l.found, v, 0, len(l.finder.tree.ids), 0)
	} else {
		l.finder.scan(&l.found, v, l.nodes-1)
	}
	a, group := &l.places[v], l.members[l.places[v].lead] != nil
	dist, dur, even := l.kinds[0].dist, l.kinds[0].dur, l.bothWays()
	l.keys = l.keys[:0]
	for _, found := range l.found.list {
		w := found.v
		b := &l.places[w]
		if int(w) < l.depots || group && a.lead == b.lead {
			continue
		}
		there := dist.f(v, w)
		back := there
		if !even {
			back = dist.f(w, v)
		}
		x, y := float64(there), float64(back)
		if l.timed && !l.slow {
			if dur != dist {
				there = dur.f(v, w)
				if back = there; !even {
					back = dur.f(w, v)
				}
			}
			x, y = x+l.awry(a, b, there), y+l.awry(b, a, back)
		}
		// Bits of floats that are not negative are in the floats' order.
		l.keys = append(l.keys, uint64(math.Float32bits(float32(min(x, y))))<<32|uint64(w))
	}
	slices.Sort(l.keys)
	l.list.kept = l.list.kept[:0]
	for _, key := range l.keys[:min(len(l.keys), l.list.most)] {
		l.list.kept = append(l.list.kept, neighbour{v: int32(key)})
	}
}

// awry is what waiting and lateness add to the distance from a to b, where the way takes so long.
func (m *model) awry(a, b *place, takes int32) float64 {
	t := a.service + int64(takes)
	wait := max(0, b.early-t-a.late)
	warp := max(0, a.early+t-b.late)
	return m.distUnit / m.timeUnit * (0.2*float64(wait) + float64(warp))
}

// rows is the distances from a place and to it; nil where there is no table.
func (g *grid) rows(v int32) (from, to []int32) {
	if g.cell == nil {
		return nil, nil
	}
	from = g.cell[int(v)*g.n:][:g.n]
	to = from
	if g.back != nil {
		to = g.back[int(v)*g.n:][:g.n]
	}
	return from, to
}

// neighbour is a node and how far away it is.
type neighbour struct {
	v    int32
	cost float64
}

func byCost(a, b neighbour) int { return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.v, b.v)) }

// nearList keeps the first of many neighbours in the order of byCost: it sorts twice as many as it
// keeps at a time, and what comes behind those that it has does not come in.
type nearList struct {
	most int
	kept []neighbour // unordered behind the first most, which are ordered where full is set
	full bool
}

func (l *nearList) add(b neighbour) {
	if l.full && byCost(b, l.kept[l.most-1]) > 0 {
		return
	}
	if l.kept = append(l.kept, b); len(l.kept) == 2*l.most {
		l.cut()
	}
}

// cut leaves the nearest, in order.
func (l *nearList) cut() {
	slices.SortFunc(l.kept, byCost)
	l.kept = l.kept[:min(l.most, len(l.kept))]
	l.full = len(l.kept) == l.most
}

func (m *model) nearOf(v int32) []int32 { return m.near[m.nearAt[v]:m.nearAt[v+1]] }
