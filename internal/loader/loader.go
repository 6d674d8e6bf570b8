// Package loader makes training batches on the host, ahead of the trainer and in order.
//
// What a reader could break: batch k holds the rows From + k·Stride and on, whatever the number of
// workers, slabs and batches ahead. A row is a function of its global index alone, ranges of rows
// are claimed in the order of their indices, and Next hands batches over in the order in which they
// were opened. Failures rest on the same order: when a range fails, everything before it has been
// claimed and will be finished, so the row that Next names is the first bad one however many
// workers ran.
//
// All workers fill the batch in front together, range by range, and go on to the next one as soon
// as its last range is claimed. The first batch is there as soon as the workers can make it, which
// is what a trainer waits for at a start and after a stall; and as no worker waits for another at a
// batch's end, no throughput is lost against a batch for each.
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

// Options say what batches hold and who fills them.
type Options struct {
	// Fill writes the row of global index g: its part of each part of a slab, as long as Row says.
	// Workers call it at the same time. It may fail, or panic, for a row that cannot be made.
	Fill  func(g uint64, row [][]int32) error
	Row   []int // words of a row, by part of a slab
	Batch int   // rows of a batch
	Slabs []*kernel.Slab

	Workers int    // goroutines that collate; 0 leaves it to Next
	Depth   int    // batches made ahead of Next; 0: none, workers start when Next is called
	From    uint64 // global index of the first row
	// rows from a batch's first to the next one's; 0: Batch. More where others make the rows in
	// between
	Stride int
}

// ErrClosed is Next's answer after Close.
var ErrClosed = errors.New("loader: closed")

// Loader fills slabs. Next and Return belong to one goroutine, the trainer's; Close and Stats may
// be called from any.
type Loader struct {
	options Options
	span    int       // rows of a range
	own     [][]int32 // what Next fills a row by

	ready chan struct{}  // has room for one; a token says that a batch was finished
	done  chan struct{}  // closed by Close
	pool  sync.WaitGroup // the workers

	mu      sync.Mutex // guards all below
	work    sync.Cond  // there may be a range to claim, or nothing more to do
	open    []batch    // a ring: batch k of the run is open[k % len]
	opened  uint64     // batches begun
	handed  uint64     // batches handed over; those in between are open
	free    []*kernel.Slab
	lent    []bool // by place in Options.Slabs: with the trainer
	waiting bool   // Next wants a batch
	failed  bool   // a range failed: claim no more
	told    bool   // Next has returned that failure
	closed  bool
	books   books
}

// batch is one that is being filled or waits for Next.
type batch struct {
	slab              *kernel.Slab
	first             uint64 // global index of its first row
	claimed, finished int    // rows
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
	l := &Loader{options: o, own: make([][]int32, len(o.Row)), span: o.span(), ready: make(chan struct{}, 1), done: make(chan struct{}),
		open: make([]batch, len(o.Slabs)), free: slices.Clone(o.Slabs), lent: make([]bool, len(o.Slabs)), books: newBooks(o)}
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

// span cuts a batch so that each worker gets four ranges of it, which evens out workers that the
// system has stopped for a while, but not finer than what makes a range long against its two visits
// to the lock.
func (o *Options) span() int {
	const least = 16
	parts := 4 * max(1, o.Workers)
	return min(o.Batch, max(least, (o.Batch+parts-1)/parts))
}

// Next returns the next batch, waiting for it if it must. The slab is the caller's until it is
// given back.
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
		l.books.waited += time.Since(began)
		if err != nil {
			return nil, err
		}
	}
	switch {
	case l.closed:
		return nil, ErrClosed
	case front.err != nil:
		l.told = true
		return nil, front.err
	}
	l.handed++
	l.books.ready[depth]++
	s := front.slab
	l.lent[slices.Index(l.options.Slabs, s)] = true
	l.work.Broadcast()
	return s, nil
}

// await waits until the batch in front is complete or the loader is closed. It is called and
// returns with the lock held.
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
			l.collateRange(l.own)
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

// complete tells whether nothing more will happen to batch k: it is full, or has failed and every
// range that was claimed is through.
func (l *Loader) complete(k uint64) bool {
	if k >= l.opened {
		return false
	}
	b := &l.open[k%uint64(len(l.open))]
	return b.finished == b.claimed && (b.finished == l.options.Batch || b.err != nil)
}

// readyBatches counts those that Next could hand over without waiting.
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
	if i < 0 || !l.lent[i] {
		panic("loader: a slab was given back that is not with the trainer")
	}
	l.lent[i] = false
	l.free = append(l.free, s)
	l.work.Broadcast()
}

// Close ends the workers and waits for them. A failure that Next has not told is Close's answer.
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
	for k := l.handed; k < l.opened && !l.told; k++ {
		if err := l.open[k%uint64(len(l.open))].err; err != nil {
			l.told = true
			return err
		}
	}
	return nil
}
