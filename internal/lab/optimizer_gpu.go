package lab

import "context"

// optimizerGPU updates tiny_1's weights by five launches per parameter, by five over the flat
// buffer, and by a single one.
func optimizerGPU(ctx context.Context, e *env, r *Result) error {
	layout, err := tinyLayout()
	if err != nil {
		return err
	}
	return e.withGPU(func(c *gpu) error {
		var each, flat, fused []*call
		var one, many uint64
		if err := c.do(func() error {
			s := &setup{c: c}
			host := newAdam(layout)
			buffers := func() [4]uint64 { return [4]uint64{put(s, host.w), put(s, host.m), put(s, host.v), put(s, host.g)} }
			scaled := s.alloc(layout.Len)
			a, b, d := buffers(), buffers(), buffers()
			one, many = a[0], b[0]
			fused = []*call{s.flat("adam_fused", layout.Len, a[0], a[1], a[2], a[3], int32(layout.Len), adamScale, adamBeta1, adamBeta2, adamKeep, adamRate, adamEps)}
			for _, p := range layout.Params {
				each = append(each, s.passes(b, scaled, p.Offset, p.Len())...)
			}
			flat = s.passes(d, scaled, 0, layout.Len)
			return s.err
		}); err != nil {
			return err
		}
		if err := c.do(func() error { return c.compareAdam(layout.Len, one, many, fused, each) }); err != nil {
			return err
		}
		t, err := race(ctx, gpuRounds, c.waited(func() error { return launchAll(c.stream, each) }), c.waited(func() error { return launchAll(c.stream, flat) }),
			c.waited(func() error { return launchAll(c.stream, fused) }))
		if err != nil {
			return err
		}
		r.row("s", t[0], "tiny_1, %d parameters: five launches per parameter", len(layout.Params))
		r.row("s", t[1], "tiny_1: five launches over the flat buffer")
		r.row("s", t[2], "tiny_1: one launch")
		r.finds(direction("003", "a fused optimizer is faster than a loop over parameters"), t[0]/t[2])
		r.finds(direction("003", "a fused optimizer is faster than passes over all parameters at once (_multi_tensor)"), t[1]/t[2])
		return nil
	})
}

// passes prepares the five passes over elements [at, at+n) of the buffers w, m, v, g. The scaled
// gradient has a separate buffer, so that a pass can be repeated.
func (s *setup) passes(b [4]uint64, scaled uint64, at, n int) []*call {
	off := 4 * uint64(at)
	w, m, v, g, count := b[0]+off, b[1]+off, b[2]+off, scaled+off, int32(n)
	return []*call{
		s.flat("adam_scale", n, g, b[3]+off, count, adamScale),
		s.flat("adam_first", n, m, g, count, adamBeta1),
		s.flat("adam_second", n, v, g, count, adamBeta2),
		s.flat("adam_decay", n, w, count, adamKeep),
		s.flat("adam_apply", n, w, m, v, count, adamRate, adamEps),
	}
}

// compareAdam runs both versions once and compares the weights. It must run inside do.
func (c *gpu) compareAdam(n int, one, many uint64, fused, each []*call) error {
	if err := launchAll(c.stream, fused); err != nil {
		return err
	}
	if err := launchAll(c.stream, each); err != nil {
		return err
	}
	a, b := make([]float32, n), make([]float32, n)
	if err := out(c, a, one, c.stream); err != nil {
		return err
	}
	if err := out(c, b, many, c.stream); err != nil {
		return err
	}
	if err := c.ctx.Wait(c.stream); err != nil {
		return err
	}
	return sameWeights(a, b)
}
