// Package neighbour lists the nearest customers of each customer, as in granular search (Toth and
// Vigo, 2003): removals and insertions look at these first. Windows count as distance: a customer
// is far if going there forces waiting or lateness (Vidal and others, 2013).
package neighbour

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// List lists each customer's nearest: by distance, and by the waiting and lateness that windows
// force on a vehicle that goes from one straight to the other. Where ctx has a deadline that is too
// soon, lists are shorter; where it ends, those of the last customers are empty.
func List(ctx context.Context, m *model.Compiled) {
	n := m.Nodes
	m.NearAt = make([]int32, n+1)
	count := min(model.NearestGeneral*m.GroupFactor(), n-m.Depots-1)
	if count <= 0 {
		return
	}
	l := &nearLists{Compiled: m, list: nearestList{most: count}}
	if n > model.TableGeneral && m.P.Profiles == nil {
		l.finder = NewFinder(&model.FloatMatrix{P: m.P, N: n})
		// as on a map: who is nearest of them is told by their distances
		if m.P.Metric == vrp.GreatCircle {
			x, y := m.P.Plane()
			l.finder.tree = newKDTree(x, y, n)
		}
		l.find(model.NearWide)
	} else {
		for w := int32(m.Depots); int(w) < n; w++ {
			l.candidates = append(l.candidates, w)
		}
	}
	if share := l.share(ctx); share < 1 {
		l.list.most = max(min(count, model.StartLeast), int(float64(count)*share))
		if l.finder != nil {
			l.find(max(2*model.StartLeast, int(model.NearWide*share)))
		}
	}
	for v := int32(m.Depots); int(v) < n; v++ {
		m.NearAt[v] = int32(len(m.Near))
		if v%64 == 0 && ctx.Err() != nil {
			for ; int(v) < n; v++ {
				m.NearAt[v] = int32(len(m.Near))
			}
			break
		}
		l.read(v)
		for _, s := range l.list.kept {
			m.Near = append(m.Near, s.V)
		}
	}
	m.NearAt[n] = int32(len(m.Near))
}

// nearLists makes the list of one customer after the other.
type nearLists struct {
	*model.Compiled
	list       nearestList
	finder     *finder // of the nearest by distance; nil: all are candidates
	found      closest // what it finds of one customer
	keys       []uint64
	candidates []int32
}

// find has as many found as a list is chosen from: where nothing but the distance chooses, no more
// than it has.
func (l *nearLists) find(wide int) {
	if !l.Traits.Time.Timed() || l.Traits.Time.IsWalked() {
		wide = l.list.most + l.Depots
	}
	l.found = closest{list: make([]Neighbour, 0, wide), k: wide}
}

// share is how much of the lists can be made in half of the time that ctx leaves, by a sample.
func (l *nearLists) share(ctx context.Context) float64 {
	end, clock := ctx.Deadline()
	n := l.Nodes - l.Depots
	if !clock || n <= 4*model.StartSample {
		return 1
	}
	step := n / model.StartSample
	if l.finder != nil && l.finder.tree == nil {
		step = 1 // columns of a matrix are copied for customers behind each other
	}
	began := time.Now()
	for i := range model.StartSample {
		l.read(int32(l.Depots + i*step))
	}
	need := time.Since(began).Seconds() * float64(n) / model.StartSample
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
	a, group := &l.Locations[v], l.Members[l.Locations[v].Representative] != nil
	dist, dur := l.Types[0].Distances, l.Types[0].Durations
	to, from := dist.Rows(v)
	toTime, fromTime := dur.Rows(v)
	even := l.BothWays()
	for _, w := range candidates {
		b := &l.Locations[w]
		if w == v || int(w) < l.Depots || group && a.Representative == b.Representative {
			continue
		}
		var there, back int32
		if to != nil {
			there, back = to[w], from[w]
		} else {
			there = dist.F(v, w)
			if back = there; !even {
				back = dist.F(w, v)
			}
		}
		if list.full && float64(min(there, back)) > list.kept[list.most-1].Cost {
			continue // waiting and lateness only add to it
		}
		x, y := float64(there), float64(back)
		if l.Traits.Time.Timed() && !l.Traits.Time.IsWalked() {
			switch {
			case toTime != nil:
				there, back = toTime[w], fromTime[w]
			case dur == dist:
			case even:
				there = dur.F(v, w)
				back = there
			default:
				there, back = dur.F(v, w), dur.F(w, v)
			}
			x, y = x+timeProximity(l.Compiled, a, b, there), y+timeProximity(l.Compiled, b, a, back)
		}
		list.add(Neighbour{w, min(x, y)})
	}
	list.cut()
}

// readFound is read where a finder has those that are near by distance.
func (l *nearLists) readFound(v int32) {
	l.found.list = l.found.list[:0]
	if l.finder.tree != nil {
		l.finder.tree.find(&l.found, v, 0, len(l.finder.tree.ids), 0)
	} else {
		l.finder.scan(&l.found, v, l.Nodes-1)
	}
	a, group := &l.Locations[v], l.Members[l.Locations[v].Representative] != nil
	dist, dur, even := l.Types[0].Distances, l.Types[0].Durations, l.BothWays()
	l.keys = l.keys[:0]
	for _, found := range l.found.list {
		w := found.V
		b := &l.Locations[w]
		if int(w) < l.Depots || group && a.Representative == b.Representative {
			continue
		}
		there := dist.F(v, w)
		back := there
		if !even {
			back = dist.F(w, v)
		}
		x, y := float64(there), float64(back)
		if l.Traits.Time.Timed() && !l.Traits.Time.IsWalked() {
			if dur != dist {
				there = dur.F(v, w)
				if back = there; !even {
					back = dur.F(w, v)
				}
			}
			x, y = x+timeProximity(l.Compiled, a, b, there), y+timeProximity(l.Compiled, b, a, back)
		}
		// Bits of floats that are not negative are in the floats' order.
		l.keys = append(l.keys, uint64(math.Float32bits(float32(min(x, y))))<<32|uint64(w))
	}
	slices.Sort(l.keys)
	l.list.kept = l.list.kept[:0]
	for _, key := range l.keys[:min(len(l.keys), l.list.most)] {
		l.list.kept = append(l.list.kept, Neighbour{V: int32(key)})
	}
}

// timeProximity is what waiting and lateness add to the distance from a to b, where the way takes
// so long.
func timeProximity(m *model.Compiled, a, b *model.Location, takes int32) float64 {
	t := a.Service + int64(takes)
	wait := max(0, b.Early-t-a.Late)
	warp := max(0, a.Early+t-b.Late)
	return m.DistUnit / m.TimeUnit * (0.2*float64(wait) + float64(warp))
}

// Neighbour is a node and how far away it is.
type Neighbour struct {
	V    int32
	Cost float64
}

func ByCost(a, b Neighbour) int { return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(a.V, b.V)) }

// nearestList keeps the first of many neighbours in the order of ByCost: it sorts twice as many as
// it keeps at a time, and what comes behind those that it has does not come in.
type nearestList struct {
	most int
	kept []Neighbour // unordered behind the first most, which are ordered where full is set
	full bool
}

func (l *nearestList) add(b Neighbour) {
	if l.full && ByCost(b, l.kept[l.most-1]) > 0 {
		return
	}
	if l.kept = append(l.kept, b); len(l.kept) == 2*l.most {
		l.cut()
	}
}

// cut leaves the nearest, in order.
func (l *nearestList) cut() {
	slices.SortFunc(l.kept, ByCost)
	l.kept = l.kept[:min(l.most, len(l.kept))]
	l.full = len(l.kept) == l.most
}
