package search

import (
	"cmp"
	"context"
	"slices"
)

// Neighbours of customers in problems with further constraints: a removal takes customers from
// these lists.

// richNear is the length of the neighbour lists.
const richNear = 100

// readNear lists each customer's nearest: by distance, and by the waiting and lateness that windows
// force on a vehicle that goes from one straight to the other.
func (m *model) readNear(ctx context.Context) error {
	n := m.nodes
	m.nearAt = make([]int32, n+1)
	count := min(richNear*m.stands(), n-m.depots-1)
	if count <= 0 {
		return nil
	}
	dist, dur := m.kinds[0].dist, m.kinds[0].dur
	ratio := m.distUnit / m.timeUnit
	away := func(i, j int32) float64 {
		d := float64(dist.at(i, j))
		if !m.timed || m.slow {
			return d
		}
		a, b := &m.places[i], &m.places[j]
		t := a.service + int64(dur.at(i, j))
		wait := max(0, b.early-t-a.late)
		warp := max(0, a.early+t-b.late)
		return d + ratio*(0.2*float64(wait)+float64(warp))
	}
	candidates := make([]int32, 0, n)
	var list nearList
	var raw []int32
	width := 0
	if n > richTable && m.p.X != nil {
		var err error
		if raw, width, err = Nearest(ctx, m.p, min(3*richNear, n-m.depots-1)); err != nil {
			return err
		}
	}
	for v := int32(m.depots); int(v) < n; v++ {
		if v%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		m.nearAt[v] = int32(len(m.near))
		candidates = candidates[:0]
		if raw != nil {
			candidates = append(candidates, raw[(int(v)-1)*width:int(v)*width]...)
		} else {
			for w := int32(m.depots); int(w) < n; w++ {
				candidates = append(candidates, w)
			}
		}
		list = nearList{most: count, kept: list.kept[:0]}
		for _, w := range candidates {
			if w == v || int(w) < m.depots || m.members[m.places[v].lead] != nil && m.places[v].lead == m.places[w].lead {
				continue
			}
			list.add(neighbour{w, min(away(v, w), away(w, v))})
		}
		list.cut()
		for _, s := range list.kept {
			m.near = append(m.near, s.v)
		}
	}
	m.nearAt[n] = int32(len(m.near))
	return nil
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
