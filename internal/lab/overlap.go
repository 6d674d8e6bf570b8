package lab

import (
	"context"

	"haul/internal/cu"
)

// The chunks that are copied and processed. They are large enough for the copy of their bytes to
// outweigh the fixed cost of a copy.
const (
	chunks    = 8
	chunkSize = 1 << 20 // floats
)

// stepWork is the GPU's computing time of a step of the original program: its recorded trace has
// 44 ms in two steps.
const stepWork = 22e-3

// pipeline copies chunks to the GPU and processes each.
type pipeline struct {
	c       *gpu
	streams [2]cu.Stream
	host    []float32
	in, out [2]uint64
	rounds  int // length of the work, chosen by calibrate
	work    [2]*call
}

// newPipeline must run inside do.
func newPipeline(c *gpu) (*pipeline, error) {
	p := &pipeline{c: c, streams: [2]cu.Stream{c.stream}}
	var err error
	if p.streams[1], err = c.newStream(); err != nil {
		return nil, err
	}
	if p.host, err = c.pinned(chunks * chunkSize); err != nil {
		return nil, err
	}
	s := &setup{c: c}
	for i := range p.in {
		p.in[i], p.out[i] = s.alloc(chunkSize), s.alloc(chunkSize)
	}
	return p, s.err
}

// prepare sets the length of the work. It must run inside do.
func (p *pipeline) prepare(rounds int) error {
	s := &setup{c: p.c}
	for i := range p.work {
		p.work[i] = s.flat("busy", chunkSize, p.out[i], p.in[i], int32(chunkSize), int32(rounds))
	}
	p.rounds = rounds
	return s.err
}

// calibrate finds a length of work that takes about the given time.
func (p *pipeline) calibrate(ctx context.Context, seconds float64) error {
	for rounds := 64; ; rounds *= 2 {
		if err := p.c.do(func() error { return p.prepare(rounds) }); err != nil {
			return err
		}
		t, err := race(ctx, 5, p.c.waited(func() error { return p.work[0].launch(p.c.stream) }))
		if err != nil {
			return err
		}
		if t[0] >= seconds/2 || rounds >= 1<<24 {
			scaled := max(1, int(float64(rounds)*seconds/t[0]))
			return p.c.do(func() error { return p.prepare(scaled) })
		}
	}
}

func (p *pipeline) wait() error {
	for _, s := range p.streams {
		if err := p.c.ctx.Wait(s); err != nil {
			return err
		}
	}
	return nil
}

// run copies and processes chunks on `lanes` streams alternately. With blocking it waits for every
// copy before it queues the work.
func (p *pipeline) run(lanes int, blocking bool) error {
	for i := range chunks {
		k := i % lanes
		if err := in(p.c, p.in[k], p.host[i*chunkSize:][:chunkSize], p.streams[k]); err != nil {
			return err
		}
		if blocking {
			if err := p.c.ctx.Wait(p.streams[k]); err != nil {
				return err
			}
		}
		if err := p.work[k].launch(p.streams[k]); err != nil {
			return err
		}
	}
	return p.wait()
}

// step is the step of the original program: the distance matrices of a batch, then its work. With
// overlapped the next batch's matrices are copied during the work.
func (p *pipeline) step(overlapped bool) error {
	const matrices = 128 * 11 * 11
	s := p.streams[0]
	if overlapped {
		s = p.streams[1]
	}
	if err := in(p.c, p.in[1], p.host[:matrices], s); err != nil {
		return err
	}
	if !overlapped {
		if err := p.c.ctx.Wait(s); err != nil {
			return err
		}
	}
	if err := p.work[0].launch(p.streams[0]); err != nil {
		return err
	}
	return p.wait()
}

func overlap(ctx context.Context, e *env, r *Result) error {
	return e.withGPU(func(c *gpu) error {
		var p *pipeline
		if err := c.do(func() (err error) { p, err = newPipeline(c); return err }); err != nil {
			return err
		}
		copied, err := race(ctx, gpuRounds, c.waited(func() error { return in(c, p.in[0], p.host[:chunkSize], c.stream) }))
		if err != nil {
			return err
		}
		if err := p.calibrate(ctx, copied[0]); err != nil {
			return err
		}
		t, err := race(ctx, gpuRounds, c.timed(func() error { return p.run(1, true) }), c.timed(func() error { return p.run(1, false) }), c.timed(func() error { return p.run(2, false) }))
		if err != nil {
			return err
		}
		r.row("s", copied[0], "a copy of 4 MiB, page-locked")
		r.row("s", t[0], "8 copies of 4 MiB, each waited for, each followed by as much work")
		r.row("s", t[1], "the same, not waited for, one stream")
		r.row("s", t[2], "the same on two streams: copies beside work")
		if err := p.calibrate(ctx, stepWork); err != nil {
			return err
		}
		u, err := race(ctx, 11, c.timed(func() error { return p.step(false) }), c.timed(func() error { return p.step(true) }))
		if err != nil {
			return err
		}
		r.row("s", u[0], "128 matrices of 11×11 copied and waited for, then 22 ms of work")
		r.row("s", u[1], "the same, copied beside the work")
		r.finds(saves("003", "non-blocking copies of the distance matrices save 2–5 % of a step", 0.02, 0.05), u[0]/u[1])
		r.finds(direction("003", "overlapping pays where copies are as long as the work"), t[0]/t[2])
		return nil
	})
}
