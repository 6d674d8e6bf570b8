package run

import (
	"context"
	"fmt"
	"time"

	"haul/internal/report"
)

// A user whose run will take days is informed once, early, while stopping is cheap.

// After paceAfter of updates, the duration of the run is estimated. A run that will take longer
// than longRun is reported by a note.
const (
	paceAfter = 3 * time.Second
	longRun   = 6 * time.Hour
)

// pace measures the updates of this process.
type pace struct {
	updates int
	spent   time.Duration
	noted   bool
}

// add counts updates. It returns the note once it is due, else "".
func (p *pace) add(updates int, spent time.Duration, left int, unit string) string {
	p.updates += updates
	p.spent += spent
	if p.noted || p.spent < paceAfter || p.updates == 0 {
		return ""
	}
	p.noted = true
	seconds := p.spent.Seconds() / float64(p.updates) * float64(left)
	if seconds < longRun.Seconds() {
		return ""
	}
	return fmt.Sprintf("at this pace the run takes %s more: fewer --%ss, a smaller model or batch, or a faster --device shorten it; Ctrl-C saves", report.Long(seconds), unit)
}

// reportPace adds updates to the pace and reports its note.
func (r *run) reportPace(updates int, spent time.Duration) {
	if note := r.pace.add(updates, spent, r.trainer.Total()-r.at.Updates, r.Recipe.About().Unit); note != "" {
		r.Listener.Note(note)
	}
}

// Abandoner is a trainer that can discard an update in progress, as if it had never begun. Update
// then returns the context's error.
type Abandoner interface {
	Abandon() // may be called from any goroutine
}

// patience is the time that an update in progress may still take after the context has ended.
const patience = 2 * time.Second

// abandonAfter abandons an update that takes longer than patience after the end of the context. The
// caller must call the returned function after the update.
func (r *run) abandonAfter(ctx context.Context) func() {
	a, ok := r.trainer.(Abandoner)
	if !ok {
		return func() {}
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-done:
		case <-time.After(patience):
			a.Abandon()
		}
	})
	return func() { stop(); close(done) }
}

// ProgressNotes returns a function that reports long work by notes: none in the first second, then
// one per five seconds.
func ProgressNotes(note func(string), what string) func(done, of int) {
	next := time.Now().Add(time.Second)
	return func(done, of int) {
		if now := time.Now(); now.After(next) && of > 0 {
			next = now.Add(5 * time.Second)
			note(fmt.Sprintf("%s: %d%%", what, 100*done/of))
		}
	}
}
