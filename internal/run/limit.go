package run

import (
	"context"
	"errors"
	"time"
)

// What a reader could break: a GPU accepts updates faster than it computes them, and the host
// learns how long they take only by waiting. So a run with a time limit waits about once per
// second; otherwise many seconds of work would still be queued when the time is over.

// Updates between two waits take about this long.
const (
	leastWait = 0.4 // seconds
	mostWait  = 1.0
)

// limit is the time that a run was given.
type limit struct {
	up func() bool // it is over
	// zero: no limit, or ranks share the run, which wait for each other only where all of them do
	until time.Time
	chunk int     // updates between two waits
	each  float64 // seconds of an update, as it was seen last; 0: not known yet
}

func newLimit(ctx context.Context, shared bool) limit {
	l := limit{up: func() bool { return errors.Is(context.Cause(ctx), ErrTimeUp) }, chunk: 1}
	if until, ok := ctx.Deadline(); ok && !shared {
		l.until = until
	}
	return l
}

// cut is where to wait for the updates after `done` that would go on to `end`.
func (l *limit) cut(done, end int) int {
	if l.until.IsZero() {
		return end
	}
	n := l.chunk
	if l.each > 0 {
		n = min(n, int(time.Until(l.until).Seconds()/l.each))
	}
	return min(end, done+max(1, n))
}

// took takes in how long some updates have taken.
func (l *limit) took(updates int, seconds float64) {
	if updates == 0 {
		return
	}
	l.each = seconds / float64(updates)
	switch {
	case seconds > mostWait:
		l.chunk = max(1, min(l.chunk, updates)/2)
	case seconds < leastWait && updates >= l.chunk:
		l.chunk *= 2
	}
}
