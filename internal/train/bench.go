package train

import (
	"errors"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
)

// Stepper runs the training step of a run's first epoch, the same recording that Run replays, with nothing around it: for
// measuring.
type Stepper struct {
	cfg     *config.Config
	model   *model.GT
	runner  kernel.Runner
	Shard   int // instances a worker runs through the whole step at a time
	Memory  int64
	Ops     int // recorded for a shard, and once a step
	OnceOps int
}

// NewStepper records and compiles the step, and puts the initial policy on the device.
func NewStepper(dev kernel.Device, c *config.Config) (*Stepper, error) {
	m, err := newModel(c)
	if err != nil {
		return nil, err
	}
	first := model.Initial(m.Layout(), c.Experiment.RandomSeed)
	var sets []kernel.Store
	for _, train := range []bool{true, false} {
		if !train && c.Baseline.Type != config.BaselineRollout {
			break
		}
		set, err := dev.NewStore(m.Layout(), train)
		if err != nil {
			return nil, err
		}
		if err := set.WriteWeights(first); err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	p := recordStep(dev, m, c)
	s := &Stepper{cfg: c, model: m, Shard: p.B(), Ops: len(p.Program().PerShard), OnceOps: len(p.Program().Once)}
	if s.runner, err = compile(p, dev, sets...); err != nil {
		return nil, err
	}
	s.Memory = s.runner.Memory()
	at := &progress{Temperature: c.Advanced.TempStart}
	err = errors.Join(s.runner.SetState(kernel.State{Beta1T: 1, Beta2T: 1}), s.runner.SetControl(at.control(c)))
	if err != nil {
		return nil, errors.Join(err, s.runner.Close())
	}
	return s, nil
}

// Step runs one step.
func (s *Stepper) Step() error { return s.runner.Run() }

// FLOPs is the work of the steps since the last call, by formula from the lengths that were drawn.
func (s *Stepper) FLOPs() (int64, error) {
	m, err := s.runner.TakeMetrics()
	if err == nil && m.BadStep != 0 {
		err = &NonFinite{Epoch: 1, Step: m.BadStep}
	}
	return stepFLOPs(s.model, s.cfg, m.Steps*int64(s.cfg.Training.BatchSize), m.Actions), err
}

// Close frees the program.
func (s *Stepper) Close() error { return s.runner.Close() }
