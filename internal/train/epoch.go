package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"haul/internal/env/cvrp"
	"haul/internal/kernel"
	"haul/internal/plan"
	"haul/internal/rng"
)

// tickEvery is how often a listener may hear about steps.
const tickEvery = 100 * time.Millisecond

// epoch runs the steps that are left of the epoch under way and closes it: test of the baseline, validation, schedules, checkpoints. What closes it
// changes the run only once all of it is known, so that an interruption at any moment can be saved and taken up again.
func (r *run) epoch(ctx context.Context) error {
	before := *r.Device.Counters()
	control := r.at.control(r.cfg)
	if err := r.step.SetControl(control); err != nil {
		return err
	}
	if err := r.steps(ctx); err != nil {
		return err
	}
	rep := r.report(control)
	rep.count(before, *r.Device.Counters())

	var v verdict
	began := time.Now()
	if r.frozen != nil && due(&r.cfg.Baseline.Update, rep.Epoch) {
		var err error
		if v, err = r.frozen.challenge(ctx, &r.cfg.Baseline.Update); err != nil {
			return r.saveInterrupted(err)
		}
		rep.BaselineUpdated, rep.PValue = v.replace, v.p
		rep.BaselineSeconds = time.Since(began).Seconds()
	}
	began = time.Now()
	if rep.Epoch%r.cfg.Training.ValidationFrequency == 0 || rep.Epoch == r.cfg.Training.NumEpochs {
		if err := r.validate(ctx, &rep); err != nil {
			return r.saveInterrupted(err)
		}
		rep.ValSeconds = time.Since(began).Seconds()
	}
	if err := r.conclude(&rep, v); err != nil {
		return err
	}
	r.Listener.Epoch(rep)
	return nil
}

// steps runs the epoch's steps. The context is heeded between two of them.
func (r *run) steps(ctx context.Context) error {
	steps := r.cfg.Training.NumBatchesPerEpoch
	began := time.Now()
	tick, first := began, r.at.Step
	p := Progress{Epoch: r.at.Epoch + 1, Epochs: r.cfg.Training.NumEpochs, Steps: steps}
	for r.at.Step < steps && ctx.Err() == nil {
		if err := r.step.Run(); err != nil {
			return fmt.Errorf("epoch %d, step %d: %w", r.at.Epoch+1, r.at.Step+1, err)
		}
		r.at.Step++
		if now := time.Now(); now.Sub(tick) >= tickEvery {
			tick = now
			p.Step = r.at.Step
			p.InstancesPerSecond = float64((r.at.Step-first)*r.cfg.Training.BatchSize) / now.Sub(began).Seconds()
			r.Listener.Tick(p)
		}
	}
	m, err := r.step.TakeMetrics()
	if err != nil {
		return err
	}
	r.at.Seconds += time.Since(began).Seconds()
	if m.BadStep != 0 {
		op, err := r.step.FirstBad()
		return errors.Join(&NonFinite{Dir: r.Dir.Path(), Epoch: r.at.Epoch + 1, Step: m.BadStep, Op: op}, err)
	}
	r.at.Sums = r.at.Sums.Plus(m)
	if r.at.Step < steps {
		return r.saveInterrupted(ctx.Err())
	}
	return nil
}

// saveInterrupted saves the run in the middle of its epoch when the context has ended; other errors pass.
func (r *run) saveInterrupted(err error) error {
	if out := r.interrupted(err); out != err {
		if failed := r.save(r.Dir.Last()); failed != nil {
			return failed
		}
		return out
	}
	return err
}

// report is what the steps of the epoch under way came to.
func (r *run) report(control kernel.Control) EpochReport {
	m, c := &r.at.Sums, r.cfg
	rows, steps, n := m.Sum(kernel.SumRows), float64(m.Steps), c.Problem.NumCustomers
	instances := m.Steps * int64(c.Training.BatchSize)
	rep := EpochReport{Epoch: r.at.Epoch + 1, Epochs: c.Training.NumEpochs, Seconds: r.at.Seconds, Instances: instances,
		TrainCPC: cvrp.CPC(m.Sum(plan.SumCost)/rows, n), TrainLoss: m.Sum(plan.SumLoss) / steps, Entropy: m.Sum(plan.SumEntropy) / rows, GradNorm: m.GradNorm / steps, MeanType: "arithmetic",
		BaselineCPC: cvrp.CPC(m.Sum(plan.SumBaseline)/rows, n), BaselineType: c.Baseline.Type, GapTo: r.refs.Method,
		LR: float64(control.LearningRate), Temperature: float64(control.Temperature), EntropyCoef: float64(control.Coefficients[plan.EntropyBonus]),
		InstancesPerSecond: float64(instances) / r.at.Seconds, FLOPsPerSecond: float64(stepFLOPs(r.model, c, instances, int64(m.Sum(kernel.SumDecodes)))) / r.at.Seconds}
	if c.Training.UseGeometricMean {
		rep.MeanType, rep.TrainCPC = "geometric", cvrp.CPC(math.Exp(m.Sum(plan.SumLogCost)/rows), n)
	}
	rep.GapToCPC, _ = r.meanCPC(r.refs.Costs)
	return rep
}

