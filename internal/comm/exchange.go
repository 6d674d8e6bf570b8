package comm

import (
	"fmt"
	"math"
	"time"
	"unsafe"

	"haul/internal/kernel"
)

// All ranks partition a flat buffer in the same way (kernel.Share.Piece): a rank adds up its piece,
// updates it and sends it to the others. Exchanges allocate only when a buffer grows.

// pending holds the arguments of runScatter and runComplete.
type pending struct{ recv, p unsafe.Pointer }

// Scatter sends every rank its piece of grad. It returns the gradients of this rank's piece by all
// ranks, in the order of the ranks. They are valid until the next exchange.
func (w *World) Scatter(grad []float32, unit int) ([][]float32, error) {
	began := time.Now()
	err := w.scatter(grad, unit)
	w.stats.Exchanges++
	w.stats.Time += time.Since(began)
	return w.parts, w.wrap("exchange gradients", err)
}

func (w *World) scatter(grad []float32, unit int) error {
	if err := w.cut(len(grad), unit, 4); err != nil {
		return err
	}
	from, to := w.Share().Piece(len(grad), unit)
	own := to - from
	if len(w.recv) < own*w.Size {
		w.recv = mapped(own * w.Size)
	}
	for r := range w.parts {
		w.parts[r] = w.recv[r*own:][:own]
	}
	w.parts[w.Rank] = grad[from:to]
	w.pending = pending{ptr(w.recv), ptr(grad)}
	err := w.links.do(w.doScatter)
	w.pending = pending{}
	w.stats.Bytes += int64(4 * (len(grad) - own))
	return err
}

// AllGather fills flat, which holds this rank's piece, with the pieces of the other ranks.
func (w *World) AllGather(flat []float32, unit int) error {
	began := time.Now()
	err := w.complete(ptr(flat), len(flat), unit, 4)
	w.stats.Time += time.Since(began)
	return w.wrap("gather pieces", err)
}

// AllGatherSums does the same for float64 values, in units of one.
func (w *World) AllGatherSums(v []float64) error {
	began := time.Now()
	err := w.complete(unsafe.Pointer(unsafe.SliceData(v)), len(v), 1, 8)
	w.stats.Time += time.Since(began)
	return w.wrap("gather the gradient's squares", err)
}

func (w *World) complete(p unsafe.Pointer, n, unit, width int) error {
	if err := w.cut(n, unit, width); err != nil {
		return err
	}
	w.pending.p = p
	err := w.links.do(w.doComplete)
	w.pending = pending{}
	from, to := w.Share().Piece(n, unit)
	w.stats.Bytes += int64(width * (to - from) * (w.Size - 1))
	return err
}

// cut stores in w.cuts where each rank's piece of n elements of `width` bytes begins.
func (w *World) cut(n, unit, width int) error {
	if n+w.Size*unit > math.MaxInt32/width { // counts and offsets are 32 bits wide
		return fmt.Errorf("%d numbers are more than a message holds", n)
	}
	for r := range w.Size {
		from, to := kernel.Share{Rank: r, Size: w.Size}.Piece(n, unit)
		w.cuts[r], w.cuts[r+1] = int32(width*from), int32(width*to)
	}
	return nil
}

// runScatter and runComplete run on the thread of the links.
func (w *World) runScatter() error  { return w.links.scatter(w.pending.recv, w.pending.p, w.cuts) }
func (w *World) runComplete() error { return w.links.complete(w.pending.p, w.cuts) }

// Exchange replaces grad by its sum over all ranks, added up by the tree. It is for a device that
// updates all weights itself: each rank adds up one piece and sends the sum to all.
func (w *World) Exchange(grad []float32) error {
	began := time.Now()
	defer func() {
		w.stats.Exchanges++
		w.stats.Time += time.Since(began)
	}()
	if err := w.scatter(grad, 1); err != nil {
		return w.wrap("exchange gradients", err)
	}
	kernel.Tree(w.Size, nil, func(into, from int) { add(w.parts[into], w.parts[from]) })
	if w.Rank > 0 {
		from, _ := w.Share().Piece(len(grad), 1)
		copy(grad[from:], w.parts[0])
	}
	return w.wrap("exchange gradients", w.complete(ptr(grad), len(grad), 1, 4))
}

// add adds b to a.
func add(a, b []float32) {
	for len(a) >= 4 && len(b) >= 4 {
		a[0] += b[0]
		a[1] += b[1]
		a[2] += b[2]
		a[3] += b[3]
		a, b = a[4:], b[4:]
	}
	for i := range a {
		a[i] += b[i]
	}
}

// AllReduce replaces grad by its sum over all ranks in the library's order, so that the bits depend
// on the number of ranks. haul bench compares Exchange with it.
func (w *World) AllReduce(grad []float32) error {
	r, ok := w.links.(interface {
		allreduce(p unsafe.Pointer, floats int) error
	})
	if !ok {
		return fmt.Errorf("%s has no all-reduce", w.links.name())
	}
	return w.wrap("all-reduce", w.links.do(func() error { return r.allreduce(ptr(grad), len(grad)) }))
}
