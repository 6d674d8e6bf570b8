package cover

import (
	"slices"
	"testing"

	"haul/internal/search/model"
)

// offer offers a route whose visits are its rows.
func offer(p *Pool, cost float64, visits ...int32) {
	key := uint64(0)
	for _, v := range visits {
		key += model.Mix(v)
	}
	if r := p.Offer(key, 0, cost); r != nil {
		r.Visits = slices.Clone(visits)
		r.Rows = r.Visits
	}
}

// Of one set the cheapest order is kept, also of two pools.
func TestThePoolKeepsTheCheapestOrder(t *testing.T) {
	p := NewPool()
	offer(p, 9, 2, 1)
	offer(p, 7, 1, 2)
	offer(p, 9, 2, 1)
	if len(p.Routes) != 1 || p.Routes[0].Cost != 7 || !slices.Equal(p.Routes[0].Visits, []int32{1, 2}) {
		t.Errorf("%+v", p.Routes)
	}
	other := NewPool()
	offer(other, 9, 2, 1)
	offer(other, 10, 1)
	p.Take(other)
	if len(p.Routes) != 2 || p.Routes[0].Cost != 7 || p.Routes[1].Cost != 10 {
		t.Errorf("after a dearer one: %+v", p.Routes)
	}
	cheap := NewPool()
	offer(cheap, 3, 2, 1)
	p.Take(cheap)
	if len(p.Routes) != 2 || p.Routes[0].Cost != 3 || p.Routes[0].Visits[0] != 2 {
		t.Errorf("after a cheaper one: %+v", p.Routes)
	}
}

// A full pool drops what was not seen for the longest time, and knows what it kept.
func TestThePoolShedsTheOldest(t *testing.T) {
	p := NewPool()
	for i := range int32(10) {
		p.Sample()
		offer(p, 5, i)
	}
	p.shed()
	var first []int32
	for i, r := range p.Routes {
		first = append(first, r.Visits[0])
		if p.byKey[r.key] != int32(i) {
			t.Errorf("route %d is known as %d", i, p.byKey[r.key])
		}
	}
	if !slices.Equal(first, []int32{6, 7, 8, 9}) || len(p.byKey) != 4 {
		t.Errorf("kept %v", first)
	}
	offer(p, 5, 6)
	offer(p, 5, 5)
	if len(p.Routes) != 5 {
		t.Errorf("%d routes after one that it has and one that it dropped", len(p.Routes))
	}
}

// A cover uses no more routes than there are vehicles, however much cheaper more would be.
func TestACoverHeedsTheFleet(t *testing.T) {
	p := NewPool()
	for v := range int32(4) {
		offer(p, 1, v+1)
	}
	offer(p, 20, 1, 2)
	offer(p, 20, 3, 4)
	offer(p, 50, 1, 2, 3)
	for most, want := range map[int]int64{4: 4, 3: 22, 2: 40, 1: 0} {
		c := &Problem{Nodes: 5, Upper: 1000, Most: most, Price: make([]float64, 5), Tries: 1000, Stop: func() bool { return false }}
		c.Add(func(cost float64) int64 { return int64(cost) }, p)
		c.Relax()
		c.Reduce()
		if routes, cost := c.Search(); cost != want || len(routes) > most {
			t.Errorf("with %d vehicles %v costs %d, want %d", most, routes, cost, want)
		}
	}
}
