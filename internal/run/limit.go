package run

import (
	"context"
	"errors"
	"time"
)

// A GPU accepts updates faster than it computes them, and the host learns how long they take only
// by waiting for them. A run with a time limit therefore waits about once per second: otherwise
// many seconds of work would still be queued at the limit.

// Bounds of the time between two waits. The number of updates between them is doubled or halved.
const (
	leastWait = 0.4 // seconds
	mostWait  = 1.0
)

// limit is the time limit of a run.
type limit struct {
	up func() bool // reports whether the time is over
	// zero: no limit, or a run of several ranks, which must all wait after the same updates
	until time.Time
	chunk int     // updates between two waits
	each  float64 // seconds of an update, as measured last; 0: not known yet
}

func newLimit(ctx context.Context, shared bool) limit {
	l := limit{up: func() bool { return errors.Is(context.Cause(ctx), ErrTimeUp) }, chunk: 1}
	if until, ok := ctx.Deadline(); ok && !shared {
		l.until = until
	}
	return l
}

// cut returns the update at which to wait next: at most end, more than done.
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

// took records that the last updates took `seconds`.
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
