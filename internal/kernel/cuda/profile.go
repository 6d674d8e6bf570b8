package cuda

import (
	"errors"
	"slices"
	"time"

	"haul/internal/cu"
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// Profile times plain replays of the graph, then one step launched op by op with an event between
// ops. The instrumented step runs its ops one after the other, so it also shows what the graph's
// overlap wins.
func (r *runner) Profile(plain int) (*kernel.Profile, error) {
	if r.prog.Exchanges() || r.prog.Share.Runs() > 1 {
		return nil, errors.New("a step in parts, or one that exchanges its gradient, cannot be launched op by op")
	}
	times := make([]time.Duration, max(1, plain))
	for i := range times {
		began := time.Now()
		if err := r.Run(); err != nil {
			return nil, err
		}
		if err := r.d.ctx.Do(func() error { return r.d.ctx.Wait(r.d.stream) }); err != nil {
			return nil, err
		}
		times[i] = time.Since(began)
	}
	slices.Sort(times)
	r.steps++
	p := &kernel.Profile{Program: r.prog, Workers: 1, Plain: times[len(times)/2], Halved: r.d.precision == bind.BF16}
	return p, r.d.ctx.Do(func() error { return r.timeOps(p) })
}

// timeOps launches the step op by op. The closing advance is booked on the last op. On the
// context's thread.
func (r *runner) timeOps(p *kernel.Profile) error {
	c, s := r.d.ctx, r.d.stream
	ops := len(r.launches) - 1
	marks := make([]cu.Event, ops+2)
	for i := range marks {
		var err error
		if marks[i], err = c.NewEvent(); err != nil {
			return err
		}
		defer c.FreeEvent(marks[i])
	}
	began := time.Now()
	if err := c.Record(marks[0], s); err != nil {
		return err
	}
	for i := range r.launches {
		if err := r.launchOp(i); err != nil {
			return err
		}
		if err := c.Record(marks[min(i, ops)+1], s); err != nil {
			return err
		}
	}
	if err := c.Wait(s); err != nil {
		return err
	}
	p.Wall = time.Since(began)
	var at time.Duration
	for i := range marks[1:] {
		ms, err := c.Elapsed(marks[0], marks[i+1])
		if err != nil {
			return err
		}
		end := time.Duration(float64(ms) * float64(time.Millisecond))
		p.Spans = append(p.Spans, kernel.Span{Op: min(i, ops-1), Shard: -1, Start: at, End: end})
		at = end
	}
	if at < p.Wall {
		p.Spans = append(p.Spans, kernel.Span{Op: kernel.Idle, Shard: -1, Start: at, End: p.Wall})
	}
	return nil
}
