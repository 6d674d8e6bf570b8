package lab

import (
	"context"
	"fmt"
	"slices"

	"haul/internal/cu"
)

// batchWords is the size of a batch of 1,024 rows of 164 tokens: index (six fields), labels, first.
const batchWords = loadedRows * 164 * (6 + 2 + 1)

// pageLocked copies a batch to the GPU from pageable and from page-locked memory, alone and with a
// step of 12 ms.
func pageLocked(ctx context.Context, e *env, r *Result) error {
	return e.withGPU(func(c *gpu) error {
		var p *pipeline
		var locked []float32
		paged := make([]float32, batchWords)
		var at uint64
		if err := c.do(func() (err error) {
			if p, err = newPipeline(c); err != nil {
				return err
			}
			if locked, err = c.pinned(batchWords); err != nil {
				return err
			}
			s := &setup{c: c}
			at = s.alloc(batchWords)
			return s.err
		}); err != nil {
			return err
		}
		if err := p.calibrate(ctx, agentStepFor); err != nil {
			return err
		}
		t, err := race(ctx, gpuRounds,
			c.waited(func() error { return in(c, at, paged, c.stream) }),
			c.waited(func() error { return in(c, at, locked, c.stream) }))
		if err != nil {
			return err
		}
		u, err := race(ctx, 11,
			c.timed(func() error { return p.copyAndWork(at, paged, c.stream, true) }),
			c.timed(func() error { return p.copyAndWork(at, locked, c.stream, true) }),
			c.timed(func() error { return p.copyAndWork(at, paged, p.streams[1], false) }),
			c.timed(func() error { return p.copyAndWork(at, locked, p.streams[1], false) }))
		if err != nil {
			return err
		}
		const mb = 4 * batchWords / 1e6
		for i, kind := range []string{"pageable", "page-locked"} {
			r.row("s", t[i], "a batch of %.1f MB to the card, %s: %.1f GB/s", mb, kind, mb/1e3/t[i])
			r.row("s", u[i], "the same, %s and waited for, then 12 ms of work", kind)
			r.row("s", u[i+2], "the same, %s, queued beside 12 ms of work", kind)
		}
		r.finds(faster("004", "page-locked memory and prefetching make data loading 2–3× as fast: the copy of a batch", 2, 3), t[0]/t[1])
		r.finds(direction("004", "page-locked memory removes a bottleneck: the copy and then a step of 12 ms"), u[0]/u[1])
		r.finds(direction("004", "with prefetching GPUs never wait: page-locked beside the step, against pageable before it"), u[0]/u[3])
		return nil
	})
}

// copyAndWork copies a batch on a stream and works for a step, after the copy or concurrently.
func (p *pipeline) copyAndWork(at uint64, host []float32, s cu.Stream, before bool) error {
	work := func() error { return p.work[0].launch(p.streams[0]) }
	if !before {
		if err := work(); err != nil {
			return err
		}
	}
	if err := in(p.c, at, host, s); err != nil {
		return err
	}
	if before {
		if err := p.c.ctx.Wait(s); err != nil {
			return err
		}
		if err := work(); err != nil {
			return err
		}
	}
	return p.wait()
}

// The number of tokens for which report 004 creates tensors: the number that it states, and the
// number in its loops.
const (
	countedTensors = 240
	loopedTensors  = collatedRows * embedTokens
)

// tensors adds to the vector of each token on the GPU, token by token or for all at once.
type tensors struct {
	c     *gpu
	n     int
	host  []int32 // an index per token
	index uint64
	y     uint64
	each  []*call
	all   *call
}

// newTensors must run inside do.
func newTensors(c *gpu, n int) (*tensors, error) {
	s, t := &setup{c: c}, &tensors{c: c, n: n, host: make([]int32, n)}
	t.index, t.y = s.alloc(n), put(s, make([]float32, n*embedWidth))
	for i := range n {
		t.each = append(t.each, s.flat("link", embedWidth, t.y+uint64(4*i*embedWidth), int32(embedWidth)))
	}
	t.all = s.flat("link", n*embedWidth, t.y, int32(n*embedWidth))
	return t, s.err
}

// perToken copies the index of each token, waits, as creating a tensor from host memory does, and
// adds. With reserve the driver also allocates its memory each time.
func (t *tensors) perToken(reserve bool) error {
	for i, add := range t.each {
		at := t.index + uint64(4*i)
		if reserve {
			var err error
			if at, err = t.c.ctx.Alloc(4); err != nil {
				return err
			}
		}
		if err := in(t.c, at, t.host[i:i+1], t.c.stream); err != nil {
			return err
		}
		if err := t.c.ctx.Wait(t.c.stream); err != nil {
			return err
		}
		if err := add.launch(t.c.stream); err != nil {
			return err
		}
		if reserve {
			if err := t.c.ctx.Free(at); err != nil {
				return err
			}
		}
	}
	return nil
}

// once copies all indices and adds in one launch.
func (t *tensors) once() error {
	if err := in(t.c, t.index, t.host, t.c.stream); err != nil {
		return err
	}
	return t.all.launch(t.c.stream)
}

// check runs both versions from the same start and compares the results.
func (t *tensors) check() error {
	var got [2][]float32
	for i, way := range []func() error{func() error { return t.perToken(false) }, t.once} {
		got[i] = make([]float32, t.n*embedWidth)
		if err := in(t.c, t.y, make([]float32, t.n*embedWidth), t.c.stream); err != nil {
			return err
		}
		if err := way(); err != nil {
			return err
		}
		if err := out(t.c, got[i], t.y, t.c.stream); err != nil {
			return err
		}
		if err := t.c.ctx.Wait(t.c.stream); err != nil {
			return err
		}
	}
	if got[0][0] != 1 || !slices.Equal(got[0], got[1]) {
		return fmt.Errorf("token by token and all at once differ")
	}
	return nil
}

func tensorsGPU(ctx context.Context, e *env, r *Result) error {
	return e.withGPU(func(c *gpu) error {
		times := map[int][]float64{}
		for _, n := range []int{countedTensors, loopedTensors} {
			var t *tensors
			if err := c.do(func() (err error) {
				if t, err = newTensors(c, n); err == nil {
					err = t.check()
				}
				return err
			}); err != nil {
				return err
			}
			ways := []contender{c.waited(func() error { return t.perToken(false) }), c.waited(t.once)}
			if n == countedTensors {
				ways = append(ways, c.waited(func() error { return t.perToken(true) }))
			}
			var err error
			if times[n], err = race(ctx, 9, ways...); err != nil {
				return err
			}
			r.row("s", times[n][0], "%s tokens of width 128: a copy, a wait and a launch for each", thousands(int64(n)))
			if n == countedTensors {
				r.row("s", times[n][2], "%s tokens: memory from the driver for each as well", thousands(int64(n)))
			}
			r.row("s", times[n][1], "%s tokens: one copy, one launch", thousands(int64(n)))
		}
		counted, looped := times[countedTensors], times[loopedTensors]
		r.finds(faster("004", "tensors made once instead of for every token make the forward pass 5–10× as fast (its embedding, 240 tensors)", 5, 10), counted[0]/counted[1])
		r.finds(faster("004", "the same for the 10,240 tokens that its loops have", 5, 10), looped[0]/looped[1])
		r.finds(takes("004", "making tensors in the loop was the primary bottleneck of 7 s per iteration: 240 tensors", slowIteration), counted[0])
		r.finds(takes("004", "making tensors in the loop was the primary bottleneck of 7 s per iteration: 10,240 tensors", slowIteration), looped[0])
		r.note("an interpreter's time for each of these calls comes on top in the original program")
		return nil
	})
}
