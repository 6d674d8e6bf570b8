package lab

import "context"

// gpuRounds is the number of rounds of a race on the GPU.
const gpuRounds = 41

// gpuCosts holds a batch of routes on the GPU, for every implementation of their costs. An
// implementation leaves the costs in got.
type gpuCosts struct {
	c      *gpu
	work   *routes
	tours  uint64
	out    uint64
	single uint64 // device memory of one route, for perRoute
	got    []float32

	gather, sum []*call // one route at a time, with its matrix
	operations  []*call // all routes, one operation per launch
	fused       *call   // all routes in one launch
}

// newGPUCosts must run inside do.
func newGPUCosts(c *gpu, work *routes) (*gpuCosts, error) {
	s := &setup{c: c}
	b, steps, nodes := work.batch.B, work.stride-1, work.nodes
	g := &gpuCosts{c: c, work: work, got: make([]float32, b)}
	x, y, dist, lengths := put(s, work.batch.X), put(s, work.batch.Y), put(s, work.dist), put(s, work.lengths)
	g.tours, g.out, g.single = put(s, work.tours), s.alloc(b), s.alloc(work.stride)
	legs := s.alloc(steps)
	for i := range b {
		count := int32(work.lengths[i] - 1)
		g.gather = append(g.gather, s.prepare("one_gather", 1, blockSize, legs, dist+4*uint64(i*nodes*nodes), g.single, count, int32(nodes)))
		g.sum = append(g.sum, s.prepare("one_sum", 1, 32, g.out+4*uint64(i), legs, count))
	}
	n, all := b*steps, int32(b*steps)
	stacked, index, mask, found, masked := s.alloc(len(work.dist)), s.alloc(n), s.alloc(n), s.alloc(n), s.alloc(n)
	g.operations = []*call{
		s.flat("all_stack", len(work.dist), stacked, dist, int32(len(work.dist))),
		s.flat("all_index", n, index, g.tours, int32(b), int32(steps), int32(nodes)),
		s.flat("all_mask", n, mask, lengths, int32(b), int32(steps)),
		s.flat("all_gather", n, found, stacked, index, all),
		s.flat("all_apply", n, masked, found, mask, all),
		s.flat("all_sum", 32*b, g.out, masked, int32(b), int32(steps)),
	}
	g.fused = s.flat("route_costs", 32*b, g.out, x, y, g.tours, int32(work.stride), int32(nodes), int32(0), int32(b))
	return g, s.err
}

// perRoute is the loop of the reports: it copies each route to the GPU and computes its cost with
// two launches. With back it reads each cost before the next route.
func (g *gpuCosts) perRoute(back bool) error {
	c := g.c
	for i := range g.work.batch.B {
		if err := in(c, g.single, g.work.tours[i*g.work.stride:][:g.work.lengths[i]], c.stream); err != nil {
			return err
		}
		if err := g.gather[i].launch(c.stream); err != nil {
			return err
		}
		if err := g.sum[i].launch(c.stream); err != nil {
			return err
		}
		if back {
			if err := out(c, g.got[i:i+1], g.out+4*uint64(i), c.stream); err != nil {
				return err
			}
			if err := c.ctx.Wait(c.stream); err != nil {
				return err
			}
		}
	}
	if back {
		return nil
	}
	return g.read()
}

// vectorised copies the padded routes to the GPU and runs six operations.
func (g *gpuCosts) vectorised() error {
	if err := in(g.c, g.tours, g.work.tours, g.c.stream); err != nil {
		return err
	}
	if err := launchAll(g.c.stream, g.operations); err != nil {
		return err
	}
	return g.read()
}

// copied copies the routes to the GPU and computes all costs in one launch.
func (g *gpuCosts) copied() error {
	if err := in(g.c, g.tours, g.work.tours, g.c.stream); err != nil {
		return err
	}
	return g.resident()
}

// resident computes the costs of routes that are on the GPU already, as after a rollout.
func (g *gpuCosts) resident() error {
	if err := g.fused.launch(g.c.stream); err != nil {
		return err
	}
	return g.read()
}

// read copies all costs to the host and waits for them.
func (g *gpuCosts) read() error {
	if err := out(g.c, g.got, g.out, g.c.stream); err != nil {
		return err
	}
	return g.c.ctx.Wait(g.c.stream)
}

// way is a named implementation on the GPU.
type way struct {
	name string
	run  func() error
}

