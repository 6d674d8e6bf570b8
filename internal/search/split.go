package search

import (
	"cmp"
	"math"
	"slices"

	"haul/internal/search/model"
)

// Dividing a solution into parts. Routes stay whole, so that the parts together are a solution
// whatever happens inside them. The cuts change every time; otherwise two routes on both sides of a
// cut would never be improved together.

// split halves the present routes again and again, each time across a direction drawn at random,
// until there are as many groups as asked for, of about equal numbers of customers.
func (d *driver) split(s *model.Stream, parts int) [][][]int32 {
	type placed struct {
		route []int32
		x, y  float64
		key   float64
	}
	x, y := d.p.Plane()
	all := make([]placed, 0, len(d.present))
	for _, r := range d.present {
		if len(r) == 0 {
			continue
		}
		q := placed{route: r}
		if x != nil {
			for _, v := range r {
				q.x += x[v] / float64(len(r))
				q.y += y[v] / float64(len(r))
			}
		}
		all = append(all, q)
	}
	var groups [][][]int32
	var cut func(list []placed, parts int)
	cut = func(list []placed, parts int) {
		if parts <= 1 || len(list) < 2 {
			var g [][]int32
			for _, q := range list {
				g = append(g, q.route)
			}
			groups = append(groups, g)
			return
		}
		sin, cos := math.Sincos(2 * math.Pi * s.Float())
		from := list[s.IntN(len(list))].route
		for i := range list {
			if x != nil {
				list[i].key = cos*list[i].x + sin*list[i].y
			} else {
				list[i].key = d.apart(from, list[i].route)
			}
		}
		slices.SortFunc(list, func(a, b placed) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.route[0], b.route[0])) })
		total := 0
		for _, q := range list {
			total += len(q.route)
		}
		left := parts / 2
		sum, at := 0, 0
		for at < len(list)-1 && (sum*parts < total*left || at < 1) {
			sum += len(list[at].route)
			at++
		}
		cut(list[:at], left)
		cut(list[at:], parts-left)
	}
	cut(all, parts)
	return groups
}

// apart is the shortest leg between two routes, where there are no coordinates to go by.
func (d *driver) apart(a, b []int32) float64 {
	least := int32(math.MaxInt32)
	for _, v := range a {
		for _, w := range b {
			if v != w {
				least = min(least, d.m.leg(int(v), int(w)))
			}
		}
	}
	return float64(least)
}
