package search

import (
	"context"
	"time"

	"haul/internal/vrp"
)

// search is what both drivers have: a problem, its budget, the best routes so far and who hears of
// them.
type search struct {
	p     *vrp.Problem
	o     Options
	begun time.Time

	best       vrp.Solution
	iterations int
	speed      float64 // iterations per second; 0: not measured
	draws      uint64
	ending     ending

	notifiedAt   time.Time     // when Progress heard last
	evaluatedAt  time.Time     // when the best routes were evaluated for it last
	pause        time.Duration // until they may be evaluated again
	notifiedCost float64
	notifiedBest vrp.Solution
	pending      bool // there are better ones
}

// ending is why a search is over before its budget is.
type ending uint8

const (
	open       ending = iota
	targetMet         // the routes cost no more than the target
	provenBest        // no routes cost less
)

// notifyEach is how often the best routes could be evaluated in the time between two evaluations.
const notifyEach = 50

// elapsed is the wall time since a search began.
var elapsed = time.Since

// spent is the part of the budget used, from 0 to 1.
func (d *search) spent() float64 {
	if d.o.Iterations > 0 {
		return float64(d.iterations) / float64(d.o.Iterations)
	}
	return elapsed(d.begun).Seconds() / d.o.Time.Seconds()
}

func (d *search) over(ctx context.Context) bool {
	return d.ending != open || ctx.Err() != nil || d.spent() >= 1
}

// expected is the iterations of the whole budget: as many as are asked for, or what the time holds
// at the speed measured; 0 if it was not.
func (d *search) expected() float64 {
	if d.o.Iterations > 0 {
		return float64(d.o.Iterations)
	}
	return d.speed * d.o.Time.Seconds()
}

// startContext is ctx with the end of a start that has a clock.
func (d *search) startContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.o.Time <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, d.begun.Add(time.Duration(startLatest*float64(d.o.Time))))
}

// notify reports, and sees whether the target is met. The cost of many routes takes a while to
// evaluate: better ones wait until that has taken a small part of the time.
func (d *search) notify(improved bool) {
	if d.o.Progress == nil && d.o.Target == 0 {
		return
	}
	now := time.Now()
	d.pending = d.pending || improved
	due := d.pending && now.Sub(d.evaluatedAt) >= d.pause
	if !due && now.Sub(d.notifiedAt) < 100*time.Millisecond {
		return
	}
	d.notifiedAt = now
	was := d.notifiedCost
	if due {
		d.notifiedCost, d.notifiedBest, d.pending = d.p.Cost(d.best), d.best, false
		d.evaluatedAt = time.Now()
		d.pause = notifyEach * d.evaluatedAt.Sub(now)
	}
	if d.o.Target > 0 && d.notifiedCost <= d.o.Target {
		d.ending = targetMet
	}
	if d.o.Progress != nil {
		d.o.Progress(Progress{Seconds: now.Sub(d.begun).Seconds(), Iterations: d.iterations, Cost: d.notifiedCost,
			Routes: len(d.notifiedBest.Routes), Improved: d.notifiedCost != was, Best: d.notifiedBest})
	}
}

// notifyLast reports the best routes, if they were not.
func (d *search) notifyLast() {
	if d.pause = 0; d.pending {
		d.notify(false)
	}
}
