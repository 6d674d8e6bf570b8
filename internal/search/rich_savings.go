package search

import (
	"cmp"
	"context"
	"slices"
)

// First routes by savings (Clarke and Wright, 1964) where windows bind and places are many. What a
// reader could break: a run of customers that is joined keeps its windows from the depot and back,
// so that set accepts every route; and a fleet that is too small gets no more routes than it has
// vehicles.

// waitWorth is what a unit of waiting between two customers takes from their saving, in units of
// distance.
const waitWorth = 0.2

// savesLeast is the number of places from which on first routes are joined. Of 1,000 places three
// seconds of annealing make as good ones of insertions.
const savesLeast = 2000

// savesRuns is whether joinRuns may make the first routes.
func (c *rchain) savesRuns() bool {
	if !c.vast && c.nodes < savesLeast || !c.simple || !c.prompt || c.sorted || c.choosy || len(c.kinds) > 1 {
		return false
	}
	for _, lead := range c.tasks {
		if c.members[lead] != nil {
			return false
		}
	}
	k := &c.kinds[0]
	return k.allowed == nil && k.initial == nil && k.maxDist >= endless && k.count > 0
}

// run is customers behind each other.
type run struct {
	first, last, count int32
	del, pick          int64
	time               tseg
}

// joinRuns joins runs of one customer each, greatest saving first, wherever both customers are
// still at their ends and one vehicle may serve both runs. It gives as many of them as there are
// vehicles, those with the most customers; nil where ctx ends before.
func (c *rchain) joinRuns(ctx context.Context) [][]int32 {
	k := &c.kinds[0]
	g, t := k.dist, k.dur
	runs := make([]run, c.nodes)
	root, next := make([]int32, c.nodes), make([]int32, c.nodes)
	fits := func(r *run) bool {
		x, ok := k.startSeg.join(r.time, int64(t.at(k.start, r.first)))
		if ok {
			_, ok = x.join(k.endSeg, int64(t.at(r.last, k.end)))
		}
		return ok && r.count <= int32(k.maxStops) && max(r.del, r.pick) <= int64(k.cap[0])
	}
	for v := int32(c.depots); int(v) < c.nodes; v++ {
		a := c.amounts[v]
		runs[v] = run{v, v, 1, int64(a.del), int64(a.pick), c.seg[v]}
		root[v], next[v] = v, -1
		if !fits(&runs[v]) {
			root[v] = -1
		}
	}
	out, home := make([]int32, c.nodes), make([]int32, c.nodes)
	for v := int32(c.depots); int(v) < c.nodes; v++ {
		out[v], home[v] = g.at(k.start, v), g.at(v, k.end)
	}
	// A saving is its worth from the greatest on, then the place of its customers in the lists.
	var list []uint64
	longer := c.timeUnit / c.distUnit // units of time in one of distance
	for v := int32(c.depots); int(v) < c.nodes; v++ {
		if v%256 == 0 && ctx.Err() != nil {
			return nil
		}
		a := &c.places[v]
		for i, w := range c.nearOf(v) {
			b := &c.places[w]
			leg := g.at(v, w)
			takes := int64(leg)
			if t != g {
				takes = int64(t.at(v, w))
			}
			if takes += a.service; a.early+takes > b.late {
				continue
			}
			gain := home[v] + out[w] - leg
			if idle := b.early - takes - a.late; idle > 0 {
				gain -= int32(min(waitWorth*float64(idle)/longer, longestLength))
			}
			if gain > 0 {
				list = append(list, uint64(1<<32-1-uint32(gain))<<32|uint64(int(c.nearAt[v])+i))
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
	owner := make([]int32, len(c.near))
	for v := int32(c.depots); int(v) < c.nodes; v++ {
		for i := c.nearAt[v]; i < c.nearAt[v+1]; i++ {
			owner[i] = v
		}
	}
	for _, key := range list {
		v, w := owner[uint32(key)], c.near[uint32(key)]
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
		if both.time, ok = a.time.join(b.time, int64(t.at(v, w))); !ok || !fits(&both) {
			continue
		}
		next[v], root[j], runs[i] = w, i, both
	}
	var heads []int32
	for v := int32(c.depots); int(v) < c.nodes; v++ {
		if root[v] == v {
			heads = append(heads, v)
		}
	}
	slices.SortFunc(heads, func(a, b int32) int {
		return cmp.Or(cmp.Compare(runs[b].count, runs[a].count), cmp.Compare(a, b))
	})
	var routes [][]int32
	for _, h := range heads[:min(len(heads), k.count, c.most)] {
		var r []int32
		for v := runs[h].first; v >= 0; v = next[v] {
			r = append(r, v)
		}
		routes = append(routes, r)
	}
	return routes
}
