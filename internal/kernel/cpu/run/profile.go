package run

import (
	"slices"
	"time"

	"haul/internal/kernel"
)

// clock gathers one worker's spans. It stays off outside a profile, where it costs a branch per op.
type clock struct {
	on     bool
	began  time.Time
	last   time.Duration
	spans  []kernel.Span
	worker int
}

// lap ends the span under way and names it.
func (c *clock) lap(op, shard int) {
	if !c.on {
		return
	}
	now := time.Since(c.began)
	c.spans = append(c.spans, kernel.Span{Op: op, Worker: c.worker, Shard: shard, Start: c.last, End: now})
	c.last = now
}

// Profile times plain steps, then one with every op's start and end noted by the worker that ran
// it.
func (r *Runner) Profile(plain int) (*kernel.Profile, error) {
	times := make([]time.Duration, max(1, plain))
	for i := range times {
		began := time.Now()
		if err := r.Run(); err != nil {
			return nil, err
		}
		times[i] = time.Since(began)
	}
	slices.Sort(times)
	began := time.Now()
	for i, w := range r.workers {
		w.clock = clock{on: true, began: began, worker: i, spans: make([]kernel.Span, 0, (len(r.ops)+4)*r.Program.Shards()+8)}
	}
	err := r.Run()
	p := &kernel.Profile{Program: r.Program, Workers: len(r.workers), Wall: time.Since(began), Plain: times[len(times)/2]}
	for _, w := range r.workers {
		p.Spans = append(p.Spans, w.clock.spans...)
		if w.clock.last < p.Wall {
			p.Spans = append(p.Spans, kernel.Span{Op: kernel.Idle, Worker: w.clock.worker, Shard: -1, Start: w.clock.last, End: p.Wall})
		}
		w.clock = clock{}
	}
	return p, err
}
