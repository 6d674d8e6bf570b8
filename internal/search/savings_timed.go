package search

import (
	"cmp"
	"context"
	"slices"

	"haul/internal/search/model"
)

// First routes by savings (Clarke and Wright, 1964) where windows bind and places are many. A run
// of customers that is joined keeps its windows from the depot and back, so that set accepts every
// route; and a fleet that is too small gets no more routes than it has vehicles.

// waitWorth is what a unit of waiting between two customers takes from their saving, in units of
// distance.
const waitWorth = 0.2

// savesRuns reports whether joinRuns may make the first routes.
func (c *candidate) savesRuns() bool {
	if c.Traits.Scan != model.ScanNearRoutes && c.Nodes < model.SavesLeast || c.Traits.Insertion < model.LoadTotal || c.Traits.Time != model.WindowsOnly || c.Traits.Order != model.AnyOrder || c.Traits.Parts.Has(model.Optional) || len(c.Types) > 1 {
		return false
	}
	for _, lead := range c.Tasks {
		if c.Members[lead] != nil {
			return false
		}
	}
	k := &c.Types[0]
	return k.Allowed == nil && k.Initial == nil && k.MaxDist >= model.Endless && k.Count > 0
}

// run is customers behind each other.
type run struct {
	first, last, count int32
	del, pick          int64
	time               model.TimeSegment
}

// joinRuns joins runs of one customer each, greatest saving first, wherever both customers are
// still at their ends and one vehicle may serve both runs. It gives as many of them as there are
// vehicles, those with the most customers; nil if ctx ends before.
func (c *candidate) joinRuns(ctx context.Context) [][]int32 {
	k := &c.Types[0]
	g, t := k.Distances, k.Durations
	runs := make([]run, c.Nodes)
	root, next := make([]int32, c.Nodes), make([]int32, c.Nodes)
	fits := func(r *run) bool {
		x, ok := k.StartSeg.Join(r.time, int64(t.At(k.Start, r.first)))
		if ok {
			_, ok = x.Join(k.EndSeg, int64(t.At(r.last, k.End)))
		}
		return ok && r.count <= int32(k.MaxStops) && max(r.del, r.pick) <= int64(k.Capacity[0])
	}
	for v := int32(c.Depots); int(v) < c.Nodes; v++ {
		a := c.Amounts[v]
		runs[v] = run{v, v, 1, int64(a.Del), int64(a.Pick), c.seg[v]}
		root[v], next[v] = v, -1
		if !fits(&runs[v]) {
			root[v] = -1
		}
	}
	out, home := make([]int32, c.Nodes), make([]int32, c.Nodes)
	for v := int32(c.Depots); int(v) < c.Nodes; v++ {
		out[v], home[v] = g.At(k.Start, v), g.At(v, k.End)
	}
	// A saving is its worth from the greatest on, then the place of its customers in the lists.
	var list []uint64
	longer := c.TimeUnit / c.DistUnit // units of time in one of distance
	for v := int32(c.Depots); int(v) < c.Nodes; v++ {
		if v%256 == 0 && ctx.Err() != nil {
			return nil
		}
		a := &c.Locations[v]
		for i, w := range c.NearOf(v) {
			b := &c.Locations[w]
			leg := g.At(v, w)
			takes := int64(leg)
			if t != g {
				takes = int64(t.At(v, w))
			}
			if takes += a.Service; a.Early+takes > b.Late {
				continue
			}
			gain := home[v] + out[w] - leg
			if idle := b.Early - takes - a.Late; idle > 0 {
				gain -= int32(min(waitWorth*float64(idle)/longer, model.LongestLength))
			}
			if gain > 0 {
				list = append(list, uint64(1<<32-1-uint32(gain))<<32|uint64(int(c.NearAt[v])+i))
			}
		}
	}
	slices.Sort(list)
	find := func(v int32) int32 {
		for root[v] != v {
			root[v] = root[root[v]]
			v = root[v]
		}
		return v
	}
	owner := make([]int32, len(c.Near))
	for v := int32(c.Depots); int(v) < c.Nodes; v++ {
		for i := c.NearAt[v]; i < c.NearAt[v+1]; i++ {
			owner[i] = v
		}
	}
	for _, key := range list {
		v, w := owner[uint32(key)], c.Near[uint32(key)]
		if next[v] >= 0 || root[v] < 0 || root[w] < 0 {
			continue
		}
		i, j := find(v), find(w)
		a, b := &runs[i], &runs[j]
		if i == j || a.last != v || b.first != w {
			continue
		}
		both := run{first: a.first, last: b.last, count: a.count + b.count, del: a.del + b.del, pick: a.pick + b.pick}
		var ok bool
		if both.time, ok = a.time.Join(b.time, int64(t.At(v, w))); !ok || !fits(&both) {
			continue
		}
		next[v], root[j], runs[i] = w, i, both
	}
	var heads []int32
	for v := int32(c.Depots); int(v) < c.Nodes; v++ {
		if root[v] == v {
			heads = append(heads, v)
		}
	}
	slices.SortFunc(heads, func(a, b int32) int {
		return cmp.Or(cmp.Compare(runs[b].count, runs[a].count), cmp.Compare(a, b))
	})
	var routes [][]int32
	for _, h := range heads[:min(len(heads), k.Count, c.most)] {
		var r []int32
		for v := runs[h].first; v >= 0; v = next[v] {
			r = append(r, v)
		}
		routes = append(routes, r)
	}
	return routes
}
