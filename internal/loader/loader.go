// Package loader makes training batches on the host, ahead of the trainer and in a fixed order. The
// recipe for in-context agents uses it.
//
// Batch k holds the rows from From + k·Stride on, for any number of workers, slabs and batches
// ahead. A row is a function of its global index only. Ranges of rows are claimed in the order of
// their indices, and Next returns batches in the order in which they were opened. When a range
// fails, all earlier ranges have been claimed and will be finished, so that the error of Next names
// the first bad row, for any number of workers.
//
// All workers fill the first open batch together, range by range, and open the next one when its
// last range is claimed. The trainer therefore gets the first batch as early as possible, at the
// start and after a stall. No worker waits for another at the end of a batch.
package loader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"haul/internal/kernel"
)

// Options configure a Loader.
type Options struct {
	// Fill writes the row with global index g: row[p] is its section of part p of a slab, of length
	// Row[p]. Workers call Fill concurrently. It may fail or panic.
	Fill  func(g uint64, row [][]int32) error
	Row   []int // 32-bit words of a row, by part of a slab
	Batch int   // rows per batch
	Slabs []*kernel.Slab

	Workers int    // number of goroutines that fill rows; 0: Next fills them
	Depth   int    // batches made ahead of Next; 0: workers start when Next is called
	From    uint64 // global index of the first row
	// rows from a batch's first row to the next batch's; 0: Batch. It is larger if other processes
	// make the rows between
	Stride int
}

// ErrClosed is the error of Next after Close.
var ErrClosed = errors.New("loader: closed")

// Loader fills slabs. Next and Return must be called by one goroutine, the trainer's. Close and
// Stats may be called by any.
type Loader struct {
	options   Options
	span      int       // rows per range
	rowBuffer [][]int32 // buffer in which Next fills a row

	ready chan struct{}  // capacity 1; a token means that a batch was finished
	done  chan struct{}  // closed by Close
	pool  sync.WaitGroup // the workers

	mu          sync.Mutex // guards all fields below
	work        sync.Cond  // signals a range to claim, or the end of work
	open        []batch    // a ring: batch k is open[k % len]
	opened      uint64     // number of batches that were begun
	handed      uint64     // number of batches that Next returned; later ones are open
	free        []*kernel.Slab
	withTrainer []bool // by index in Options.Slabs: the trainer has the slab
	waiting     bool   // Next waits for a batch
	failed      bool   // a range failed: no more are claimed
	reported    bool   // Next has returned that error
	closed      bool
	timeStats   timeStats
}

// batch is a batch that is being filled or waits for Next.
type batch struct {
	slab              *kernel.Slab
	first             uint64 // global index of its first row
	claimed, finished int    // number of rows
	bad               int    // the first row that failed
	err               error
}

// New checks the options and starts the workers.
func New(o Options) (*Loader, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return start(o), nil
}

func start(o Options) *Loader {
	if o.Stride == 0 {
		o.Stride = o.Batch
	}
	l := &Loader{options: o, rowBuffer: make([][]int32, len(o.Row)), span: o.span(), ready: make(chan struct{}, 1), done: make(chan struct{}),
		open: make([]batch, len(o.Slabs)), free: slices.Clone(o.Slabs), withTrainer: make([]bool, len(o.Slabs)), timeStats: newTimeStats(o)}
	l.work.L = &l.mu
	for range o.Workers {
		l.pool.Go(l.collate)
	}
	return l
}

func (o *Options) check() error {
	switch {
	case o.Fill == nil || len(o.Row) == 0:
		return errors.New("loader: nothing says what a row holds")
	case o.Batch < 1:
		return fmt.Errorf("loader: a batch of %d rows; at least one is needed", o.Batch)
	case len(o.Slabs) == 0:
		return errors.New("loader: no slab to fill; at least one is needed")
	case o.Workers < 0 || o.Depth < 0:
		return fmt.Errorf("loader: %d workers and %d batches ahead; neither can be less than 0", o.Workers, o.Depth)
	}
	return checkSlabs(o.Row, o.Batch, o.Slabs)
}

// span returns the rows per range. Each worker gets four ranges of a batch, which evens out workers
// that the system has interrupted. A range has at least 16 rows, so that filling it takes longer
// than the two times that the lock is taken.
func (o *Options) span() int {
	const least = 16
	parts := 4 * max(1, o.Workers)
	return min(o.Batch, max(least, (o.Batch+parts-1)/parts))
}

// Next waits for the next batch and returns it. The slab belongs to the caller until Return.
func (l *Loader) Next(ctx context.Context) (*kernel.Slab, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	front := &l.open[l.handed%uint64(len(l.open))]
	depth := l.readyBatches()
	if !l.closed && !l.complete(l.handed) {
		began := time.Now()
		err := l.await(ctx)
		l.timeStats.waited += time.Since(began)
		if err != nil {
			return nil, err
		}
	}
	switch {
	case l.closed:
		return nil, ErrClosed
	case front.err != nil:
		l.reported = true
		return nil, front.err
	}
	l.handed++
	l.timeStats.ready[depth]++
	s := front.slab
	l.withTrainer[slices.Index(l.options.Slabs, s)] = true
	l.work.Broadcast()
	return s, nil
}

// await waits until the first open batch is complete or the loader is closed. The lock is held at
// the call and at the return.
func (l *Loader) await(ctx context.Context) error {
	if l.opened == l.handed && len(l.free) == 0 {
		return fmt.Errorf("loader: all %d slabs are with the trainer; give one back before asking for the next batch", len(l.open))
	}
	l.waiting = true
	defer func() { l.waiting = false }()
	l.work.Broadcast()
	for !l.closed && !l.complete(l.handed) {
		if l.options.Workers == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			l.collateRange(l.rowBuffer)
			continue
		}
		l.mu.Unlock()
		var err error
		select {
		case <-l.ready:
		case <-l.done:
		case <-ctx.Done():
			err = ctx.Err()
		}
		l.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// complete reports whether batch k will not change any more: it is full, or has failed and all
// claimed ranges are finished.
func (l *Loader) complete(k uint64) bool {
	if k >= l.opened {
		return false
	}
	b := &l.open[k%uint64(len(l.open))]
	return b.finished == b.claimed && (b.finished == l.options.Batch || b.err != nil)
}

// readyBatches returns the number of batches that Next could return without waiting.
func (l *Loader) readyBatches() int {
	n := 0
	for l.complete(l.handed + uint64(n)) {
		n++
	}
	return n
}

// Return gives a slab back to be filled again. The device must have read it.
func (l *Loader) Return(s *kernel.Slab) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.options.Slabs, s)
	if i < 0 || !l.withTrainer[i] {
		panic("loader: a slab was given back that is not with the trainer")
	}
	l.withTrainer[i] = false
	l.free = append(l.free, s)
	l.work.Broadcast()
}

// Close ends the workers and waits for them. It returns a failure that Next has not returned.
func (l *Loader) Close() error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.done)
		l.work.Broadcast()
	}
	l.mu.Unlock()
	l.pool.Wait()

	l.mu.Lock()
	defer l.mu.Unlock()
	for k := l.handed; k < l.opened && !l.reported; k++ {
		if err := l.open[k%uint64(len(l.open))].err; err != nil {
			l.reported = true
			return err
		}
	}
	return nil
}
