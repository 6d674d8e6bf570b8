package routing

import (
	"errors"
	"math"
	"time"

	"haul/internal/kernel"
	"haul/internal/plan"
	"haul/internal/rng"
)

// multiSizeStep runs the steps of a run with several instance sizes. It has one program per size.
// All programs share the weights, gradients and moments.
//
// The size of a step depends only on the run's seed and the number of instances before it, so all
// ranks and a resumed run draw the same sizes. The runner that ran last owns the optimizer's state
// (steps, instances, powers of β). Run copies the state before it changes to another runner.
// another one runs.
type multiSizeStep struct {
	seed     uint64
	batch    uint64 // instances per step, over all ranks
	most     int    // number of customers of the largest size
	programs []*sizeProgram
	at       int    // index of the runner that owns the state
	drawn    uint64 // number of instances before the next step
	steps    uint64 // optimizer steps of the state, if all gradients were finite
	// Whether a gradient was not finite. Run then stays with the runner that had it, which keeps
	// the number of the step.
	stuck bool
}

// sizeProgram is the program of one size.
type sizeProgram struct {
	kernel.Runner
	customers int
	own       int                                  // instances per step, in this process
	work      func(instances, decodes int64) int64 // returns the floating-point operations
	ran       int64                                // number of steps so far
}

// sumWork is the sum of the steps' floating-point operations, by formula, since the sizes differ.
const sumWork = "work"

// draw returns the index of the next step's size.
func (l *multiSizeStep) draw() int {
	u := rng.At(l.seed, l.drawn/l.batch, 0, rng.Sizes)
	return int(rng.Below(u[0], uint32(len(l.programs))))
}

// Run makes one step with the size that is drawn for it.
func (l *multiSizeStep) Run() error {
	if next := l.draw(); next != l.at && !l.stuck {
		s, err := l.programs[l.at].State()
		if err != nil {
			return err
		}
		if l.stuck = s.Step < l.steps; !l.stuck {
			if err := l.programs[next].SetState(s); err != nil {
				return err
			}
			l.at = next
		}
	}
	r := l.programs[l.at]
	if err := r.Run(); err != nil {
		return err
	}
	r.ran++
	l.drawn += l.batch
	l.steps++
	return nil
}

// SetControl sets the schedules of every size.
func (l *multiSizeStep) SetControl(c kernel.Control) error {
	for _, r := range l.programs {
		if err := r.SetControl(c); err != nil {
			return err
		}
	}
	return nil
}

func (l *multiSizeStep) State() (kernel.State, error) { return l.programs[l.at].State() }

// SetState restores a checkpoint's state.
func (l *multiSizeStep) SetState(s kernel.State) error {
	l.drawn, l.steps = s.Instances, s.Step
	l.at = l.draw()
	return l.programs[l.at].SetState(s)
}

// TakeMetrics returns the sums over all sizes. Costs of smaller sizes are multiplied by the ratio
// of customers. Divided by the customers of the largest size, the summed costs are costs per
// customer.
func (l *multiSizeStep) TakeMetrics() (kernel.Metrics, error) {
	var all kernel.Metrics
	for i, r := range l.programs {
		m, err := r.TakeMetrics()
		if err != nil {
			return all, err
		}
		bad := max(all.BadStep, m.BadStep)
		m.Sums = l.restated(r, &m)
		if i == 0 {
			all = m
		} else {
			all = all.Plus(m)
		}
		all.BadStep = bad
	}
	return all, nil
}

func (l *multiSizeStep) restated(r *sizeProgram, m *kernel.Metrics) kernel.Sums {
	ratio := float64(l.most) / float64(r.customers)
	names := append([]string{sumWork}, m.Sums.Names()...)
	values := []float64{float64(r.work(m.Steps*int64(r.own), int64(m.Sum(kernel.SumDecodes))))}
	for _, name := range names[1:] {
		v := m.Sum(name)
		switch name {
		case plan.SumCost, plan.SumBaseline:
			v *= ratio
		case plan.SumLogCost:
			v += m.Sum(kernel.SumRows) * math.Log(ratio)
		}
		values = append(values, v)
	}
	return kernel.NewSums(names, values)
}

func (l *multiSizeStep) ReadBatch(t *kernel.Tensor, dst any) error {
	return l.programs[l.at].ReadBatch(t, dst)
}
func (l *multiSizeStep) WriteBatch(t *kernel.Tensor, src any) error {
	return l.programs[l.at].WriteBatch(t, src)
}
func (l *multiSizeStep) GatherMoments() error         { return l.programs[l.at].GatherMoments() }
func (l *multiSizeStep) ReadGrad(dst []float32) error { return l.programs[l.at].ReadGrad(dst) }
func (l *multiSizeStep) FirstBad() (string, error)    { return l.programs[l.at].FirstBad() }

// Memory returns the memory of all sizes in bytes. It counts the shared weights once per size.
func (l *multiSizeStep) Memory() (n int64) {
	for _, r := range l.programs {
		n += r.Memory()
	}
	return n
}

func (l *multiSizeStep) Close() error {
	var errs []error
	for _, r := range l.programs {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// Stop aborts the current step.
func (l *multiSizeStep) Stop() {
	for _, r := range l.programs {
		if s, ok := r.Runner.(kernel.Stopper); ok {
			s.Stop()
		}
	}
}

// StepTime returns the mean time of a step, weighted by the number of steps of each size.
func (l *multiSizeStep) StepTime() (time.Duration, bool, error) {
	var sum float64
	var steps int64
	for _, r := range l.programs {
		t, ok := r.Runner.(kernel.Timer)
		if !ok {
			return 0, false, nil
		}
		d, known, err := t.StepTime()
		if err != nil {
			return 0, false, err
		}
		if known {
			sum += d.Seconds() * float64(r.ran)
			steps += r.ran
		}
	}
	if steps == 0 {
		return 0, false, nil
	}
	return time.Duration(sum / float64(steps) * float64(time.Second)), true, nil
}

// Paths returns the kernels that the largest size runs on.
func (l *multiSizeStep) Paths() []string {
	if t, ok := l.programs[len(l.programs)-1].Runner.(kernel.Teller); ok {
		return t.Paths()
	}
	return nil
}
