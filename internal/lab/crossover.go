package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"haul/internal/config"
	"haul/internal/draw"
	"haul/internal/kernel"
	"haul/internal/recipe"
)

// The grids of sizes. Costs are measured at more sizes than whole steps, which take longer.
var (
	costBatches   = []int{32, 128, 512, 2048, 8192}
	costCustomers = []int{10, 20, 50, 100}
	stepBatches   = []int{16, 64, 128, 256}
	stepCustomers = []int{10, 50}
)

// cell is the time for one size on the CPU and on the GPU; 0: not measured.
type cell struct {
	batch, customers int
	cpu, gpu         float64
}

// stepRounds is the number of timed rounds of a step.
const stepRounds = 9

// crossover measures costs and whole steps over a grid of sizes on every device.
func crossover(ctx context.Context, e *env, r *Result) error {
	costs, err := e.costGrid(ctx)
	if err != nil {
		return err
	}
	steps, err := e.stepGrid(ctx)
	if err != nil {
		return err
	}
	r.cells("costs of a batch", costs)
	r.cells("a training step like tiny_1's", steps)
	if e.gpu >= 0 {
		for _, c := range costs {
			if c.batch == 128 && c.customers == 10 {
				r.finds(direction("001", "128 costs at N=10 are the CPU's work"), c.gpu/c.cpu)
			}
		}
		for _, c := range steps {
			if c.batch == 128 && c.customers == 10 {
				r.finds(direction("001", "the model's forward pass and gradients are the GPU's work: a step of tiny_1"), c.cpu/c.gpu)
			}
		}
		r.note("%s", winner("costs", costs))
		r.note("%s", winner("a whole step", steps))
	} else {
		r.note("the GPU's half %s", e.why)
	}
	r.note("costs: one core against one launch with the routes on the card and the costs read back; steps: all cores against the card, model of tiny_1")
	r.Plot, err = plotCells(costs, steps)
	return err
}

// cells adds a grid to the result's rows.
func (r *Result) cells(what string, cells []cell) {
	for _, c := range cells {
		r.row("s", c.cpu, "%s, B=%s, N=%d: CPU", what, thousands(int64(c.batch)), c.customers)
		if c.gpu > 0 {
			r.row("s", c.gpu, "%s, B=%s, N=%d: GPU", what, thousands(int64(c.batch)), c.customers)
		}
	}
	r.Tables = append(r.Tables, tableOf(what, cells))
}

// tableOf returns the cells as a table with a line per N and a column per batch. Each entry has the
// CPU's time, then the GPU's.
func tableOf(what string, cells []cell) Table {
	t := Table{Title: "Time for " + what + ": CPU / GPU", Head: []string{""}}
	for _, c := range cells {
		line := fmt.Sprintf("N=%d", c.customers)
		if len(t.Rows) == 0 || t.Rows[len(t.Rows)-1][0] != line {
			t.Rows = append(t.Rows, []string{line})
		}
		if len(t.Rows) == 1 {
			t.Head = append(t.Head, "B="+thousands(int64(c.batch)))
		}
		text := Row{Value: c.cpu, Unit: "s"}.String() + " / –"
		if c.gpu > 0 {
			text = Row{Value: c.cpu, Unit: "s"}.String() + " / " + Row{Value: c.gpu, Unit: "s"}.String()
		}
		last := len(t.Rows) - 1
		t.Rows[last] = append(t.Rows[last], text)
	}
	return t
}

// winner describes from which batch on the GPU is faster, for each N.
func winner(what string, cells []cell) string {
	at := map[int]int{}
	var order []int
	for _, c := range cells {
		if _, seen := at[c.customers]; !seen {
			order, at[c.customers] = append(order, c.customers), 0
		}
		switch {
		case c.gpu >= c.cpu:
			at[c.customers] = 0
		case at[c.customers] == 0:
			at[c.customers] = c.batch
		}
	}
	text := "the GPU wins " + what
	for i, n := range order {
		if i > 0 {
			text += ";"
		}
		if at[n] == 0 {
			text += fmt.Sprintf(" at N=%d nowhere in the grid", n)
		} else {
			text += fmt.Sprintf(" at N=%d from B=%s on", n, thousands(int64(at[n])))
		}
	}
	return text
}

// costGrid times Batch.Costs on one core and the fused kernel on the GPU.
func (e *env) costGrid(ctx context.Context) (cells []cell, err error) {
	for _, n := range costCustomers {
		for _, b := range costBatches {
			cells = append(cells, cell{batch: b, customers: n})
		}
	}
	fill := func(c *gpu) error {
		for i := range cells {
			work, err := newRoutes(cells[i].batch, cells[i].customers)
			if err != nil {
				return err
			}
			t, err := work.raceCosts(ctx, 15, map[string]func([]float32){wayFused: work.batched}, wayFused)
			if err != nil {
				return err
			}
			cells[i].cpu = t[wayFused]
			if c == nil {
				continue
			}
			if cells[i].gpu, err = c.residentCosts(ctx, work); err != nil {
				return err
			}
		}
		return nil
	}
	if e.gpu < 0 {
		return cells, fill(nil)
	}
	return cells, e.withGPU(fill)
}

