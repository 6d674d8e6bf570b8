package agent

import (
	"errors"
	"fmt"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/run"
	"haul/internal/world/history"
)

// CompileStep compiles the training step of an agent with these settings and its initial weights.
// The histories are on the device. If h is nil, random transitions replace them, at the same cost.
func CompileStep(dev kernel.Device, c *config.AD, h history.History) (step *run.Step, err error) {
	var l *dataset
	if h == nil {
		l, err = randomDataset(c)
	} else {
		l, err = newDataset(h, c)
	}
	if err != nil {
		return nil, err
	}
	m, err := newModel(c, l.space)
	if err != nil {
		return nil, err
	}
	store, err := run.NewStore(dev, m.Layout(), true)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, store.Close())
		}
	}()
	if err := store.WriteWeights(model.Initial(m.Layout(), c.Seed)); err != nil {
		return nil, err
	}
	p, r, err := compileStep(dev, m, c, l, store, DataDevice, nil)
	if err != nil {
		return nil, err
	}
	if err := r.SetControl(control(c)); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	rows := stepFLOPs(m, l.trainSpec.Tokens, int64(c.TrainBatchSize))
	flops := func(k kernel.Metrics) int64 { return k.Steps * rows }
	tokens := l.trainSpec.Tokens
	return &run.Step{Runner: r, Stores: []kernel.Store{store}, Program: p.plan.Program(), RateKey: "lr", Work: flops, Rows: "rows", Tokens: tokens,
		Shape: fmt.Sprintf("%d rows of %d tokens per step", c.TrainBatchSize, tokens), Facts: map[string]any{"tokens": tokens}}, nil
}

// control returns the Control block of a run. The device computes the schedule.
func control(c *config.AD) kernel.Control {
	return kernel.Control{LearningRate: float32(c.LR), Temperature: 1}
}
