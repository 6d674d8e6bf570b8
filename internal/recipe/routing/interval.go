package routing

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"haul/internal/kernel"
	"haul/internal/plan"
	"haul/internal/policy"
	"haul/internal/report"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/stats"
	"haul/internal/vrp"
)

// EndInterval closes an epoch: test of the baseline, validation, schedules.
func (t *trainer) EndInterval(ctx context.Context, s *run.Interval) (*run.Outcome, error) {
	row := t.report(s)
	var v verdict
	began := time.Now()
	if t.frozen != nil && due(&t.cfg.Baseline.Update, row.Epoch) {
		var err error
		if v, err = t.frozen.challenge(ctx, &t.cfg.Baseline.Update); err != nil {
			return nil, err
		}
		row.BaselineUpdated, row.PValue = v.replace, v.p
		row.BaselineSeconds = time.Since(began).Seconds()
	}
	undo := func() error { return nil }
	if t.mean != nil {
		var err error
		if undo, err = t.mean.Advance(t.policy, row.Epoch-1); err != nil {
			return nil, err
		}
	}
	began = time.Now()
	if row.Epoch%t.cfg.Training.ValidationFrequency == 0 || row.Epoch == t.cfg.Training.NumEpochs {
		if err := t.validate(ctx, row); err != nil {
			return nil, errors.Join(err, undo())
		}
		row.ValSeconds = time.Since(began).Seconds()
	}
	// All is known: from here on the run changes.
	if v.replace {
		if err := t.frozen.adopt(t.policy, v.costs); err != nil {
			return nil, err
		}
	}
	stop := false
	if row.ValCPC != nil {
		row.Best = t.Progress.Better(*row.ValCPC)
		t.at.adapt(&t.cfg.Advanced, *row.ValCPC)
		stop = t.at.patience(&t.cfg.Advanced, *row.ValCPC)
	}
	t.epochs++
	if !stop {
		row.SecondsLeft = time.Since(t.began).Seconds() / float64(t.epochs) * float64(t.cfg.Training.NumEpochs-row.Epoch)
	}
	return &run.Outcome{Records: []report.Record{{Kind: "epoch", At: row.Epoch, Row: row}}, Taken: true, Save: true, Stop: stop}, nil
}

// report is what the steps of the epoch came to.
func (t *trainer) report(s *run.Interval) *Epoch {
	m, c := &s.Sums, t.cfg
	rows, steps, n := m.Sums.Of(kernel.SumRows), float64(m.Steps), c.Problem.NumCustomers
	instances := m.Steps * int64(c.Training.BatchSize)
	control := t.at.control(c, t.epoch())
	row := &Epoch{Epoch: t.epoch() + 1, Epochs: c.Training.NumEpochs, Seconds: s.Seconds, Instances: instances, Asked: s.Asked,
		TrainCPC: vrp.CPC(m.Sums.Of(plan.SumCost)/rows, n), TrainLoss: m.Sums.Of(plan.SumLoss) / steps, Entropy: m.Sums.Of(plan.SumEntropy) / rows, GradNorm: m.GradNorm / steps, MeanType: "arithmetic",
		BaselineCPC: vrp.CPC(m.Sums.Of(plan.SumBaseline)/rows, n), BaselineType: c.Baseline.Type, GapTo: t.refs.Method,
		LR: float64(control.LearningRate), Temperature: float64(control.Temperature), EntropyCoef: float64(control.Coefficients[plan.EntropyBonus]),
		InstancesPerSecond: float64(instances) / s.Seconds, FLOPsPerSecond: float64(stepFLOPs(t.model, c, instances, int64(m.Sums.Of(kernel.SumDecodes)))) / s.Seconds}
	busy := s.Busy(t.step, s.Updates)
	row.BusyShare = &busy
	if c.Training.UseGeometricMean {
		row.MeanType, row.TrainCPC = "geometric", vrp.CPC(math.Exp(m.Sums.Of(plan.SumLogCost)/rows), n)
	}
	_, known := t.refs.Pairs(t.refs.Costs)
	judged := len(known)
	row.GapInstances = &judged
	row.GapToCPC, _ = t.meanCPC(known)
	return row
}

// validate routes the validation set, by the decoder that the settings name.
func (t *trainer) validate(ctx context.Context, row *Epoch) error {
	e, err := t.val.Run(ctx)
	if bad := new(policy.NotFinite); errors.As(err, &bad) {
		return &run.NonFinite{Dir: t.Dir.Path(), Place: t.Place(t.Progress.Updates), Op: bad.Op, Key: t.RateKey()}
	}
	if err != nil {
		return err
	}
	cpc, se := t.meanCPC(e.Lengths)
	gap, gapSE := stats.Gap(t.refs.Pairs(e.Lengths))
	row.ValCPC, row.ValSE, row.ValGap, row.ValGapSE = &cpc, &se, &gap, &gapSE
	return nil
}

