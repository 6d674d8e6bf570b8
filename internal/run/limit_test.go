package run

import (
	"context"
	"testing"
	"time"
)

// TestLimitWaitsAboutOncePerSecond: intervals grow until they take long enough and shrink if they
// take too long. They pass the time limit by at most one update.
func TestLimitWaitsAboutOncePerSecond(t *testing.T) {
	ctx, cancel := context.WithDeadlineCause(t.Context(), time.Now().Add(time.Hour), ErrTimeUp)
	defer cancel()
	l := newLimit(ctx, false)
	done := 0
	for range 30 { // updates of a millisecond
		end := l.cut(done, 1<<30)
		l.took(end-done, float64(end-done)/1000)
		done = end
	}
	if l.chunk < 400 || l.chunk > 1000 {
		t.Errorf("%d updates of a millisecond between two waits", l.chunk)
	}
	if end := l.cut(done, done+3); end != done+3 {
		t.Errorf("past what follows: %d of %d", end-done, 3)
	}
	for range 10 { // updates of a tenth of a second
		end := l.cut(done, 1<<30)
		l.took(end-done, float64(end-done)/10)
		done = end
	}
	if l.chunk < 1 || l.chunk > 10 {
		t.Errorf("%d updates of a tenth of a second between two waits", l.chunk)
	}
	l.until, l.each, l.chunk = time.Now(), 1, 500
	if end := l.cut(done, 1<<30); end != done+1 {
		t.Errorf("%d updates when the time is up", end-done)
	}
}

// TestNoLimitCutsNothing: intervals are not shortened without a deadline, nor with several ranks,
// which must all wait after the same updates.
func TestNoLimitCutsNothing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for name, l := range map[string]limit{"no deadline": newLimit(t.Context(), false), "ranks": newLimit(ctx, true)} {
		if end := l.cut(3, 1000); end != 1000 {
			t.Errorf("%s: cut at %d", name, end)
		}
	}
	if l := newLimit(ctx, false); l.up() {
		t.Error("an hour is over already")
	}
}
