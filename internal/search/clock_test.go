package search

import (
	"context"
	"slices"
	"testing"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// drawClocked is a random problem whose times are clocked.
func drawClocked(index uint64) *vrp.Problem {
	p := drawRich(index, 7)
	s := model.NewStream(98, index)
	p.Late, p.Release, p.LIFO, p.Groups, p.Objective = nil, nil, false, nil, 0
	for i := range p.Fleet {
		t := &p.Fleet[i]
		t.Reloads, t.MaxReloads, t.DurationCost, t.MaxDuration = nil, 0, 0, vrp.NewVehicleType().MaxDuration
		t.Breaks = nil
		for b := range s.IntN(model.RestMost + 1) {
			from := float64(20 + 60*b + s.IntN(40))
			ws := []vrp.Window{{From: from, To: from + float64(s.IntN(50))}}
			if s.IntN(3) == 0 {
				ws = append(ws, vrp.Window{From: from + 70, To: from + 100})
			}
			if s.IntN(4) == 0 {
				ws = nil
			}
			t.Breaks = append(t.Breaks, vrp.Break{Windows: ws, Duration: float64(s.IntN(20))})
		}
	}
	if s.IntN(2) == 0 {
		p.Setup = make([]float64, len(p.Demand))
		for v := p.DepotCount(); v < len(p.Setup); v++ {
			p.Setup[v] = float64(s.IntN(9))
			if v > p.DepotCount() && s.IntN(3) == 0 { // the same place
				p.X[v], p.Y[v] = p.X[v-1], p.Y[v-1]
			}
		}
	}
	return p
}

// A route is in time by the clock where it is by a walk; and an insertion is where the route that
// it makes is.
func TestClockAgreesWithWalk(t *testing.T) {
	var routes, kept, spots, fits int
	for i := range uint64(300) {
		p := drawClocked(i)
		if p.Check() != nil {
			continue
		}
		m := compileNear(context.Background(), p)
		if m.Traits.Time != model.Clocked {
			continue
		}
		c := newCandidate(m, model.NewStream(97, i))
		for range 40 {
			var order []int32
			for v := m.Depots; v < m.Nodes; v++ {
				order = append(order, int32(v))
			}
			for j := range order {
				k := j + c.IntN(len(order)-j)
				order[j], order[k] = order[k], order[j]
			}
			order = order[:1+c.IntN(4)]
			kind := int32(c.IntN(len(m.Types)))
			s := routeOf(c, kind, order[:len(order)-1])
			k := &m.Types[kind]
			if !walks(c, s) {
				if s.count > 0 {
					routes++
				}
				if c.clock(s, k) {
					t.Fatalf("problem %d: the clock admits %v of kind %d, a walk does not", i, order, kind)
				}
				continue
			}
			if s.count == 0 {
				continue
			}
			routes++
			kept++
			if !c.clock(s, k) {
				t.Fatalf("problem %d: a walk admits %v of kind %d, the clock does not", i, order, kind)
			}
			v := order[len(order)-1]
			for at := 1; at < len(s.stops); at++ {
				with := slices.Insert(slices.Clone(order[:len(order)-1]), at-1, v)
				want := walks(c, routeOf(c, kind, with))
				spots++
				if want {
					fits++
				}
				if got := c.inTime(s, k, at, v); got != want {
					t.Fatalf("problem %d: %d at %d of %v, kind %d: by the clock %v, by a walk %v", i, v, at, order[:len(order)-1], kind, got, want)
				}
			}
		}
	}
	if kept < 1000 || routes-kept < 1000 || fits < 1000 || spots-fits < 1000 {
		t.Errorf("%d of %d routes are in time, %d of %d insertions: too few to tell", kept, routes, fits, spots)
	}
}

// routeOf is a route as a slot.
func routeOf(c *candidate, kind int32, route []int32) *routeState {
	k := &c.Types[kind]
	s := &routeState{kind: kind, stops: []stop{{node: k.Start}}}
	for _, v := range append(slices.Clone(route), k.End) {
		s.stops = append(s.stops, stop{node: v})
	}
	c.measure(s)
	return s
}

// walks reports whether a walk finds a route in time; its load is no matter.
func walks(c *candidate, s *routeState) bool {
	if s.count == 0 {
		return true
	}
	k := &c.Types[s.kind]
	list, ok := activities(c.Compiled, k, s.stops)
	if ok && len(k.Breaks) > 0 {
		list, ok = c.rest(k, list, s.stops)
	}
	if ok {
		_, ok = shortest(list)
	}
	return ok
}
