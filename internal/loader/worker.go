package loader

import (
	"fmt"
	"strings"
	"time"

	"haul/internal/kernel"
)

// A range is claimed and finished under the lock and filled without it. In between, its rows belong
// to the goroutine that claimed it, and the batch stays open, so that its place in the ring is not
// reused.

// collate is the loop of a worker.
func (l *Loader) collate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timeStats.turn(1, 0)
	defer l.timeStats.turn(-1, 0)
	row := make([][]int32, len(l.options.Row))
	for {
		for !l.idle() && !l.mayClaim() {
			l.timeStats.turn(-1, 1)
			l.work.Wait()
			l.timeStats.turn(1, -1)
		}
		if l.idle() {
			return
		}
		l.collateRange(row)
	}
}

// idle reports whether no work will follow.
func (l *Loader) idle() bool { return l.closed || l.failed }

// mayClaim reports whether the last open batch has unclaimed rows or another batch may be opened.
// The latter needs a free slab, and either fewer than Depth batches ahead or a waiting Next without
// an open batch.
func (l *Loader) mayClaim() bool {
	if l.opened > l.handed && l.last().claimed < l.options.Batch {
		return true
	}
	ahead := l.opened - l.handed
	return len(l.free) > 0 && (ahead < uint64(l.options.Depth) || ahead == 0 && l.waiting)
}

func (l *Loader) last() *batch { return &l.open[(l.opened-1)%uint64(len(l.open))] }

// collateRange claims a range, fills it row by row, and records it. mayClaim must be true. The lock
// is held at the call and at the return, but not while rows are filled.
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
		default: // a token is present; Next checks all open batches when it takes the token
		}
	}
}

// fill writes rows [from, to) of a batch. It turns a panic into a one-line error with the row.
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

// timeStats measures the time of the trainer and the workers. Every moment of every worker counts
// once, as work or as blocked.
type timeStats struct {
	waited          time.Duration // by the trainer, in Next
	worked, blocked time.Duration // summed over workers, up to `until`
	busy, held      int           // number of workers in each state
	until           time.Time
	ready           []int64 // calls of Next, by the number of ready batches
}

// newTimeStats returns zero times. ready has an entry for one batch even if none is made ahead: a
// call of Next that was cancelled leaves one.
func newTimeStats(o Options) timeStats {
	return timeStats{until: time.Now(), ready: make([]int64, 1+max(1, min(o.Depth, len(o.Slabs))))}
}

// turn adds the time since the last call and changes the numbers of busy and of held workers.
func (b *timeStats) turn(busy, held int) {
	at := time.Now()
	b.worked += time.Duration(b.busy) * at.Sub(b.until)
	b.blocked += time.Duration(b.held) * at.Sub(b.until)
	b.busy, b.held, b.until = b.busy+busy, b.held+held, at
}
