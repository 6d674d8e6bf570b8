package search

import (
	"unsafe"

	"haul/internal/search/model"
)

// The cheapest position of a customer among all; assembly does this for sixteen positions at a
// time. FlatBestGo is the reference, and every other version returns the same bits: sums are of
// integers, the penalty is rounded to 32 bits and truncated to an integer, and of equal positions
// the last one is taken.

// flatLanes is how many positions are evaluated at once.
const flatLanes = 16

func lanes(n int) int { return (n + flatLanes - 1) &^ (flatLanes - 1) }

// flatAsk is a customer, and the lists of positions. Lists reach to end, which is a whole number of
// lanes; positions below mid begin at the place of the same number.
type flatAsk struct {
	row, in, out                                         *int32
	from, to, leg, spare, gets, gives, extra, ready, due *int32
	mid, end                                             int64
	most, get, give                                      int32
	toll                                                 float32
	early, late, service, timed                          int32
}

// maxPenalty is the most that overload costs.
const maxPenalty = 1 << 28

// flatBestGo is the last of the cheapest positions below most, and what it costs; -1: none.
func flatBestGo(a *flatAsk) (int32, int32) {
	n := int(a.end)
	list := func(p *int32) []int32 { return unsafe.Slice(p, n) }
	row, in, out := unsafe.Slice(a.row, a.mid), unsafe.Slice(a.in, a.mid), unsafe.Slice(a.out, a.mid)
	from, to, leg, spare, gets, gives, extra := list(a.from), list(a.to), list(a.leg), list(a.spare), list(a.gets), list(a.gives), list(a.extra)
	ready, due := list(a.ready), list(a.due)
	cost, at := a.most-1, int32(-1)
	for p := range n {
		delta := row[from[p]] + row[to[p]] - leg[p]
		if delta > cost || delta > spare[p] {
			continue
		}
		more := max(a.get-gets[p], a.give-gives[p])
		if more > extra[p] {
			continue
		}
		if more > 0 {
			if delta += int32(min(float32(more)*a.toll, maxPenalty)); delta > cost {
				continue
			}
		}
		if a.timed != 0 {
			t := ready[p] + in[from[p]]
			if t > a.late || max(t, a.early)+a.service+out[to[p]] > due[p] {
				continue
			}
		}
		cost, at = delta, int32(p)
	}
	return cost, at
}

// tables copies the distances and times in padded rows.
func (f *flat) tables() {
	c := f.candidate
	s := f.stride
	rows := func(of func(v, w int32) int32) []int32 {
		out := make([]int32, (c.Nodes+1)*s)
		for v := range int32(c.Nodes + 1) {
			for w := range int32(c.Nodes + 1) {
				out[int(v)*s+int(w)] = of(v, w)
			}
		}
		return out
	}
	at := func(g *model.Matrix, i, j int32) int32 {
		if int(i) == c.Nodes || int(j) == c.Nodes {
			return 0
		}
		return g.At(i, j)
	}
	dist, dur := c.Types[0].Distances, c.Types[0].Durations
	f.rows = rows(func(v, w int32) int32 { return at(dist, v, w) })
	f.ins, f.outs = f.rows, f.rows
	if c.Traits.Time == model.WindowsOnly {
		f.ins = rows(func(v, w int32) int32 { return at(dur, w, v) })
		f.outs = f.ins
		if dur.Back != nil {
			f.outs = rows(func(v, w int32) int32 { return at(dur, v, w) })
		}
		f.ask.timed = 1
	}
}

// point points ask to all lists.
func (f *flat) point() {
	a := &f.ask
	a.from, a.to, a.leg, a.spare, a.gets, a.gives, a.extra = &f.from[0], &f.to[0], &f.leg[0], &f.spare[0], &f.gets[0], &f.gives[0], &f.extra[0]
	a.ready, a.due = &f.ready[0], &f.due[0]
	a.mid = int64(f.base)
}
