package train

import (
	"context"
	"errors"
	"fmt"
	"time"

	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
)

// What a reader could break: iterations run in stretches, and everything else (reports, tests, evaluations, checkpoints) happens between two
// stretches. Where a run is cut into stretches must change no weight.

// loop runs until the iterations are over.
func (r *adRun) loop(ctx context.Context) error {
	for {
		if r.at.Concluded < r.at.Iteration {
			if err := r.conclude(ctx); err != nil {
				return err
			}
		}
		if r.at.Iteration >= r.cfg.TrainTimesteps {
			return nil
		}
		if err := r.stretch(ctx, r.nextEvent()); err != nil {
			return err
		}
	}
}

// nextEvent is the first iteration after the present one that something follows.
func (r *adRun) nextEvent() int {
	c, next := r.cfg, r.cfg.TrainTimesteps
	for _, every := range [...]int{c.SummaryInterval, c.EvalInterval, c.GenInterval, c.CkptInterval} {
		next = min(next, (r.at.Iteration/every+1)*every)
	}
	return next
}

// stretch runs iterations up to `end`. The context is heeded between two of them.
func (r *adRun) stretch(ctx context.Context, end int) error {
	began, first := time.Now(), r.at.Iteration
	waited, tick := r.waited(), began
	r.lastTest, r.lastEval = nil, nil
	before := *r.Device.Counters()
	for r.at.Iteration < end && ctx.Err() == nil {
		if err := r.iterate(ctx); err != nil {
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				break
			}
			return fmt.Errorf("iteration %d: %w", r.at.Iteration+1, err)
		}
		r.at.Iteration++
		if now := time.Now(); now.Sub(tick) >= tickEvery {
			tick = now
			spent := now.Sub(began).Seconds()
			r.Listener.Tick(ADProgress{Iteration: r.at.Iteration, Iterations: r.cfg.TrainTimesteps, PerSecond: float64(r.at.Iteration-first) / spent,
				WaitShare: (r.waited() - waited).Seconds() / spent})
		}
	}
	m, err := r.step.TakeMetrics()
	if err != nil {
		return err
	}
	spent := time.Since(began).Seconds()
	r.count(before, *r.Device.Counters())
	r.at.Seconds += spent
	r.at.Elapsed += spent
	r.at.Waited += (r.waited() - waited).Seconds()
	if m.BadStep != 0 {
		op, err := r.step.FirstBad()
		return errors.Join(&NonFinite{Dir: r.Dir.Path(), Step: m.BadStep, Op: op}, err)
	}
	r.at.Sums = r.at.Sums.Plus(m)
	r.at.Since += r.at.Iteration - first
	if r.at.Iteration < end {
		return r.saveInterrupted(ctx.Err())
	}
	return nil
}

// iterate makes one update: as many steps as it has parts.
func (r *adRun) iterate(ctx context.Context) error {
	for range r.cfg.GradientAccumulationSteps {
		var err error
		if r.feed == nil {
			err = r.step.Run()
		} else {
			err = r.feed.run(ctx)
		}
		if err != nil {
			return err
		}
		ctx = context.Background() // an update that has begun is finished: a checkpoint holds whole ones only
	}
	return nil
}

// count adds what the device was asked for between two readings.
func (r *adRun) count(before, after kernel.Counters) {
	r.asked.Launches += after.Launches - before.Launches
	r.asked.Waits += after.Waits - before.Waits
	r.asked.CopiesIn += after.CopiesIn - before.CopiesIn
	r.asked.CopiesOut += after.CopiesOut - before.CopiesOut
	r.asked.Allocations += after.Allocations - before.Allocations
}

// waited is how long this process has waited for rows.
func (r *adRun) waited() time.Duration {
	if r.feed == nil {
		return 0
	}
	return r.feed.source.Waited()
}

// conclude does what is due after the present iteration. It changes the run only once all of it is known, so that an interruption can
// be saved and taken up again.
func (r *adRun) conclude(ctx context.Context) error {
	i, c := r.at.Iteration, r.cfg
	due := func(every int) bool { return i%every == 0 || i == c.TrainTimesteps }
	began := time.Now()
	if due(c.EvalInterval) {
		var err error
		if r.lastTest, err = r.judge(); err != nil {
			return err
		}
	}
	if due(c.GenInterval) {
		var err error
		if r.lastEval, err = r.evaluate(ctx); err != nil {
			return r.saveInterrupted(err)
		}
	}
	r.at.Elapsed += time.Since(began).Seconds()
	var rep *ADReport
	if due(c.SummaryInterval) && r.at.Since > 0 {
		rep = r.report()
		r.at.Sums, r.at.Since, r.at.Seconds, r.at.Waited, r.asked = kernel.Metrics{}, 0, 0, 0, kernel.Counters{}
	}
	if t := r.lastTest; t != nil {
		if t.Best = r.at.Best == nil || t.LossAction < *r.at.Best; t.Best {
			best := t.LossAction
			r.at.Best, r.at.BestIteration = &best, i
		}
	}
	r.at.Concluded = i
	// The best goes first: a run killed between the two repeats the iterations since the last and writes it again.
	if r.lastTest != nil && r.lastTest.Best {
		if err := r.save(r.Dir.Best()); err != nil {
			return err
		}
	}
	if due(c.CkptInterval) {
		if err := r.save(r.Dir.Last()); err != nil {
			return err
		}
	}
	r.tell(rep)
	return nil
}

