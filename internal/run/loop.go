package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"haul/internal/kernel"
	"haul/internal/report"
)

// Updates run in intervals. Reports, tests, evaluations and checkpoints happen between intervals.
// The weights do not depend on how a run is divided into intervals.

// tickEvery is the least time between two ticks to a listener.
const tickEvery = 100 * time.Millisecond

// loop runs updates until none is left.
func (r *run) loop(ctx context.Context) error {
	for {
		if r.due() {
			if err := r.endInterval(ctx); err != nil {
				return err
			}
		}
		if r.over() {
			return nil
		}
		if err := r.interval(ctx, r.limit.cut(r.at.Updates, r.trainer.Next(r.at.Updates))); err != nil {
			return err
		}
	}
}

// over reports whether no update is left.
func (r *run) over() bool { return r.at.Updates >= r.trainer.Total() || r.at.Stopped }

// due reports whether work that follows the last update is not done yet.
func (r *run) due() bool {
	done := r.at.Updates
	return done > r.at.Concluded && r.trainer.Next(done-1) == done
}

// interval runs updates up to number `end`. It checks the context between updates.
func (r *run) interval(ctx context.Context, end int) error {
	began, first := time.Now(), r.at.Updates
	waited, tick := r.trainer.Waited(), began
	before := *r.Device.Counters()
	if err := r.trainer.Begin(); err != nil {
		return err
	}
	if r.pace.updates == 0 { // the first update may compile or load for long
		r.Listener.Tick(report.Tick{Updates: first, Total: r.trainer.Total()})
	}
	if r.World == nil { // ranks stop together, between two updates
		defer r.abandonAfter(ctx)()
	}
	for r.at.Updates < end {
		if stop, err := r.World.Stop(ctx, r.at.Updates); err != nil || stop {
			if err != nil {
				return err
			}
			break
		}
		last := time.Now()
		if err := r.trainer.Update(ctx); err != nil {
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				break
			}
			return fmt.Errorf("%s: %w", r.trainer.Place(r.at.Updates), err)
		}
		r.at.Updates++
		r.reportPace(1, time.Since(last))
		if now := time.Now(); now.Sub(tick) >= tickEvery {
			tick = now
			spent := now.Sub(began).Seconds()
			r.Listener.Tick(report.Tick{Updates: r.at.Updates, Total: r.trainer.Total(), PerSecond: float64(r.at.Updates-first) / spent,
				WaitShare: (r.trainer.Waited() - waited) / spent})
		}
	}
	m, err := TakeMetrics(r.World, r.trainer.Runner())
	if err != nil {
		return err
	}
	spent := time.Since(began).Seconds()
	r.limit.took(r.at.Updates-first, spent)
	r.count(before, *r.Device.Counters())
	r.at.Seconds += spent
	r.at.Elapsed += spent
	r.at.Waited += r.trainer.Waited() - waited
	if m.BadStep != 0 {
		op, err := r.firstBad()
		return errors.Join(&NonFinite{Dir: r.Dir.Path(), Step: m.BadStep, Place: r.trainer.Place(r.at.Updates), Op: op, Key: r.trainer.RateKey()}, err)
	}
	if name, value := notANumber(&m); name != "" {
		return &NonFinite{Dir: r.Dir.Path(), Place: r.trainer.Place(r.at.Updates), Sum: name, Value: value, Key: r.trainer.RateKey()}
	}
	r.at.Sums = r.at.Sums.Plus(m)
	r.at.Since += r.at.Updates - first
	if r.at.Updates < end {
		return r.saveInterrupted(ctx.Err())
	}
	return nil
}

// count adds the device's counters of an interval to r.asked.
func (r *run) count(before, after kernel.Counters) {
	r.asked.Add(report.Asked{Launches: after.Launches - before.Launches, Waits: after.Waits - before.Waits, CopiesIn: after.CopiesIn - before.CopiesIn,
		CopiesOut: after.CopiesOut - before.CopiesOut, Allocations: after.Allocations - before.Allocations})
}

// endInterval runs what is due after the present update, saves, and reports.
func (r *run) endInterval(ctx context.Context) error {
	began := time.Now()
	s := &Interval{Updates: r.at.Since, Seconds: r.at.Seconds, Waited: r.at.Waited, Sums: r.at.Sums, Asked: r.asked}
	out, err := r.trainer.EndInterval(ctx, s)
	if err != nil {
		return r.saveInterrupted(err)
	}
	r.at.Elapsed += time.Since(began).Seconds()
	r.at.Concluded = r.at.Updates
	r.at.Stopped = r.at.Stopped || out.Stop
	if out.Taken {
		r.at.Since, r.at.Sums, r.at.Seconds, r.at.Waited, r.asked = 0, kernel.Metrics{}, 0, 0, report.Asked{}
	}
	// Records are written before the checkpoint: rows past the checkpoint are removed on
	// resume, but a row that was never written would stay missing.
	for i := range out.Records {
		rec := &out.Records[i]
		if r.at.Recorded == nil {
			r.at.Recorded = map[string]int{}
		}
		r.at.Recorded[rec.Kind]++
		r.view.Add(rec, false)
		r.Listener.Record(rec)
	}
	// The best checkpoint is written before the last one. If the process is killed between the
	// two, the resumed run repeats the updates since the last checkpoint and writes the best
	// one again.
	if r.at.Best != nil && r.at.BestAt == r.at.Updates {
		if err := r.saveBest(); err != nil {
			return err
		}
	}
	if out.Save {
		return r.save(r.Dir.Last())
	}
	return nil
}

// notANumber finds a sum that is not finite. Minus infinity is allowed: it is the logarithm of a
// cost of 0.
func notANumber(m *kernel.Metrics) (name string, value float64) {
	for _, n := range m.Sums.Names() {
		if v := m.Sum(n); math.IsNaN(v) || math.IsInf(v, 1) {
			return n, v
		}
	}
	if math.IsNaN(m.GradNorm) {
		return "gradient norm", m.GradNorm
	}
	return "", 0
}

// saveInterrupted saves the run if the context has ended. It returns other errors unchanged.
func (r *run) saveInterrupted(err error) error {
	if out := r.interrupted(err); out != err {
		if failed := r.save(r.Dir.Last()); failed != nil {
			return failed
		}
		return out
	}
	return err
}

// interrupted replaces the error of a context that ended, once all is saved, by Interrupted.
func (r *run) interrupted(err error) error {
	if r.trainer == nil || !r.hasCheckpoint || !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Interrupted{Dir: r.Dir.Path(), Place: r.trainer.Place(r.at.Updates), Again: r.Again, Updates: r.at.Updates, Total: r.trainer.Total(),
		TimeUp: r.limit.up(), Cause: err}
}

// Busy returns the fraction of the interval's time in which a device worked on its steps, by the
// device's clock if it has one. The CPU is the host: it counts as busy unless it waits for data.
func (s *Interval) Busy(r kernel.Runner, steps int) float64 {
	if t, ok := r.(kernel.Timer); ok {
		if d, known, err := t.StepTime(); err == nil && known {
			return min(1, float64(steps)*d.Seconds()/s.Seconds)
		}
	}
	return 1 - s.Waited/s.Seconds
}
