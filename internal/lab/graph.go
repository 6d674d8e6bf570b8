package lab

import (
	"context"
	"errors"
	"fmt"
	"math"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/ledger"
	"haul/internal/recipe"
)

// links is the number of kernels of the chain, about the number of ops in a step of tiny_1.
const links = 100

// graph compares launching kernels one by one with launching them as one graph: for a chain of
// small kernels and for a training step.
func graph(ctx context.Context, e *env, r *Result) error {
	err := e.withGPU(func(c *gpu) error {
		var single, whole func() error
		if err := c.do(func() error {
			s := &setup{c: c}
			y := put(s, make([]float32, 1408))
			var calls []*call
			for range links {
				calls = append(calls, s.flat("link", 1408, y, int32(1408)))
			}
			if s.err != nil {
				return s.err
			}
			exec, err := c.chain(calls)
			if err != nil {
				return err
			}
			single = func() error { return launchAll(c.stream, calls) }
			whole = func() error { return exec.Launch(c.stream) }
			return nil
		}); err != nil {
			return err
		}
		t, err := race(ctx, gpuRounds, c.waited(single), c.waited(whole))
		if err != nil {
			return err
		}
		r.row("s", t[0], "%d small kernels, launched one by one", links)
		r.row("s", t[1], "%d small kernels, one graph", links)
		r.finds(saves("003", "submitting many small kernels as one graph saves 10–15 %", 0.10, 0.15), t[0]/t[1])
		return nil
	})
	if err != nil {
		return err
	}
	dev, err := e.openGPU("")
	if err != nil {
		return err
	}
	l, err := measureStep(ctx, dev, "tiny_1")
	if err = errors.Join(err, dev.Close()); err != nil {
		return err
	}
	r.row("s", l.Wall, "a step of tiny_1, op by op")
	r.row("s", l.Plain, "a step of tiny_1, one graph")
	r.finds(saves("003", "compiling the model into a graph saves 10–15 % of the whole", 0.10, 0.15), l.Wall/l.Plain)
	r.note("op by op, each kernel is followed by an event; a graph also runs kernels beside each other where their data allows")
	return nil
}

// measureStep compiles a step with shipped settings and returns its ledger.
func measureStep(ctx context.Context, dev kernel.Device, name string) (*ledger.Ledger, error) {
	cfg, err := config.Load(name, nil)
	if err != nil {
		return nil, err
	}
	step, err := recipe.Step(dev, cfg)
	if err != nil {
		return nil, err
	}
	l, err := ledger.Measure(ctx, dev, step.Runner, step.Program, 20, nil)
	return l, errors.Join(err, step.Close())
}

// products returns the ledger's seconds of matrix products.
func products(l *ledger.Ledger) float64 {
	sum := 0.0
	for _, o := range l.Ops {
		switch o.Op {
		case "linear", "linear.dx", "linear.dw":
			sum += o.Seconds
		}
	}
	return sum
}

// tf32 compares the same steps with products in fp32 and in tf32 on tensor cores.
func tf32(ctx context.Context, e *env, r *Result) error {
	names := []string{"tiny_1", "medium"}
	var steps, parts [2][2]float64 // by precision, by settings
	for i, precision := range []string{"fp32", "tf32"} {
		dev, err := e.openGPU(precision)
		if err != nil {
			return err
		}
		for j, name := range names {
			l, err := measureStep(ctx, dev, name)
			if err != nil {
				return errors.Join(err, dev.Close())
			}
			steps[i][j], parts[i][j] = l.Plain, products(l)
			r.row("s", parts[i][j], "%s, matrix products of a step: %s", name, precision)
			r.row("s", steps[i][j], "%s, a whole step: %s", name, precision)
		}
		if err := dev.Close(); err != nil {
			return err
		}
	}
	for j, name := range names {
		r.finds(saves("003", "tf32 saves 5–10 % of matrix operations ("+name+")", 0.05, 0.10), parts[0][j]/parts[1][j])
		r.finds(direction("003", "tf32 makes the whole step faster ("+name+")"), steps[0][j]/steps[1][j])
	}
	return nil
}

// sameDistances allows for the rounding of a fused multiply-add.
func sameDistances(got, want []float32) error {
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-5) {
			return fmt.Errorf("the card's distance %d is %v, the host's %v", i, got[i], want[i])
		}
	}
	return nil
}
