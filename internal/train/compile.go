package train

import (
	"errors"
	"fmt"
	"time"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
)

// Step is a training step, compiled and ready to replay from the settings' initial weights: for whoever measures
// steps and trains nothing.
type Step struct {
	Runner  kernel.Runner
	Program *kernel.Program
	rate    string // the learning rate's key
	flops   func(kernel.Metrics) int64
}

// FLOPs takes the metrics and returns the work of the steps since they were last taken, by formula from the model and, where they vary, the
// lengths that were drawn.
func (s *Step) FLOPs() (int64, error) {
	m, err := s.Runner.TakeMetrics()
	if err == nil && m.BadStep != 0 {
		err = fmt.Errorf("the gradient of step %d is not finite: try a lower %s", m.BadStep, s.rate)
	}
	return s.flops(m), err
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
	flops := func(k kernel.Metrics) int64 {
		return stepFLOPs(m, c, k.Steps*int64(c.Training.BatchSize), int64(k.Sum(kernel.SumDecodes)))
	}
	return &Step{Runner: r, Program: prog, rate: "training.learning_rate", flops: flops}, nil
}

// StepTrial times the settings' step on a device: what choosing between devices goes by. A few steps, or a fraction of a second.
func StepTrial(dev kernel.Device, c *config.Config) (seconds float64, err error) {
	s, err := CompileStep(dev, c)
	if err != nil {
		return 0, err
	}
	return s.trial()
}

// trial times a few steps, and closes them.
func (s *Step) trial() (seconds float64, err error) {
	defer func() { err = errors.Join(err, s.Runner.Close()) }()
	steps := func(most int, enough time.Duration) (n int, began time.Time, err error) {
		for began = time.Now(); n < most && time.Since(began) < enough; n++ {
			if err := s.Runner.Run(); err != nil {
				return n, began, err
			}
		}
		_, err = s.FLOPs() // waits for the device
		return n, began, err
	}
	if _, _, err := steps(2, time.Hour); err != nil { // warm
		return 0, err
	}
	n, began, err := steps(20, 300*time.Millisecond)
	return time.Since(began).Seconds() / float64(n), err
}
