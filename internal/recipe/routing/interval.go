package routing

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/plan"
	"haul/internal/policy"
	"haul/internal/report"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/stats"
	"haul/internal/vrp"
)

// EndInterval closes an epoch: it tests the baseline, validates and adapts the schedules. It
// changes the run's state only after everything that can fail or be interrupted.
func (t *trainer) EndInterval(ctx context.Context, s *run.Interval) (*run.Outcome, error) {
	row := t.report(s)
	var v verdict
	var sizes []Size
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
		var err error
		if sizes, err = t.validate(ctx, row); err != nil {
			return nil, errors.Join(err, undo())
		}
		row.ValSeconds = time.Since(began).Seconds()
	}
	// From here on the state of the run changes.
	if v.replace {
		if err := t.frozen.adopt(t.policy, v.costs); err != nil {
			return nil, err
		}
	}
	t.noteCollapse(row, t.Progress.Best)
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
	records := []report.Record{{Kind: "epoch", At: row.Epoch, Row: row}}
	for i := range sizes {
		records = append(records, report.Record{Kind: "size", At: row.Epoch, Row: &sizes[i]})
	}
	return &run.Outcome{Records: records, Taken: true, Save: true, Stop: stop}, nil
}

// report summarises the steps of the epoch.
func (t *trainer) report(s *run.Interval) *Epoch {
	m, c := &s.Sums, t.cfg
	work := int64(m.Sums.Of(sumWork))
	rows, steps, n := m.Sums.Of(kernel.SumRows), float64(m.Steps), c.Problem.NumCustomers()
	instances := m.Steps * int64(c.Training.BatchSize)
	if _, several := t.step.(*multiSizeStep); !several {
		work = stepFLOPs(t.model, c, instances, int64(m.Sums.Of(kernel.SumDecodes)))
	}
	control := t.at.control(c, t.epoch())
	row := &Epoch{Epoch: t.epoch() + 1, Epochs: c.Training.NumEpochs, Seconds: s.Seconds, Instances: instances, Asked: s.Asked,
		TrainCPC: vrp.CPC(m.Sums.Of(plan.SumCost)/rows, n), TrainLoss: m.Sums.Of(plan.SumLoss) / steps, Entropy: m.Sums.Of(plan.SumEntropy) / rows, GradNorm: m.GradNorm / steps, MeanType: "arithmetic",
		BaselineCPC: vrp.CPC(m.Sums.Of(plan.SumBaseline)/rows, n), BaselineType: c.Baseline.Type,
		LR: float64(control.LearningRate), Temperature: float64(control.Temperature), EntropyCoef: float64(control.Coefficients[plan.EntropyBonus]),
		InstancesPerSecond: float64(instances) / s.Seconds, FLOPsPerSecond: float64(work) / s.Seconds}
	busy := s.Busy(t.step, s.Updates)
	row.BusyShare = &busy
	if c.Training.UseGeometricMean {
		row.MeanType, row.TrainCPC = "geometric", vrp.CPC(math.Exp(m.Sums.Of(plan.SumLogCost)/rows), n)
	}
	judged := 0
	row.GapTo = methods(t.val)
	for _, v := range t.val {
		_, known := v.refs.Pairs(v.refs.Costs)
		judged += len(known)
		cpc, _ := meanCPC(v.cfg, known)
		row.GapToCPC += cpc / float64(len(t.val))
	}
	row.GapInstances = &judged
	return row
}

// methods returns the names of the methods that the sets' references come from.
func methods(sets []*judged) string {
	name := sets[0].refs.Method
	if last := sets[len(sets)-1].refs.Method; last != name {
		name += " and " + last
	}
	return name
}

// validate routes the validation sets with the decoder of the settings. With two sets, the figures
// of the row are their means, and each set also gets its own record.
func (t *trainer) validate(ctx context.Context, row *Epoch) (sizes []Size, err error) {
	var all []Size
	for _, v := range t.val {
		e, err := v.eval.Run(ctx)
		if bad := new(policy.NotFinite); errors.As(err, &bad) {
			return nil, &run.NonFinite{Dir: t.Dir.Path(), Place: t.Place(t.Progress.Updates), Op: bad.Op, Key: t.RateKey()}
		}
		if err != nil {
			return nil, err
		}
		all = append(all, sizeOf(row.Epoch, v, e.Lengths))
	}
	m := meanOf(all)
	row.ValCPC, row.ValSE, row.ValGap, row.ValGapSE = &m.CPC, &m.SE, &m.Gap, &m.GapSE
	if len(all) == 1 {
		return nil, nil
	}
	return all, nil
}

