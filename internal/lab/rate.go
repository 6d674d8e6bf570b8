package lab

import (
	"context"
	"errors"
	"fmt"
	"math"

	"haul/internal/kernel"
	"haul/internal/rng"
)

// Sizes of the runs that learn from the same samples in batches of different sizes.
const (
	rateSamples = 3 << 12
	rateBase    = 1e-3 // learning rate of the smallest batch
	rateTests   = 512
	// noiseBatches is the number of gradients that are compared. Their deviation has few large
	// components, so that an estimate needs many gradients.
	noiseBatches = 16
)

var rateBatches = []int{128, 512, 2048}

// scaling is a rule for the learning rate of a batch that is k times larger.
type scaling struct {
	name string
	rate func(k float64) float64
}

var scalings = []scaling{
	{"kept", func(float64) float64 { return 1 }},
	{"× the square root", math.Sqrt},
	{"× the factor", func(k float64) float64 { return k }},
}

func batchRate(ctx context.Context, e *env, r *Result) (err error) {
	a, err := newAgent(10, 10)
	if err != nil {
		return err
	}
	dev, err := e.openCPU()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	smallest := rateBatches[0]
	loss := map[int][]float64{}
	losses := Table{Title: "Loss on other sequences after " + thousands(rateSamples) + " samples, by the learning rate", Head: []string{"", "updates"}}
	for _, s := range scalings {
		losses.Head = append(losses.Head, s.name)
	}
	for _, n := range rateBatches {
		line := []string{"B=" + thousands(int64(n)), fmt.Sprint(rateSamples / n)}
		for i, s := range scalings {
			if i > 0 && n == smallest { // the smallest batch has no scaling
				loss[n] = append(loss[n], loss[n][0])
				line = append(line, "")
				continue
			}
			l, err := a.learn(ctx, dev, n, rateBase*s.rate(float64(n/smallest)))
			if err != nil {
				return err
			}
			loss[n] = append(loss[n], l)
			line = append(line, fmt.Sprintf("%.3f", l))
			r.row("nats", l, "loss after %s samples, B=%s, rate %s", thousands(rateSamples), thousands(int64(n)), s.name)
		}
		losses.Rows = append(losses.Rows, line)
	}
	r.Tables = append(r.Tables, losses)
	noise, table := map[int]float64{}, Table{Title: "Deviation of a gradient from the mean of many, in parts of that mean", Head: []string{"", "deviation"}}
	for _, n := range []int{512, 1024} {
		if noise[n], err = a.noise(ctx, dev, n); err != nil {
			return err
		}
		r.row("%", 100*noise[n], "deviation of a gradient from the mean of %d, B=%s", noiseBatches, thousands(int64(n)))
		table.Rows = append(table.Rows, []string{"B=" + thousands(int64(n)), fmt.Sprintf("%.1f %%", 100*noise[n])})
	}
	r.Tables = append(r.Tables, table)
	largest := loss[rateBatches[len(rateBatches)-1]]
	r.finds(direction("004", "gradients of 1,024 samples are steadier than of 512: their deviation"), noise[512]/noise[1024])
	r.finds(direction("004", "a larger batch is a gain, its learning rate left alone: loss after the same samples, 128 against 2,048"), loss[smallest][0]/largest[0])
	r.finds(direction("004", "the learning rate may stay where it is: loss at 2,048 with the rate scaled, the better way, against kept"), min(largest[1], largest[2])/largest[0])
	r.note("one layer of width 32, AdamW, rate %g at a batch of 128, on the CPU; a guess at random has a loss of %.2f", rateBase, math.Log(5))
	return nil
}

// learn trains from the initial weights on the same samples in batches of n and returns the loss on
// other sequences.
func (a *agent) learn(ctx context.Context, dev kernel.Device, n int, rate float64) (loss float64, err error) {
	store, err := a.store(dev)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	run, err := a.compile(dev, store, n, a.spec.Tokens, true)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, run.runner.Close()) }()
	if err := run.runner.SetControl(kernel.Control{LearningRate: float32(rate), Temperature: 1}); err != nil {
		return 0, err
	}
	if err := a.feed(ctx, run, rng.Regions, n, rateSamples/n, run.runner.Run); err != nil {
		return 0, err
	}
	test, err := a.compile(dev, store, rateTests, a.spec.Tokens, false)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, test.runner.Close()) }()
	err = a.feed(ctx, test, rng.TestRegions, rateTests, 1, func() error { loss, err = test.loss(); return err })
	return loss, err
}

// noise returns the root-mean-square deviation of a gradient of n samples from the mean of many
// such gradients, in units of that mean's norm.
func (a *agent) noise(ctx context.Context, dev kernel.Device, n int) (deviation float64, err error) {
	store, err := a.store(dev)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	// the learning rate is 0, so that all gradients belong to the same weights
	run, err := a.compile(dev, store, n, a.spec.Tokens, true)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, run.runner.Close()) }()
	l := a.model.Layout().Len
	grad, sum, squares := make([]float32, l), make([]float64, l), 0.0
	if err := a.feed(ctx, run, rng.Regions, n, noiseBatches, func() error {
		if err := errors.Join(run.runner.Run(), run.runner.ReadGrad(grad)); err != nil {
			return err
		}
		for i, g := range grad {
			sum[i] += float64(g)
			squares += float64(g) * float64(g)
		}
		return nil
	}); err != nil {
		return 0, err
	}
	mean := 0.0 // square of the mean's norm
	for _, v := range sum {
		mean += v / noiseBatches * v / noiseBatches
	}
	return math.Sqrt((squares - noiseBatches*mean) / (noiseBatches - 1) / mean), nil
}
