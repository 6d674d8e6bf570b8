package search

import (
	"haul/internal/vrp"

	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// Neighbour lists. What a reader could break: a list holds customers only, nearest first, and
// equal distances are ordered by number; every deterministic result rests on that order.

// neighbours holds the k nearest customers of each customer.
type neighbours struct {
	k    int
	list []int32 // customer v's list begins at (v-1)*k
}

func (nb *neighbours) of(v int32) []int32 { return nb.list[(int(v)-1)*nb.k : int(v)*nb.k] }

// Nearest lists the k nearest customers of every customer, nearest first: those of customer v are
// list[(v-1)*k : v*k]. k comes back as the length of a list, N-1 at most.
func Nearest(ctx context.Context, p *vrp.Problem, k int) (list []int32, length int, err error) {
	// Without a table: a list needs each distance once.
	nb, err := newNeighbours(ctx, &metricTable{p: p, n: len(p.Demand)}, k)
	if err != nil {
		return nil, 0, err
	}
	return nb.list, nb.k, nil
}

// bruteNodes is the size up to which scanning every pair is quicker than a tree.
const bruteNodes = 500

// newNeighbours finds the k nearest customers of every customer.
func newNeighbours(ctx context.Context, t *metricTable, k int) (*neighbours, error) {
	nb := newLists(t.n-1, k)
	newFinder(t).all(ctx, nb, 1, 1)
	return nb, ctx.Err()
}

// newLists has room for the lists of n customers.
func newLists(n, k int) *neighbours {
	k = max(0, min(k, n-1))
	return &neighbours{k: k, list: make([]int32, n*k)}
}

// finder finds the nearest customers of a customer. With coordinates and many nodes it asks a k-d
// tree, so the time grows as N log N and not N².
type finder struct {
	*metricTable
	tree            *kdTree   // nil: every pair is looked at
	ways            []float64 // the columns of a matrix from column on, one behind the other
	column, columns int
}

func newFinder(t *metricTable) *finder {
	f := &finder{metricTable: t}
	if t.p.Metric != vrp.Explicit && t.p.Metric != vrp.GreatCircle && t.n > bruteNodes {
		f.tree = newKDTree(t.p.X, t.p.Y, t.n)
	}
	return f
}

// listsBlock is how many customers' lists a worker makes at a time.
const listsBlock = 256

// all fills the lists of customer from and all after it. The lists are the same for any number of
// workers. If ctx ends first, some stay empty.
func (f *finder) all(ctx context.Context, nb *neighbours, from, workers int) {
	n := f.n - 1
	if workers <= 1 || nb.k == 0 {
		f.lists(ctx, nb, from, n)
		return
	}
	var wg sync.WaitGroup
	var next atomic.Int64
	for range workers {
		wg.Go(func() {
			for {
				v := from + int(next.Add(1)-1)*listsBlock
				if v > n {
					return
				}
				f.lists(ctx, nb, v, min(v+listsBlock-1, n))
			}
		})
	}
	wg.Wait()
}

// lists makes the lists of customers from..to, or some of them where ctx ends.
func (f *finder) lists(ctx context.Context, nb *neighbours, from, to int) {
	k := nb.k
	if k == 0 {
		return
	}
	best := closest{list: make([]neighbour, 0, k), k: k}
	f = &finder{metricTable: f.metricTable, tree: f.tree} // workers have ways of their own
	for v := from; v <= to; v++ {
		if v%64 == 0 && ctx.Err() != nil {
			return
		}
		best.list = best.list[:0]
		if f.tree != nil {
			f.tree.find(&best, int32(v), 0, len(f.tree.ids), 0)
		} else {
			f.scan(&best, int32(v), to)
		}
		slices.SortFunc(best.list, byCost)
		for i, w := range best.list {
			nb.list[(v-1)*k+i] = w.v
		}
	}
}

// columnsBlock is how many columns of a matrix are copied at once: a cache line of them and more.
const columnsBlock = 64

// scan offers all customers but v, whose list is one of those up to customer to.
func (f *finder) scan(best *closest, v int32, to int) {
	n := int32(f.n)
	if f.p.Metric != vrp.Explicit || n <= bruteNodes {
		for w := int32(1); w < n; w++ {
			if w != v {
				best.offer(w, min(f.d(v, w), f.d(w, v)))
			}
		}
		return
	}
	// The ways to v stand in a column, of which every number lies in a cache line of its own.
	if int(v) < f.column || int(v) >= f.column+f.columns {
		f.column, f.columns = int(v), max(1, min(columnsBlock, to-int(v)+1))
		f.ways = resize(f.ways, f.columns*int(n))
		for w := range n {
			for i, d := range f.p.Weights[int(w)*int(n)+f.column:][:f.columns] {
				f.ways[i*int(n)+int(w)] = d
			}
		}
	}
	there, back := f.p.Weights[int(v)*int(n):][:n], f.ways[(int(v)-f.column)*int(n):][:n]
	for w := int32(1); w < n; w++ {
		if d := min(there[w], back[w]); w != v && (len(best.list) < best.k || d <= best.list[0].cost) {
			best.offer(w, d)
		}
	}
}

// closest keeps the k nearest that are offered, of equal distances those with the lower numbers:
// once there are k, in a heap whose first is the farthest of them.
type closest struct {
	list []neighbour
	k    int
}

func (b *closest) offer(id int32, d float64) {
	if len(b.list) < b.k {
		if b.list = append(b.list, neighbour{id, d}); len(b.list) == b.k {
			for i := b.k/2 - 1; i >= 0; i-- {
				b.sink(i)
			}
		}
		return
	}
	if top := &b.list[0]; d > top.cost || d == top.cost && id > top.v {
		return
	}
	b.list[0] = neighbour{id, d}
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

func farther(a, b *neighbour) bool { return a.cost > b.cost || a.cost == b.cost && a.v > b.v }

// reach is the distance beyond which nothing can enter the list.
func (b *closest) reach() float64 {
	if len(b.list) < b.k {
		return math.Inf(1)
	}
	return b.list[0].cost
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

// trim keeps the first k of every list.
func (nb *neighbours) trim(k int) *neighbours {
	if k >= nb.k {
		return nb
	}
	short := &neighbours{k: k, list: make([]int32, 0, len(nb.list)/nb.k*k)}
	for i := 0; i < len(nb.list); i += nb.k {
		short.list = append(short.list, nb.list[i:i+k]...)
	}
	return short
}