// sizeOf summarises routes of the given lengths on a set.
func sizeOf(epoch int, v *judged, lengths []float64) Size {
	s := Size{Epoch: epoch, Customers: v.cfg.Problem.NumCustomers(), GapTo: v.refs.Method, GapInstances: v.refs.Known()}
	s.CPC, s.SE = meanCPC(v.cfg, lengths)
	s.Gap, s.GapSE = stats.Gap(v.refs.Pairs(lengths))
	return s
}

// meanOf returns the mean of the sets' figures, with equal weights.
func meanOf(all []Size) (m Size) {
	if len(all) == 1 {
		return all[0]
	}
	n := float64(len(all))
	for _, s := range all {
		m.CPC += s.CPC / n
		m.Gap += s.Gap / n
		m.SE = math.Hypot(m.SE, s.SE/n)
		m.GapSE = math.Hypot(m.GapSE, s.GapSE/n)
		m.GapInstances += s.GapInstances
	}
	return m
}

// meanCPC returns the mean cost per customer and its standard error. The settings choose the
// arithmetic or the geometric mean.
func meanCPC(c *config.Config, lengths []float64) (cpc, se float64) {
	mean, se := stats.MeanSE(lengths)
	if c.Training.UseGeometricMean {
		mean, se = stats.Geometric(lengths)
	}
	n := c.Problem.NumCustomers()
	return vrp.CPC(mean, n), vrp.CPC(se, n)
}

// Finish evaluates the best checkpoint on test instances, which no other part of a run uses.
func (t *trainer) Finish(ctx context.Context) (end *report.Ending, err error) {
	at := t.Progress
	sum := &Summary{Epochs: t.epoch(), StoppedEarly: at.Stopped, Instances: at.Device.Instances, Seconds: at.Elapsed,
		BestEpoch: at.BestAt / t.perEpoch(), Dir: t.Dir.Path(), Last: t.Dir.Last(), Best: t.Dir.Best(), GapTo: methods(t.val)}
	if at.Best != nil {
		sum.BestCPC = *at.Best
	}
	best, err := policy.LoadShared(t.World, t.Device, t.Dir.Best())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, best.Close()) }()
	var src vrp.Source
	var e *policy.Evaluation
	for _, c := range ends(t.cfg) {
		src = policy.SourceOf(c, rng.TestInstances)
		count := c.Training.ValidationInstances
		v := &judged{cfg: c}
		if v.refs, err = policy.SharedReference(ctx, t.World, src, count, t.Workers, t.within(0.5/float64(len(t.val))), t.Note); err != nil {
			return nil, err
		}
		progress := run.ProgressNotes(t.Note, "testing the best policy")
		if e, err = best.Evaluate(ctx, policy.EvalOptions{Progress: func(done int) { progress(done, count) }, Source: src, Count: count,
			Decode: policy.ValidationDecode(c), Validate: c.Experiment.StrictValidation, KeepTours: true, World: t.World, Parts: c.Training.GradientParts}); err != nil {
			return nil, err
		}
		sum.TestInstances += count
		sum.Sizes = append(sum.Sizes, sizeOf(sum.BestEpoch, v, e.Lengths))
	}
	m := meanOf(sum.Sizes)
	sum.TestCPC, sum.TestSE, sum.TestGap, sum.TestGapSE, sum.GapInstances = m.CPC, m.SE, m.Gap, m.GapSE, m.GapInstances
	if len(sum.Sizes) == 1 {
		sum.Sizes = nil
	}
	if t.World.Number() > 0 { // rank 0 has the first tour and shows the picture
		return t.view.ending(sum), nil
	}
	if src.File == "" { // whose routes nothing draws
		if t.view.example, err = NewExample(ctx, src, e.Tours[0]); err != nil {
			return nil, err
		}
	}
	return t.view.ending(sum), nil
}

// ending returns the closing report of a run: the results, the time by activity, and the command to
// run next.
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
	for _, z := range s.Sizes {
		out.Line("", "%s", z.line())
	}
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
	history := historyOf(v.cfg)
	if len(s.Sizes) > 0 {
		history += ", " + sizesName
	}
	pictures := curvesName + ".svg and .png"
	if v.example != nil {
		pictures += ", " + routesName + ".svg and .png"
	}
	out.Line("", "%s, %s", history, pictures)
	out.Line("next", "haul eval --checkpoint %s --decode %s", report.ShellWord(s.Dir), policy.Thorough(v.cfg, v.cfg.Problem.NumCustomers()))
	return out
}
