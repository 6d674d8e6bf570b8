package lab

import (
	"context"
	"slices"
)

// transfers copies the distance matrices of a batch in every way that report 002 could mean, and
// compares that with computing them on the GPU.
func transfers(ctx context.Context, e *env, r *Result) error {
	work, err := newRoutes(128, 10)
	if err != nil {
		return err
	}
	return e.withGPU(func(c *gpu) error {
		m, err := newMatrices(c, work)
		if err != nil {
			return err
		}
		names := []string{"one by one, each waited for", "one by one, one wait", "one block", "one by one, page-locked, one wait", "one block, page-locked",
			"never: computed on the card from coordinates", "back, one by one, each waited for"}
		t, err := race(ctx, gpuRounds, c.waited(func() error { return m.each(m.paged, true) }), c.waited(func() error { return m.each(m.paged, false) }),
			c.waited(func() error { return in(c, m.at, m.paged, c.stream) }), c.waited(func() error { return m.each(m.locked, false) }),
			c.waited(func() error { return in(c, m.at, m.locked, c.stream) }), c.waited(func() error { return m.made.launch(c.stream) }), c.waited(m.back))
		if err != nil {
			return err
		}
		for i, name := range names {
			r.row("s", t[i], "128 matrices of 11×11: %s", name)
		}
		cpu, err := work.raceCosts(ctx, cpuRounds, map[string]func([]float32){wayLoop: work.byMatrix}, wayLoop)
		if err != nil {
			return err
		}
		r.row("s", cpu[wayLoop], "128 routes, N=10, CPU: %s", wayLoop)
		r.finds(takes("002", "moving 128 matrices to the GPU one by one takes 238 ms", 238e-3), t[0])
		r.finds(takes("002", "moving them back takes 2.4 ms", 2.4e-3), t[6])
		r.finds(faster("002", "moving them takes 700× as long as the costs they are used for (238 against 0.34 ms)", 700, 700), t[0]/cpu[wayLoop])
		r.finds(direction("002", "small arrays pay for each transfer: one block beats one by one"), t[0]/t[2])
		r.finds(direction("002", "the best transfer is none: the matrices made where they are used beat one block"), t[2]/t[5])
		r.finds(saves("003", "creating tensors on the GPU saves 5–10 % of the transfers' overhead", 0.05, 0.10), t[0]/t[5])
		return nil
	})
}

// matrices holds a batch's distance matrices in host and device memory.
type matrices struct {
	c             *gpu
	size          int // elements of a matrix
	paged, locked []float32
	at            uint64
	made          *call // computes them on the GPU
}

func newMatrices(c *gpu, work *routes) (*matrices, error) {
	m := &matrices{c: c, size: work.nodes * work.nodes, paged: slices.Clone(work.dist)}
	err := c.do(func() (err error) {
		if m.locked, err = c.pinned(len(work.dist)); err != nil {
			return err
		}
		copy(m.locked, work.dist)
		s := &setup{c: c}
		x, y := put(s, work.batch.X), put(s, work.batch.Y)
		m.at = s.alloc(len(work.dist))
		m.made = s.flat("distances", len(work.dist), m.at, x, y, int32(work.batch.B), int32(work.nodes))
		if s.err != nil {
			return s.err
		}
		if err := m.made.launch(c.stream); err != nil {
			return err
		}
		got := make([]float32, len(work.dist))
		if err := out(c, got, m.at, c.stream); err != nil {
			return err
		}
		if err := c.ctx.Wait(c.stream); err != nil {
			return err
		}
		return sameDistances(got, work.dist)
	})
	return m, err
}

// each copies the matrices from host memory, one by one.
func (m *matrices) each(host []float32, wait bool) error {
	for i := 0; i < len(host); i += m.size {
		if err := in(m.c, m.at+4*uint64(i), host[i:i+m.size], m.c.stream); err != nil {
			return err
		}
		if wait {
			if err := m.c.ctx.Wait(m.c.stream); err != nil {
				return err
			}
		}
	}
	return nil
}

// back copies the matrices to the host, one by one.
func (m *matrices) back() error {
	for i := 0; i < len(m.paged); i += m.size {
		if err := out(m.c, m.paged[i:i+m.size], m.at+4*uint64(i), m.c.stream); err != nil {
			return err
		}
		if err := m.c.ctx.Wait(m.c.stream); err != nil {
			return err
		}
	}
	return nil
}
