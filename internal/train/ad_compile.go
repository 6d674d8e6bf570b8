package train

import (
	"errors"

	"haul/internal/config"
	"haul/internal/env/darkroom"
	"haul/internal/kernel"
	"haul/internal/model"
)

// CompileADStep records the step that an agent's run with these settings would replay, its histories on the device, and compiles it
// with the initial weights. h may be nil: streams of random walks in a 9×9 room then stand in for the histories, at the same cost.
func CompileADStep(dev kernel.Device, c *config.AD, h *darkroom.History) (*Step, error) {
	var l *lessons
	var err error
	if h == nil {
		l, err = randomLessons(c)
	} else {
		l, err = newLessons(h, c)
	}
	if err != nil {
		return nil, err
	}
	m, err := newAgentModel(c, l.room.Size)
	if err != nil {
		return nil, err
	}
	store, err := dev.NewStore(m.Layout(), true)
	if err != nil {
		return nil, err
	}
	if err := store.WriteWeights(model.Initial(m.Layout(), c.Seed)); err != nil {
		return nil, err
	}
	p, r, err := compileAD(dev, m, c, l, store, DataDevice)
	if err != nil {
		return nil, err
	}
	if err := r.SetControl(adControl(c)); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	rows := adFLOPs(m, l.trainSpec.Tokens, int64(c.TrainBatchSize))
	flops := func(k kernel.Metrics) int64 { return k.Steps * rows }
	return &Step{Runner: r, Program: p.plan.Program(), rate: "lr", flops: flops}, nil
}

// adControl is the block of an agent's run: the schedule moves on the device.
func adControl(c *config.AD) kernel.Control {
	return kernel.Control{LearningRate: float32(c.LR), Temperature: 1}
}

// ADStepTrial is StepTrial for an agent's step. A step is one part of an update.
func ADStepTrial(dev kernel.Device, c *config.AD) (seconds float64, err error) {
	s, err := CompileADStep(dev, c, nil)
	if err != nil {
		return 0, err
	}
	return s.trial()
}