// meanCPC is the mean cost per customer that the settings ask for, and its standard error.
func (t *trainer) meanCPC(lengths []float64) (cpc, se float64) {
	mean, se := stats.MeanSE(lengths)
	if t.cfg.Training.UseGeometricMean {
		mean, se = stats.Geometric(lengths)
	}
	n := t.cfg.Problem.NumCustomers
	return vrp.CPC(mean, n), vrp.CPC(se, n)
}

// Finish judges the best checkpoint on instances of its own.
func (t *trainer) Finish(ctx context.Context) (end *report.Ending, err error) {
	at := t.Progress
	sum := &Summary{Epochs: t.epoch(), StoppedEarly: at.Stopped, Instances: at.Device.Instances, Seconds: at.Elapsed,
		BestEpoch: at.BestAt / t.perEpoch(), Dir: t.Dir.Path(), Last: t.Dir.Last(), Best: t.Dir.Best(), GapTo: t.refs.Method}
	if at.Best != nil {
		sum.BestCPC = *at.Best
	}
	best, err := policy.LoadShared(t.World, t.Device, t.Dir.Best())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, best.Close()) }()
	src := policy.SourceOf(t.cfg, rng.TestInstances)
	sum.TestInstances = t.cfg.Training.ValidationInstances
	refs, err := policy.SharedReference(ctx, t.World, src, sum.TestInstances, t.Workers, t.within(0.5), t.Note)
	if err != nil {
		return nil, err
	}
	progress := run.ProgressNotes(t.Note, "testing the best policy")
	e, err := best.Evaluate(ctx, policy.EvalOptions{Progress: func(done int) { progress(done, sum.TestInstances) }, Source: src, Count: sum.TestInstances,
		Decode: policy.ValidationDecode(t.cfg), Validate: t.cfg.Experiment.StrictValidation, KeepTours: true, World: t.World, Parts: t.cfg.Training.GradientParts})
	if err != nil {
		return nil, err
	}
	sum.GapInstances = refs.Known()
	sum.TestCPC, sum.TestSE = t.meanCPC(e.Lengths)
	sum.TestGap, sum.TestGapSE = stats.Gap(refs.Pairs(e.Lengths))
	if t.World.Number() > 0 { // rank 0 has the first tour, and somebody to show it to
		return t.view.ending(sum), nil
	}
	if t.view.example, err = NewExample(ctx, src, e.Tours[0]); err != nil {
		return nil, err
	}
	return t.view.ending(sum), nil
}

// ending is how the run ended, where its time went, and what to try next.
func (v *view) ending(s *Summary) *report.Ending {
	v.reference = s.GapTo
	end := "done"
	if s.StoppedEarly {
		end = "stopped early, validation no longer gained"
	}
	out := &report.Ending{Row: s, Title: fmt.Sprintf("%s: %s, %s, %s", end, report.Plural(int64(s.Epochs), "epoch"), report.Plural(int64(s.Instances), "instance"), report.Duration(s.Seconds))}
	out.Line("best", "%.4f CPC on validation, epoch %d", s.BestCPC, s.BestEpoch)
	out.Line("test", "%.4f ± %.4f CPC, gap %s ± %.2f %% to %s, %s, %s", s.TestCPC, s.TestSE, report.Signed(100*s.TestGap, 2), 100*s.TestGapSE, s.GapTo,
		s.instances(), policy.ValidationDecode(v.cfg))
	if u := &v.total; u.epochs > 0 {
		all := u.references + u.steps + u.validation + u.baseline
		if v.info.Resumed {
			out.Line("resumed", "what follows is of this process, after %s", v.info.Done)
		}
		out.Line("speed", "%s instances/s, %s/s", report.Thousands(int64(float64(u.instances)/u.steps)), report.Operations(u.flops/u.steps))
		out.Line("time", "%5.1f %%  steps       %s", 100*u.steps/all, report.Duration(u.steps))
		out.Line("", "%5.1f %%  validation  %s", 100*u.validation/all, report.Duration(u.validation))
		out.Line("", "%5.1f %%  baseline    %s", 100*u.baseline/all, report.Duration(u.baseline))
		if u.references >= 1 {
			out.Line("", "%5.1f %%  references  %s, before the first step", 100*u.references/all, report.Duration(u.references))
		}
		out.Line("device", "in %s: %s", report.Plural(int64(u.epochs*v.cfg.Training.NumBatchesPerEpoch-v.done), "step"), u.asked)
	}
	out.Line("written", "%s, %s, %s", s.Best, filepath.Base(s.Last), run.ResultName)
	out.Line("", "%s, %s, %s", historyOf(v.cfg), curvesName+".svg and .png", routesName+".svg and .png")
	out.Line("next", "haul eval --checkpoint %s --decode %s", report.ShellWord(s.Dir), policy.Thorough(v.cfg, v.cfg.Problem.NumCustomers))
	return out
}