// tell tells the listener what was found after the present iteration.
func (r *adRun) tell(rep *ADReport) {
	if rep != nil {
		r.Listener.Report(*rep)
	}
	if r.lastTest != nil {
		r.Listener.Test(*r.lastTest)
	}
	if r.lastEval != nil {
		r.Listener.Evaluated(r.lastEval)
	}
}

// saveInterrupted saves the run when the context has ended; other errors pass.
func (r *adRun) saveInterrupted(err error) error {
	if out := r.interrupted(err); out != err {
		if failed := r.save(r.Dir.Last()); failed != nil {
			return failed
		}
		return out
	}
	return err
}

// judge takes the loss on the held-out rows.
func (r *adRun) judge() (*ADTest, error) {
	began := time.Now()
	if err := r.test.Run(); err != nil {
		return nil, fmt.Errorf("test after iteration %d: %w", r.at.Iteration, err)
	}
	m, err := r.test.TakeMetrics()
	if err != nil {
		return nil, err
	}
	t := &ADTest{Iteration: r.at.Iteration, Seconds: time.Since(began).Seconds()}
	t.LossAction, t.AccAction = headMeans(plan.HeadOf(m, model.HeadAction))
	t.LossTokenType, t.AccTokenType = headMeans(plan.HeadOf(m, model.HeadType))
	return t, nil
}

// evaluate lets agents with the present weights live.
func (r *adRun) evaluate(ctx context.Context) (*ADEvaluation, error) {
	e, err := r.eval.run(ctx)
	if err != nil {
		return nil, err
	}
	e.Iteration = r.at.Iteration
	return e, nil
}

// headMeans are a classifier's loss and hits a label; 0 where nothing was labelled.
func headMeans(h plan.HeadSums) (loss, acc float64) {
	if h.Labels == 0 {
		return 0, 0
	}
	return h.Loss / float64(h.Labels), float64(h.Hits) / float64(h.Labels)
}

// report is what the iterations since the last one came to.
func (r *adRun) report() *ADReport {
	a, c := &r.at, r.cfg
	n, parts := float64(a.Since), float64(c.GradientAccumulationSteps)
	rows := n * parts * float64(c.TrainBatchSize)
	rep := &ADReport{Iteration: a.Iteration, Iterations: c.TrainTimesteps, Since: a.Since, Seconds: a.Seconds, LR: adLearningRate(c, a.Iteration),
		GradNorm: a.Sums.GradNorm / n / parts, PerSecond: n / a.Seconds, TokensPerSecond: rows * float64(r.lessons.trainSpec.Tokens) / a.Seconds,
		FLOPsPerSecond: rows * float64(r.perRow) / a.Seconds, SecondsLeft: a.Seconds / n * float64(c.TrainTimesteps-a.Iteration),
		WaitShare: a.Waited / a.Seconds, Memory: r.memory(), Launches: r.asked.Launches, Waits: r.asked.Waits, CopiesIn: r.asked.CopiesIn,
		CopiesOut: r.asked.CopiesOut, Allocations: r.asked.Allocations}
	rep.BusyShare = r.busy(1 - rep.WaitShare)
	rep.LossAction, rep.AccAction = headMeans(plan.HeadOf(a.Sums, model.HeadAction))
	rep.LossTokenType, rep.AccTokenType = headMeans(plan.HeadOf(a.Sums, model.HeadType))
	return rep
}

// busy is the share of the iterations' time that the device worked: by its own clock where it has one. The cores are the host, so that they are
// busy whenever it does not wait for rows.
func (r *adRun) busy(host float64) float64 {
	if t, ok := r.step.(kernel.Timer); ok {
		if d, known, err := t.StepTime(); err == nil && known {
			steps := float64(r.at.Since * r.cfg.GradientAccumulationSteps)
			return min(1, steps*d.Seconds()/r.at.Seconds)
		}
	}
	return host
}
