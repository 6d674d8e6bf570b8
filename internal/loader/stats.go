package loader

import (
	"slices"
	"time"
)

// Stats say where the time went since the start.
type Stats struct {
	Batches uint64        // handed over
	Waited  time.Duration // by the trainer, in Next
	Worked  time.Duration // by all workers together; without workers, as Waited
	Blocked time.Duration // by all workers together: enough batches were ready, or no slab was free
	Ready   []int64       // Ready[n]: batches asked for while n were ready
}

// MeanReady is how many batches were ready on average when one was asked for.
func (s Stats) MeanReady() float64 {
	sum, calls := 0.0, 0.0
	for n, c := range s.Ready {
		sum, calls = sum+float64(n)*float64(c), calls+float64(c)
	}
	return sum / max(1, calls)
}

// Stats books everyone's time up to this moment.
func (l *Loader) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.books.turn(0, 0)
	s := Stats{Batches: l.handed, Waited: l.books.waited, Worked: l.books.worked, Blocked: l.books.blocked, Ready: slices.Clone(l.books.ready)}
	if l.options.Workers == 0 {
		s.Worked = s.Waited
	}
	return s
}

// Waited is how long the trainer has waited for batches in all.
func (l *Loader) Waited() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.books.waited
}