// count is what the device was asked for between two readings.
func (rep *EpochReport) count(before, after kernel.Counters) {
	rep.Launches = after.Launches - before.Launches
	rep.Waits = after.Waits - before.Waits
	rep.CopiesIn = after.CopiesIn - before.CopiesIn
	rep.CopiesOut = after.CopiesOut - before.CopiesOut
	rep.Allocations = after.Allocations - before.Allocations
}

// validate routes the validation set greedily.
func (r *run) validate(ctx context.Context, rep *EpochReport) error {
	e, err := r.val.run(ctx)
	if err != nil {
		return err
	}
	cpc, se := r.meanCPC(e.Lengths)
	gap, gapSE := Gap(e.Lengths, r.refs.Costs)
	rep.ValCPC, rep.ValSE, rep.ValGap, rep.ValGapSE = &cpc, &se, &gap, &gapSE
	return nil
}

// meanCPC is the mean cost per customer that the settings ask for, and its standard error.
func (r *run) meanCPC(lengths []float64) (cpc, se float64) {
	mean, se := MeanSE(lengths)
	if r.cfg.Training.UseGeometricMean {
		mean, se = geometric(lengths)
	}
	n := r.cfg.Problem.NumCustomers
	return cvrp.CPC(mean, n), cvrp.CPC(se, n)
}

// conclude moves the run to the next epoch and saves it.
func (r *run) conclude(rep *EpochReport, v verdict) error {
	if v.replace {
		if err := r.frozen.adopt(r.policy, v.costs); err != nil {
			return err
		}
	}
	if rep.ValCPC != nil {
		cpc := *rep.ValCPC
		if rep.Best = r.at.Best == nil || cpc < *r.at.Best; rep.Best {
			r.at.Best, r.at.BestEpoch = &cpc, rep.Epoch
		}
		r.at.adapt(&r.cfg.Advanced, cpc)
		r.at.Stopped = r.at.patience(&r.cfg.Advanced, cpc)
	}
	r.at.Epoch, r.at.Step, r.at.Sums, r.at.Seconds = rep.Epoch, 0, kernel.Metrics{}, 0
	r.at.Elapsed += rep.Seconds + rep.ValSeconds + rep.BaselineSeconds
	r.epochs++
	rep.SecondsLeft = time.Since(r.began).Seconds() / float64(r.epochs) * float64(r.cfg.Training.NumEpochs-rep.Epoch)
	if r.at.Stopped {
		rep.SecondsLeft = 0
	}
	// The best goes first: a run killed between the two repeats the epoch and writes it again.
	if rep.Best {
		if err := r.save(r.Dir.Best()); err != nil {
			return err
		}
	}
	return r.save(r.Dir.Last())
}

// test judges the best checkpoint on instances of its own.
func (r *run) test(ctx context.Context) (Summary, error) {
	at := &r.at
	sum := Summary{Epochs: at.Epoch, StoppedEarly: at.Stopped, Instances: at.Device.Instances, Seconds: at.Elapsed,
		BestEpoch: at.BestEpoch, Dir: r.Dir.Path(), Last: r.Dir.Last(), Best: r.Dir.Best(), GapTo: r.refs.Method}
	if at.Best != nil {
		sum.BestCPC = *at.Best
	}
	best, err := LoadPolicy(r.Device, r.Dir.Best())
	if err != nil {
		return sum, err
	}
	src := SourceOf(r.cfg, rng.TestInstances)
	sum.TestInstances = r.cfg.Training.ValidationInstances
	refs, err := Reference(ctx, src, sum.TestInstances, r.Workers, r.Listener.Note)
	if err != nil {
		return sum, err
	}
	e, err := best.Evaluate(ctx, EvalOptions{Source: src, Count: sum.TestInstances, Decode: Greedy, Judge: r.cfg.Experiment.StrictValidation, KeepTours: true})
	if err != nil {
		return sum, err
	}
	sum.TestCPC, sum.TestSE = r.meanCPC(e.Lengths)
	sum.TestGap, sum.TestGapSE = Gap(e.Lengths, refs.Costs)
	sum.Example, err = NewExample(ctx, src, e.Tours[0])
	return sum, err
}

// NewExample solves the first instance of the source beside the policy's tour of it.
func NewExample(ctx context.Context, src cvrp.Source, tour []int32) (Example, error) {
	b := cvrp.NewBatch(1, src.N, src.Capacity)
	src.Fill(b, 0)
	x := Example{Problem: b.Problem(0), Policy: cvrp.FromTour(tour)}
	x.Problem.Name = "test instance 0"
	if ReferenceMethod(src.N) == Optimum {
		_, all, err := cvrp.OptimalSolutions(ctx, []*cvrp.Problem{x.Problem}, 1, nil)
		if err != nil {
			return x, err
		}
		x.Reference = all[0]
	} else {
		var err error
		if x.Reference, err = cvrp.SavingsWith(ctx, x.Problem, cvrp.SavingsOptions{}); err != nil {
			return x, err
		}
	}
	x.PolicyCost, x.ReferenceCost = x.Problem.Cost(x.Policy), x.Problem.Cost(x.Reference)
	return x, nil
}
