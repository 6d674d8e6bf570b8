package routing

import (
	"errors"
	"fmt"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/policy"
	"haul/internal/run"
)

// CompileStep compiles the training step of a run with these settings and the schedules of its
// first epoch. A frozen policy has the initial weights.
func CompileStep(dev kernel.Device, c *config.Config) (step *run.Step, err error) {
	s := &run.Setup{Device: dev, Note: func(string) {}} // the shape already contains the note
	_, err = s.Fit(partsOf(c, dev), func(parts int) (err error) {
		own := *c
		own.Training.GradientParts = parts
		step, err = compileStep(dev, &own)
		return err
	})
	return step, err
}

// compileStep compiles the step with the number of parts in the settings.
func compileStep(dev kernel.Device, c *config.Config) (step *run.Step, err error) {
	m, err := policy.NewNetwork(c)
	if err != nil {
		return nil, err
	}
	p, err := recordStep(dev, m, c, nil)
	if err != nil {
		return nil, err
	}
	prog := p.Program()
	sets := make([]kernel.Store, prog.Sets)
	defer func() {
		if err != nil {
			err = errors.Join(err, run.CloseStores(sets...))
		}
	}()
	for i := range sets {
		if sets[i], err = run.NewStore(dev, m.Layout(), i == 0); err != nil {
			return nil, err
		}
	}
	weights := model.Initial(m.Layout(), c.Experiment.RandomSeed)
	for _, s := range sets {
		if err := s.WriteWeights(weights); err != nil {
			return nil, err
		}
	}
	r, err := run.Compile(keyBatch, p, dev, sets...)
	if err != nil {
		return nil, err
	}
	start := state{Temperature: c.Advanced.TempStart}
	if err := r.SetControl(start.control(c, 0)); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	n := c.Problem.NumCustomers() // the largest of a range, whose step needs the most memory
	parts := ""
	if c.Training.GradientParts > 1 {
		parts = fmt.Sprintf(", in %d parts", c.Training.GradientParts)
	}
	return &run.Step{Runner: r, Stores: sets, Program: prog, RateKey: "training.learning_rate", Rows: "instances",
		Shape: fmt.Sprintf("%d instances of %d customers per step, %s baseline%s", c.Training.BatchSize, n, c.Baseline.Type, parts),
		Facts: map[string]any{"customers": n, "baseline_type": c.Baseline.Type},
		Work: func(k kernel.Metrics) int64 {
			return stepFLOPs(m, c, k.Steps*int64(c.Training.BatchSize), int64(k.Sums.Of(kernel.SumDecodes)))
		}}, nil
}
