package train

import (
	"errors"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
)

// Step is a training step, compiled and ready to replay from the settings' initial weights: for whoever measures
// steps and trains nothing.
type Step struct {
	Runner  kernel.Runner
	Program *kernel.Program
}

// CompileStep records the step that a run with these settings would replay and compiles it, with the first epoch's schedules.
// The baseline, where it is a frozen policy, is the initial one.
func CompileStep(dev kernel.Device, c *config.Config) (*Step, error) {
	m, err := newModel(c)
	if err != nil {
		return nil, err
	}
	weights := model.Initial(m.Layout(), c.Experiment.RandomSeed)
	p := recordStep(dev, m, c)
	prog := p.Program()
	sets := make([]kernel.Store, prog.Sets)
	for i := range sets {
		if sets[i], err = dev.NewStore(m.Layout(), i == 0); err != nil {
			return nil, err
		}
		if err := sets[i].WriteWeights(weights); err != nil {
			return nil, err
		}
	}
	r, err := compile(p, dev, sets...)
	if err != nil {
		return nil, err
	}
	start := progress{Temperature: c.Advanced.TempStart}
	if err := r.SetControl(start.control(c)); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return &Step{Runner: r, Program: prog}, nil
}