// residentCosts returns the seconds of a launch that computes the routes' costs and of reading
// them.
func (c *gpu) residentCosts(ctx context.Context, work *routes) (float64, error) {
	s, got := &setup{c: c}, make([]float32, work.batch.B)
	var fused *call
	var costs uint64
	if err := c.do(func() error {
		x, y, tours := put(s, work.batch.X), put(s, work.batch.Y), put(s, work.tours)
		costs = s.alloc(work.batch.B)
		fused = s.flat("route_costs", 32*work.batch.B, costs, x, y, tours, int32(work.stride), int32(work.nodes), int32(0), int32(work.batch.B))
		return s.err
	}); err != nil {
		return 0, err
	}
	run := c.waited(func() error {
		if err := fused.launch(c.stream); err != nil {
			return err
		}
		return out(c, got, costs, c.stream)
	})
	if err := run(1); err != nil {
		return 0, err
	}
	if err := work.check("the fused kernel", got); err != nil {
		return 0, err
	}
	t, err := race(ctx, gpuRounds, run)
	if err != nil {
		return 0, err
	}
	return t[0], nil
}

// stepGrid times whole training steps of every size on each device.
func (e *env) stepGrid(ctx context.Context) ([]cell, error) {
	var out []cell
	for _, n := range stepCustomers {
		for _, b := range stepBatches {
			out = append(out, cell{batch: b, customers: n})
		}
	}
	fill := func(open func() (kernel.Device, error), set func(c *cell, seconds float64)) error {
		dev, err := open()
		if err != nil {
			return err
		}
		for i := range out {
			if err := ctx.Err(); err != nil {
				return errors.Join(err, dev.Close())
			}
			t, err := stepSeconds(ctx, dev, out[i].batch, out[i].customers)
			if err != nil {
				return errors.Join(err, dev.Close())
			}
			set(&out[i], t)
		}
		return dev.Close()
	}
	if err := fill(e.openCPU, func(c *cell, t float64) { c.cpu = t }); err != nil {
		return nil, err
	}
	if e.gpu < 0 {
		return out, nil
	}
	return out, fill(func() (kernel.Device, error) { return e.openGPU("") }, func(c *cell, t float64) { c.gpu = t })
}

// stepSeconds returns the median time of a plain step like tiny_1's, of that batch and size.
func stepSeconds(ctx context.Context, dev kernel.Device, batch, customers int) (seconds float64, err error) {
	cfg, err := config.Load("tiny_1", []string{fmt.Sprintf("training.batch_size=%d", batch), fmt.Sprintf("problem.num_customers=%d", customers)})
	if err != nil {
		return 0, err
	}
	step, err := recipe.Step(dev, cfg)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, step.Close()) }()
	t, err := race(ctx, stepRounds, replay(step.Runner))
	if err != nil {
		return 0, err
	}
	return t[0], nil
}

// plotCells plots times against the batch on logarithmic axes. A GPU is faster where its curve is
// below the CPU's of the same N.
func plotCells(costs, steps []cell) ([]byte, error) {
	panel := func(title string, cells []cell, small, large int) draw.Panel {
		p := draw.Panel{Title: title, X: "batch",
			XFigure: func(v float64) string { return thousands(int64(math.Round(math.Exp2(v)))) },
			YFigure: func(v float64) string { return Row{Value: math.Pow(10, v), Unit: "s"}.String() }}
		gpu := false
		for _, c := range cells {
			gpu = gpu || c.gpu > 0
		}
		for _, n := range []int{small, large} {
			p.Curves = append(p.Curves, curve(fmt.Sprintf("CPU, N=%d", n), cells, n, func(c cell) float64 { return c.cpu }))
			if gpu {
				p.Curves = append(p.Curves, curve(fmt.Sprintf("GPU, N=%d", n), cells, n, func(c cell) float64 { return c.gpu }))
			}
		}
		return p
	}
	var b bytes.Buffer
	err := draw.Panels(&b, draw.SVG, "Where a GPU starts to win", "Time by size of the batch. Each line across is ten times the one below it; lower is faster.",
		panel("The costs of a batch of routes", costs, 10, 100), panel("A training step like tiny_1's", steps, 10, 50))
	return b.Bytes(), err
}

func curve(name string, cells []cell, n int, time func(cell) float64) draw.Curve {
	c := draw.Curve{Name: name}
	for _, at := range cells {
		if at.customers == n {
			c.Add(math.Log2(float64(at.batch)), math.Log10(time(at)))
		}
	}
	return c
}
