package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/report"
	"haul/internal/run"
)

// EndInterval tests, evaluates and reports, each at its interval and at the end.
func (t *trainer) EndInterval(ctx context.Context, s *run.Interval) (_ *run.Outcome, err error) {
	i, c := t.Progress.Updates, t.cfg
	due := func(every int) bool { return i%every == 0 || i == c.TrainTimesteps }
	if t.mean != nil && due(c.AverageInterval) {
		undo, moved := t.mean.Advance(t.store, (i-1)/c.AverageInterval)
		if moved != nil {
			return nil, moved
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, undo())
			}
		}()
	}
	if due(c.EvalInterval) {
		if t.lastTest, err = t.testLoss(ctx); err != nil {
			return nil, err
		}
	}
	if due(c.GenInterval) && t.eval != nil {
		if t.lastEval, err = t.evaluate(ctx); err != nil {
			return nil, err
		}
	}
	out := &run.Outcome{Save: due(c.CkptInterval)}
	add := func(kind string, row any) {
		out.Records = append(out.Records, report.Record{Kind: kind, At: i, Row: row})
	}
	if due(c.SummaryInterval) && s.Updates > 0 {
		out.Taken = true
		add("train", t.report(s))
	}
	if t.lastTest != nil {
		t.lastTest.Best = !t.chooses() && t.Progress.Better(t.lastTest.LossAction)
		add("test", t.lastTest)
	}
	if t.lastEval != nil && t.chooses() {
		t.Progress.Better(-t.lastEval.Share)
	}
	if t.lastEval != nil {
		add("in_context", t.lastEval)
	}
	return out, nil
}

// testLoss computes the loss on the held-out rows.
func (t *trainer) testLoss(ctx context.Context) (*Test, error) {
	began, i := time.Now(), t.Progress.Updates
	if t.World != nil {
		ctx = context.Background() // ranks stop together
	}
	if err := run.Replay(ctx, t.test); err != nil {
		return nil, fmt.Errorf("test after iteration %d: %w", i, err)
	}
	m, err := run.TakeMetrics(t.testWorld, t.test)
	if err != nil {
		return nil, err
	}
	row := &Test{Iteration: i, Seconds: time.Since(began).Seconds()}
	row.LossAction, row.AccAction = headMeans(plan.HeadOf(m, model.HeadAction))
	row.LossTokenType, row.AccTokenType = headMeans(plan.HeadOf(m, model.HeadType))
	return row, nil
}

// evaluate runs agents with the current weights.
func (t *trainer) evaluate(ctx context.Context) (*Evaluation, error) {
	t.progress = run.ProgressNotes(t.Note, "evaluating in context")
	e, err := t.eval.run(ctx)
	if err == nil {
		e.Iteration = t.Progress.Updates
	}
	return e, err
}

// heldOut evaluates the best weights on the held-out goals, at temperatures chosen on other goals.
func (t *trainer) heldOut(ctx context.Context) (out *Evaluation, err error) {
	best, err := loadShared(t.World, t.Device, t.Dir.Best())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, best.Close()) }()
	tries, done := usualTemperatures(), 0
	trials := len(tries) / best.atOnce(tries)
	notes := run.ProgressNotes(t.Note, "testing the best agent")
	progress := func(at, of int) { // of one trial, or of the test after the trials
		if notes(done*of+at, (trials+1)*of); at == of {
			done++
		}
	}
	return best.tuned(ctx, EvalOptions{History: t.History, World: t.World, Progress: progress}, tries)
}

// headMeans returns a classifier's loss and accuracy per label, both 0 without labels.
func headMeans(h plan.HeadSums) (loss, acc float64) {
	if h.Labels == 0 {
		return 0, 0
	}
	return h.Loss / float64(h.Labels), float64(h.Hits) / float64(h.Labels)
}

// report summarises the iterations since the last report.
func (t *trainer) report(s *run.Interval) *Report {
	c, i := t.cfg, t.Progress.Updates
	n, parts := float64(s.Updates), float64(c.GradientAccumulationSteps)
	rows := n * parts * float64(c.TrainBatchSize)
	r := &Report{Iteration: i, Iterations: c.TrainTimesteps, Since: s.Updates, Seconds: s.Seconds, LR: learningRate(c, i), Asked: s.Asked,
		GradNorm: s.Sums.GradNorm / n / parts, PerSecond: n / s.Seconds, TokensPerSecond: rows * float64(t.dataset.trainSpec.Tokens) / s.Seconds,
		FLOPsPerSecond: rows * float64(t.perRow) / s.Seconds, SecondsLeft: s.Seconds / n * float64(c.TrainTimesteps-i),
		WaitShare: s.Waited / s.Seconds, BusyShare: s.Busy(t.step, s.Updates*c.GradientAccumulationSteps), Memory: t.Memory()}
	r.LossAction, r.AccAction = headMeans(plan.HeadOf(s.Sums, model.HeadAction))
	r.LossTokenType, r.AccTokenType = headMeans(plan.HeadOf(s.Sums, model.HeadType))
	if n := s.Sums.Sum(plan.SumPaid); n > 0 {
		r.LossQ, r.LossV, r.MeanValue = s.Sums.Sum(plan.SumCritic)/n, s.Sums.Sum(plan.SumValue)/n, s.Sums.Sum(plan.SumExpected)/n
	}
	return r
}

// Finish returns the closing report of a run. It repeats tests that this process has not made.
func (t *trainer) Finish(ctx context.Context) (*report.Ending, error) {
	at := t.Progress
	sum := &Summary{Iterations: at.Updates, Sequences: uint64(at.Updates) * uint64(t.cfg.TrainBatchSize*t.cfg.GradientAccumulationSteps), Seconds: at.Elapsed,
		BestIteration: at.BestAt, Dir: t.Dir.Path(), Last: t.Dir.Last(), Best: t.Dir.Best()}
	switch {
	case at.Best != nil && t.chooses():
		share := -*at.Best
		sum.BestShare = &share
	case at.Best != nil:
		sum.BestLoss = *at.Best
	}
	var err error
	if t.lastTest == nil {
		if t.lastTest, err = t.testLoss(ctx); err != nil {
			return nil, err
		}
	}
	if t.lastEval == nil && t.eval != nil {
		if t.lastEval, err = t.evaluate(ctx); err != nil {
			return nil, err
		}
	}
	sum.Test, sum.Evaluation = *t.lastTest, t.lastEval
	t.view.used = t.lastEval // also drawn if the run ended in another process
	if t.chooses() && t.cfg.EvalTune {
		if sum.HeldOut, err = t.heldOut(ctx); err != nil {
			return nil, err
		}
		t.view.used = sum.HeldOut
	}
	return t.view.ending(sum), nil
}
