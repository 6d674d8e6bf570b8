package loader

import (
	"slices"
	"time"
)

// Stats is the time spent since the start.
type Stats struct {
	Batches uint64        // returned by Next
	Waited  time.Duration // by the trainer, in Next
	Worked  time.Duration // summed over workers; without workers equal to Waited
	Blocked time.Duration // summed over workers: enough batches were ready, or no slab was free
	Ready   []int64       // Ready[n]: calls of Next when n batches were ready
}

// MeanReady returns the mean number of ready batches at a call of Next.
func (s Stats) MeanReady() float64 {
	sum, calls := 0.0, 0.0
	for n, c := range s.Ready {
		sum, calls = sum+float64(n)*float64(c), calls+float64(c)
	}
	return sum / max(1, calls)
}

// Stats returns the times up to now.
func (l *Loader) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timeStats.turn(0, 0)
	s := Stats{Batches: l.handed, Waited: l.timeStats.waited, Worked: l.timeStats.worked, Blocked: l.timeStats.blocked, Ready: slices.Clone(l.timeStats.ready)}
	if l.options.Workers == 0 {
		s.Worked = s.Waited
	}
	return s
}

// Waited returns how long the trainer has waited for batches in total.
func (l *Loader) Waited() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timeStats.waited
}
