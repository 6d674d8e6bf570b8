package neighbour

import (
	"cmp"
	"math"
	"slices"
)

// The k-d tree (Bentley, 1975) of the customers' coordinates.

// closest keeps the k nearest that are offered, of equal distances those with the lower numbers:
// once there are k, in a heap whose first is the farthest of them.
type closest struct {
	list []Neighbour
	k    int
}

func (b *closest) offer(id int32, d float64) {
	if len(b.list) < b.k {
		if b.list = append(b.list, Neighbour{id, d}); len(b.list) == b.k {
			for i := b.k/2 - 1; i >= 0; i-- {
				b.sink(i)
			}
		}
		return
	}
	if top := &b.list[0]; d > top.Cost || d == top.Cost && id > top.V {
		return
	}
	b.list[0] = Neighbour{id, d}
	b.sink(0)
}

// sink moves what stands at i down to where nothing below it is farther.
func (b *closest) sink(i int) {
	list := b.list
	x := list[i]
	for {
		j := 2*i + 1
		if j >= len(list) {
			break
		}
		if j+1 < len(list) && farther(&list[j+1], &list[j]) {
			j++
		}
		if !farther(&list[j], &x) {
			break
		}
		list[i] = list[j]
		i = j
	}
	list[i] = x
}

func farther(a, b *Neighbour) bool { return a.Cost > b.Cost || a.Cost == b.Cost && a.V > b.V }

// reach is the distance beyond which nothing can enter the list.
func (b *closest) reach() float64 {
	if len(b.list) < b.k {
		return math.Inf(1)
	}
	return b.list[0].Cost
}

// kdTree is the customers' order in which each range's middle splits it by x, then y, in turn.
// Splitting by position, not by value, keeps it balanced when many customers share a place.
type kdTree struct {
	x, y []float64
	ids  []int32
}

// newKDTree is the tree of all of n nodes but the first, which is a depot.
func newKDTree(x, y []float64, n int) *kdTree {
	t := &kdTree{x: x, y: y, ids: make([]int32, n-1)}
	for i := range t.ids {
		t.ids[i] = int32(i + 1)
	}
	t.split(t.ids, 0)
	return t
}

func (t *kdTree) axis(depth int) []float64 {
	if depth%2 == 0 {
		return t.x
	}
	return t.y
}

func (t *kdTree) split(ids []int32, depth int) {
	if len(ids) < 2 {
		return
	}
	x := t.axis(depth)
	slices.SortFunc(ids, func(a, b int32) int { return cmp.Or(cmp.Compare(x[a], x[b]), cmp.Compare(a, b)) })
	mid := len(ids) / 2
	t.split(ids[:mid], depth+1)
	t.split(ids[mid+1:], depth+1)
}

// kdLeaf is how many customers are looked at one by one, which is quicker than to part them.
const kdLeaf = 8

// find offers the customers of ids[lo:hi] that may be among v's nearest, by unrounded distance.
func (t *kdTree) find(b *closest, v int32, lo, hi, depth int) {
	if hi-lo <= kdLeaf {
		for _, w := range t.ids[lo:hi] {
			if w != v {
				b.offer(w, math.Hypot(t.x[v]-t.x[w], t.y[v]-t.y[w]))
			}
		}
		return
	}
	mid := (lo + hi) / 2
	w := t.ids[mid]
	if w != v {
		b.offer(w, math.Hypot(t.x[v]-t.x[w], t.y[v]-t.y[w]))
	}
	x := t.axis(depth)
	gap := x[v] - x[w]
	if gap < 0 {
		t.find(b, v, lo, mid, depth+1)
		if -gap <= b.reach() {
			t.find(b, v, mid+1, hi, depth+1)
		}
		return
	}
	t.find(b, v, mid+1, hi, depth+1)
	if gap <= b.reach() {
		t.find(b, v, lo, mid, depth+1)
	}
}
