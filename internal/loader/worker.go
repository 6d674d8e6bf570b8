package loader

import (
	"fmt"
	"strings"
	"time"

	"haul/internal/kernel"
)

// What a reader could break: a range is claimed and finished under the lock and filled outside of
// it. Between the two its rows belong to the goroutine that claimed them, and the batch stays open,
// so its place in the ring cannot be taken.

// collate is a worker.
func (l *Loader) collate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.books.turn(1, 0)
	defer l.books.turn(-1, 0)
	row := make([][]int32, len(l.options.Row))
	for {
		for !l.idle() && !l.mayClaim() {
			l.books.turn(-1, 1)
			l.work.Wait()
			l.books.turn(1, -1)
		}
		if l.idle() {
			return
		}
		l.collateRange(row)
	}
}

// idle tells that there is nothing more to do for good.
func (l *Loader) idle() bool { return l.closed || l.failed }

// mayClaim tells whether the last open batch has rows to claim or another may be opened: a slab is
// free, and either the depth is not reached or Next waits with nothing open.
func (l *Loader) mayClaim() bool {
	if l.opened > l.handed && l.last().claimed < l.options.Batch {
		return true
	}
	ahead := l.opened - l.handed
	return len(l.free) > 0 && (ahead < uint64(l.options.Depth) || ahead == 0 && l.waiting)
}

func (l *Loader) last() *batch { return &l.open[(l.opened-1)%uint64(len(l.open))] }

// collateRange claims a range, fills it row by row, and books it. mayClaim must hold; the lock is
// held at the call and at the return, and open in between.
func (l *Loader) collateRange(row [][]int32) {
	if l.opened == l.handed || l.last().claimed == l.options.Batch {
		n := len(l.free) - 1
		l.open[l.opened%uint64(len(l.open))] = batch{slab: l.free[n], first: l.options.From + l.opened*uint64(l.options.Stride)}
		l.free = l.free[:n]
		l.opened++
	}
	b, number := l.last(), l.opened-1
	from, to := b.claimed, min(b.claimed+l.span, l.options.Batch)
	b.claimed = to
	l.mu.Unlock()
	bad, err := l.fill(row, b.slab, b.first, from, to)
	l.mu.Lock()
	if err != nil {
		l.failed = true
		if b.err == nil || bad < b.bad {
			b.bad, b.err = bad, fmt.Errorf("loader: batch %d, row %d (global index %d): %w", number, bad, b.first+uint64(bad), err)
		}
		l.work.Broadcast()
	}
	b.finished += to - from
	if l.complete(number) {
		select {
		case l.ready <- struct{}{}:
		default: // a token is there, and Next looks at every batch in front when it takes it
		}
	}
}

// fill writes rows [from, to) of a batch. A panic becomes an error of one line, with the row.
func (l *Loader) fill(row [][]int32, s *kernel.Slab, first uint64, from, to int) (r int, err error) {
	defer func() {
		if p := recover(); p != nil {
			line, _, _ := strings.Cut(fmt.Sprint(p), "\n")
			err = fmt.Errorf("%s", line)
		}
	}()
	for r = from; r < to; r++ {
		for k, n := range l.options.Row {
			row[k] = s.Ints[k][r*n : (r+1)*n : (r+1)*n]
		}
		if err := l.options.Fill(first+uint64(r), row); err != nil {
			return r, err
		}
	}
	return r, nil
}

// books count what became of everyone's time. Every moment of every worker is booked once, as
// worked or as blocked.
type books struct {
	waited          time.Duration // by the trainer, in Next
	worked, blocked time.Duration // by all workers, up to `until`
	busy, held      int           // workers at each
	until           time.Time
	ready           []int64 // calls of Next by the batches that were ready
}

// newBooks has a place for one batch ready even where none is made ahead: a call of Next that was
// cancelled leaves it.
func newBooks(o Options) books {
	return books{until: time.Now(), ready: make([]int64, 1+max(1, min(o.Depth, len(o.Slabs))))}
}

// turn books the time since the last turn and changes how many workers are busy and held.
func (b *books) turn(busy, held int) {
	at := time.Now()
	b.worked += time.Duration(b.busy) * at.Sub(b.until)
	b.blocked += time.Duration(b.held) * at.Sub(b.until)
	b.busy, b.held, b.until = b.busy+busy, b.held+held, at
}
