package run

import (
	"context"
	"fmt"
	"time"

	"haul/internal/report"
)

// What a reader could break: a user whose run will take days should be told once, early, while
// stopping costs nothing.

// Updates say how long a run will take once they have run for this long; a run that will take
// longer than longRun is worth a note.
const (
	paceAfter = 3 * time.Second
	longRun   = 6 * time.Hour
)

// pace is what this process's updates have taken so far.
type pace struct {
	updates int
	spent   time.Duration
	told    bool
}

// add counts updates, and returns the note that they are due, or "".
func (p *pace) add(updates int, spent time.Duration, left int, unit string) string {
	p.updates += updates
	p.spent += spent
	if p.told || p.spent < paceAfter || p.updates == 0 {
		return ""
	}
	p.told = true
	seconds := p.spent.Seconds() / float64(p.updates) * float64(left)
	if seconds < longRun.Seconds() {
		return ""
	}
	return fmt.Sprintf("at this pace the run takes %s more: fewer --%ss, a smaller model or batch, or a faster --device shorten it; Ctrl-C saves", report.Long(seconds), unit)
}

// tellPace lets the pace of updates be heard.
func (r *run) tellPace(updates int, spent time.Duration) {
	if note := r.pace.add(updates, spent, r.trainer.Total()-r.at.Updates, r.Recipe.About().Unit); note != "" {
		r.Listener.Note(note)
	}
}

// Abandoner is a trainer that can give up the update under way, as if it had never begun. Its
// Update then returns the context's error.
type Abandoner interface {
	Abandon() // from any goroutine
}

// patience is how long an update under way may take when somebody wants the run to end.
const patience = 2 * time.Second

// abandonAfter lets the trainer give up an update that takes longer than patience after the end of
// the context. What it returns ends that.
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

// ProgressNotes tells of long work through notes: nothing for the first second, then every five.
func ProgressNotes(note func(string), what string) func(done, of int) {
	next := time.Now().Add(time.Second)
	return func(done, of int) {
		if now := time.Now(); now.After(next) && of > 0 {
			next = now.Add(5 * time.Second)
			note(fmt.Sprintf("%s: %d%%", what, 100*done/of))
		}
	}
}
