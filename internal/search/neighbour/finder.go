package neighbour

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// Lists of the nearest customers by distance, which are the same for any number of workers. Equal
// distances are ordered by number: every result that repeats rests on that order.

// Neighbours holds the k nearest customers of each customer.
type Neighbours struct {
	K    int
	List []int32 // customer v's list begins at (v-1)*k
}

func (nb *Neighbours) Of(v int32) []int32 { return nb.List[(int(v)-1)*nb.K : int(v)*nb.K] }

// NewNeighbours finds the k nearest customers of every customer.
func NewNeighbours(ctx context.Context, t *model.FloatMatrix, k int) (*Neighbours, error) {
	nb := NewLists(t.N-1, k)
	NewFinder(t).All(ctx, nb, 1, 1)
	return nb, ctx.Err()
}

// NewLists has room for the lists of n customers.
func NewLists(n, k int) *Neighbours {
	k = max(0, min(k, n-1))
	return &Neighbours{K: k, List: make([]int32, n*k)}
}

// finder finds the nearest customers of a customer. With coordinates and many nodes it asks a k-d
// tree, so the time grows as N log N and not N².
type finder struct {
	*model.FloatMatrix
	tree            *kdTree   // nil: every pair is looked at
	ways            []float64 // the columns of a matrix from column on, one behind the other
	column, columns int
}

func NewFinder(t *model.FloatMatrix) *finder {
	f := &finder{FloatMatrix: t}
	if t.P.Metric != vrp.Explicit && t.P.Metric != vrp.GreatCircle && t.N > model.BruteNodes {
		f.tree = newKDTree(t.P.X, t.P.Y, t.N)
	}
	return f
}

// listsBlock is how many customers' lists a worker makes at a time.
const listsBlock = 256

// All fills the lists of customer from and all after it. The lists are the same for any number of
// workers. If ctx ends first, some stay empty.
func (f *finder) All(ctx context.Context, nb *Neighbours, from, workers int) {
	n := f.N - 1
	if workers <= 1 || nb.K == 0 {
		f.Lists(ctx, nb, from, n)
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
				f.Lists(ctx, nb, v, min(v+listsBlock-1, n))
			}
		})
	}
	wg.Wait()
}

// Lists makes the lists of customers from..to, or some of them where ctx ends.
func (f *finder) Lists(ctx context.Context, nb *Neighbours, from, to int) {
	k := nb.K
	if k == 0 {
		return
	}
	best := closest{list: make([]Neighbour, 0, k), k: k}
	f = &finder{FloatMatrix: f.FloatMatrix, tree: f.tree} // workers have ways of their own
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
		slices.SortFunc(best.list, ByCost)
		for i, w := range best.list {
			nb.List[(v-1)*k+i] = w.V
		}
	}
}

// columnsBlock is how many columns of a matrix are copied at once: a cache line of them and more.
const columnsBlock = 64

// scan offers all customers but v, whose list is one of those up to customer to.
func (f *finder) scan(best *closest, v int32, to int) {
	n := int32(f.N)
	if f.P.Metric != vrp.Explicit || n <= model.BruteNodes {
		for w := int32(1); w < n; w++ {
			if w != v {
				best.offer(w, min(f.D(v, w), f.D(w, v)))
			}
		}
		return
	}
	// The ways to v stand in a column, of which every number lies in a cache line of its own.
	if int(v) < f.column || int(v) >= f.column+f.columns {
		f.column, f.columns = int(v), max(1, min(columnsBlock, to-int(v)+1))
		f.ways = model.Resize(f.ways, f.columns*int(n))
		for w := range n {
			for i, d := range f.P.Weights[int(w)*int(n)+f.column:][:f.columns] {
				f.ways[i*int(n)+int(w)] = d
			}
		}
	}
	there, back := f.P.Weights[int(v)*int(n):][:n], f.ways[(int(v)-f.column)*int(n):][:n]
	for w := int32(1); w < n; w++ {
		if d := min(there[w], back[w]); w != v && (len(best.list) < best.k || d <= best.list[0].Cost) {
			best.offer(w, d)
		}
	}
}

// Trim keeps the first k of every list.
func (nb *Neighbours) Trim(k int) *Neighbours {
	if k >= nb.K {
		return nb
	}
	short := &Neighbours{K: k, List: make([]int32, 0, len(nb.List)/nb.K*k)}
	for i := 0; i < len(nb.List); i += nb.K {
		short.List = append(short.List, nb.List[i:i+k]...)
	}
	return short
}
