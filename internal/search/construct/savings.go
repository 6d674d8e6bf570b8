// Package construct makes first routes: by savings, or along a curve that fills the plane.
package construct

import (
	"cmp"
	"context"
	"slices"

	"haul/internal/search/model"
	"haul/internal/search/neighbour"
	"haul/internal/vrp"
)

// The parallel savings of Clarke and Wright ("Scheduling of Vehicles from a Central Depot to a
// Number of Delivery Points", Operations Research 12(4), 1964,
// https://doi.org/10.1287/opre.12.4.568). Equal savings are taken in order of customer numbers, so
// that the problem alone fixes the routes; no map range and no clock may be used here.

// saving is what serving j right after i spares against two separate routes.
type saving struct {
	gain float64
	i, j int32
}

// Savings joins routes of one customer each, greatest saving first, wherever both customers
// are still at an end of their routes and the joint load fits. Where ctx ends before, the routes
// are those that were joined by then, and whole is false.
func Savings(ctx context.Context, t *model.FloatMatrix, near *neighbour.Neighbours) (s vrp.Solution, whole bool) {
	n := t.N - 1
	list := savingsList(ctx, t, near)
	// side[2v] and side[2v+1] are v's customers before and after; 0 is the depot. Where distances
	// are the same both ways a route has no direction yet, and either side serves.
	side := make([]int32, 2*t.N)
	root := make([]int32, t.N)
	load := make([]int64, t.N)
	for v := 1; v <= n; v++ {
		root[v], load[v] = int32(v), int64(t.P.Demand[v])
	}
	find := func(v int32) int32 {
		for root[v] != v {
			root[v] = root[root[v]]
			v = root[v]
		}
		return v
	}
	order := ordering{list: list, ends: []int{len(list)}}
	for i := range list {
		if i == order.at {
			if i > 0 && ctx.Err() != nil {
				return walk(side, n, t.OneWay), false
			}
			order.next()
		}
		s := list[i]
		from, to := 2*s.i+1, 2*s.j
		if !t.OneWay {
			if side[from] != 0 {
				from--
			}
			if side[to] != 0 {
				to++
			}
		}
		if side[from] != 0 || side[to] != 0 {
			continue
		}
		a, b := find(s.i), find(s.j)
		if a == b || load[a]+load[b] > int64(t.P.Capacity) {
			continue
		}
		side[from], side[to] = s.j, s.i
		root[b] = a
		load[a] += load[b]
	}
	return walk(side, n, t.OneWay), ctx.Err() == nil // or the list was cut short
}

// savingsPiece is how many savings are put in order at a time, about.
const savingsPiece = 1 << 17

// ordering puts a list in order, piece by piece, so that who runs out of time need not wait for all
// of it: a quicksort that stops on its way. The order does not depend on the pieces.
type ordering struct {
	list []saving
	at   int   // list[:at] is in order, and nothing behind it comes before it
	ends []int // nothing behind list[:end] comes before it; the nearest end is the last
}

// next puts a further piece in order.
func (o *ordering) next() {
	end := o.ends[len(o.ends)-1]
	for end-o.at > 2*savingsPiece {
		part := o.list[o.at:end]
		var nine [9]saving // the pivot is their median
		for i := range nine {
			nine[i] = part[i*(len(part)-1)/8]
		}
		slices.SortFunc(nine[:], bySaving)
		front := 0
		for i := range part {
			if bySaving(part[i], nine[4]) <= 0 {
				part[front], part[i] = part[i], part[front]
				front++
			}
		}
		if front == len(part) { // the pivot is the last of all
			break
		}
		end = o.at + front
		o.ends = append(o.ends, end)
	}
	slices.SortFunc(o.list[o.at:end], bySaving)
	o.at, o.ends = end, o.ends[:len(o.ends)-1]
}

// bySaving orders savings: the greatest first, then by number.
func bySaving(a, b saving) int {
	switch {
	case a.gain != b.gain:
		return cmp.Compare(b.gain, a.gain)
	case a.i != b.i:
		return cmp.Compare(a.i, b.i)
	}
	return cmp.Compare(a.j, b.j)
}

// walk reads the routes off the links, each from its end with the lower number.
func walk(side []int32, n int, oneWay bool) vrp.Solution {
	var sol vrp.Solution
	seen := make([]bool, n+1)
	for v := int32(1); int(v) <= n; v++ {
		if seen[v] || side[2*v] != 0 && (oneWay || side[2*v+1] != 0) {
			continue
		}
		var route []int32
		for last, at := int32(0), v; at != 0; {
			seen[at] = true
			route = append(route, at)
			next := side[2*at+1]
			if !oneWay && next == last {
				next = side[2*at]
			}
			last, at = at, next
		}
		sol.Routes = append(sol.Routes, route)
	}
	return sol
}

// savingsList is every pair worth joining, in no order: all pairs in small problems, pairs of near
// neighbours in large ones, as many as are found before ctx ends. Pairs are ordered where the way
// back differs.
func savingsList(ctx context.Context, t *model.FloatMatrix, near *neighbour.Neighbours) []saving {
	n := int32(t.N - 1)
	var list []saving
	add := func(i, j int32) {
		if g := t.D(i, 0) + t.D(0, j) - t.D(i, j); g > 0 {
			list = append(list, saving{g, i, j})
		}
	}
	if n <= model.AllPairs {
		list = make([]saving, 0, n*(n-1)/2)
		for i := int32(1); i <= n; i++ {
			for j := i + 1; j <= n; j++ {
				add(i, j)
				if t.OneWay {
					add(j, i)
				}
			}
		}
	} else {
		for i := int32(1); i <= n; i++ {
			if i%256 == 0 && ctx.Err() != nil {
				return list
			}
			for _, j := range near.Of(i) {
				// A pair on both lists is offered once, by its lower number.
				if i > j && slices.Contains(near.Of(j), i) {
					continue
				}
				add(i, j)
				if t.OneWay {
					add(j, i)
				}
			}
		}
	}
	return list
}