// raceGPU checks the costs of each implementation, then races them.
func (g *gpuCosts) raceGPU(ctx context.Context, rounds int, ways ...way) (map[string]float64, error) {
	var list []contender
	for _, w := range ways {
		if err := g.c.do(func() error {
			clear(g.got)
			return w.run()
		}); err != nil {
			return nil, err
		}
		if err := g.work.check(w.name, g.got); err != nil {
			return nil, err
		}
		list = append(list, g.c.timed(w.run))
	}
	times, err := race(ctx, rounds, list...)
	if err != nil {
		return nil, err
	}
	named := map[string]float64{}
	for i, w := range ways {
		named[w.name] = times[i]
	}
	return named, nil
}

// The names of implementations on the GPU; cost_cpu.go has those on the CPU.
const (
	wayRoute    = "a route at a time: a copy and two launches each"
	wayBack     = "a route at a time, each cost read back"
	wayMoved    = "fused, one launch, routes copied in"
	wayResident = "fused, one launch, routes on the card"
)

func (e *env) withCosts(b, n int, f func(g *gpuCosts) error) error {
	work, err := newRoutes(b, n)
	if err != nil {
		return err
	}
	return e.withGPU(func(c *gpu) error {
		var g *gpuCosts
		if err := c.do(func() (err error) { g, err = newGPUCosts(c, work); return err }); err != nil {
			return err
		}
		return f(g)
	})
}

func costGPU(ctx context.Context, e *env, r *Result) error {
	return e.withCosts(128, 10, func(g *gpuCosts) error {
		cpu, err := g.work.raceCosts(ctx, cpuRounds, map[string]func([]float32){wayLoop: g.work.byMatrix, wayFused: g.work.batched}, wayLoop, wayFused)
		if err != nil {
			return err
		}
		ways := []way{{wayRoute, func() error { return g.perRoute(false) }}, {wayBack, func() error { return g.perRoute(true) }},
			{wayOps, g.vectorised}, {wayMoved, g.copied}, {wayResident, g.resident}}
		t, err := g.raceGPU(ctx, gpuRounds, ways...)
		if err != nil {
			return err
		}
		r.row("s", cpu[wayLoop], "128 routes, N=10, CPU: %s", wayLoop)
		r.row("s", cpu[wayFused], "128 routes, N=10, CPU: %s", wayFused)
		for _, w := range ways {
			r.row("s", t[w.name], "128 routes, N=10, GPU: %s", w.name)
		}
		r.finds(faster("001", "a route at a time on the GPU is 193× slower than the CPU's loop", 193, 193), t[wayRoute]/cpu[wayLoop])
		r.finds(faster("001", "with a read-back per route it is 213× slower", 213, 213), t[wayBack]/cpu[wayLoop])
		r.finds(faster("001", "reading each cost back adds 9 % (77.92 against 71.42 ms)", 77.92/71.42, 77.92/71.42), t[wayBack]/t[wayRoute])
		r.finds(direction("001", "costing on the GPU does not pay at N=10: the CPU's batch beats the best of the GPU"), t[wayResident]/cpu[wayFused])
		r.finds(direction("000", "on the GPU a loop over routes beats the vectorised version"), t[wayOps]/t[wayRoute])
		r.finds(saves("003", "compiling the vectorised cost into one function saves 15–20 % of it", 0.15, 0.20), t[wayOps]/t[wayMoved])
		r.finds(saves("003", "making the routes on the GPU instead of copying them in saves 5–10 %", 0.05, 0.10), t[wayMoved]/t[wayResident])
		r.note("each GPU time ends with the costs on the host; launches come straight from the driver, without an interpreter's time")
		return nil
	})
}

func paradoxGPU(ctx context.Context, e *env, r *Result) error {
	return e.withCosts(128, 10, func(g *gpuCosts) error {
		ways := []way{{wayLoop, func() error { return g.perRoute(false) }}, {wayRepeat, func() error {
			for range 9 {
				if err := g.perRoute(false); err != nil {
					return err
				}
			}
			return nil
		}}, {wayOps, g.vectorised}}
		t, err := g.raceGPU(ctx, gpuRounds, ways...)
		if err != nil {
			return err
		}
		for _, w := range ways {
			r.row("s", t[w.name], "128 routes, N=10: %s", w.name)
		}
		r.paradox(t)
		return nil
	})
}
