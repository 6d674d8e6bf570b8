package agent

import (
	"fmt"
	"path/filepath"

	"haul/internal/config"
	"haul/internal/report"
	"haul/internal/run"
	"haul/internal/world"
)

// view describes an agent's run in text and pictures.
type view struct {
	info    *report.Info
	cfg     *config.AD
	dataset *dataset
	host    bool  // rows come from the host
	workers int   // number of goroutines that make rows
	flops   int64 // per iteration

	reports []*Report // of the whole run
	tests   []*Test
	used    *Evaluation // the last evaluation of this process
	total   totals
}

// totals sums the seconds and work of this process.
type totals struct {
	iterations                        int
	seconds, busy, wait, flops, token float64
	asked                             report.Asked
	testing                           float64 // seconds of tests and evaluations
}

func (v *view) Banner(bool) (string, [][2]string) {
	c, d := v.cfg, v.dataset
	where := "on the device: the step draws its own rows, nothing is copied"
	if v.host {
		where = "on the host: the trainer fills its own batches"
		if v.workers > 0 {
			where = fmt.Sprintf("on the host: %s fill batches", report.Plural(int64(v.workers), "worker"))
		}
	}
	streams := fmt.Sprintf("%s of %s", report.Plural(int64(d.trainSpec.Streams), "stream"), report.Plural(int64(len(d.learned)), "goal"))
	if d.short > 0 {
		streams += fmt.Sprintf(" (%d more left out: too short for a sequence)", d.short)
	}
	return fmt.Sprintf("%s of %s rows of %s", report.Plural(int64(c.TrainTimesteps), "iteration"), report.Thousands(int64(c.TrainBatchSize*max(1, c.GradientAccumulationSteps))), report.Plural(int64(d.trainSpec.Tokens), "token")),
		[][2]string{
			{"world", d.world.Describe()},
			{"histories", fmt.Sprintf("%s, %s, %s", streams, report.Bytes(4*int64(len(d.train))), where)},
			{"step", fmt.Sprintf("recorded once and replayed: about %s per iteration", report.Operations(float64(v.flops)))},
		}
}

// Heading is empty, because every line names its figures.
func (v *view) Heading() (string, []string) { return "", nil }

func (v *view) Add(r *report.Record, past bool) {
	switch row := r.Row.(type) {
	case *Report:
		v.reports = append(v.reports, row)
		if past {
			return
		}
		s := &v.total
		s.iterations += row.Since
		s.seconds += row.Seconds
		s.busy += row.BusyShare * row.Seconds
		s.wait += row.WaitShare * row.Seconds
		s.flops += row.FLOPsPerSecond * row.Seconds
		s.token += row.TokensPerSecond * row.Seconds
		s.asked.Add(row.Asked)
	case *Test:
		v.tests = append(v.tests, row)
		if !past {
			v.total.testing += row.Seconds
		}
	case *Evaluation:
		if !past {
			v.used = row
			v.total.testing += row.Seconds
		}
	}
}

// last returns the latest report, or nil before the first.
func (v *view) last() *Report {
	if len(v.reports) == 0 {
		return nil
	}
	return v.reports[len(v.reports)-1]
}

func (v *view) Line(r *report.Record, _ bool) string {
	at := fmt.Sprintf("%9s", report.Thousands(int64(r.At)))
	switch row := r.Row.(type) {
	case *Test:
		l := v.last()
		if l != nil {
			at += fmt.Sprintf("  train loss %.4f acc %.1f %%", l.LossAction, 100*l.AccAction)
		}
		at += fmt.Sprintf("  %s loss %.4f acc %.1f %%", v.tested(), row.LossAction, 100*row.AccAction)
		if row.LossTokenType > 0 {
			at += fmt.Sprintf("  token type %.4f %.1f %%", row.LossTokenType, 100*row.AccTokenType)
		}
		if l != nil {
			at += fmt.Sprintf("  lr %.2g  %.1f it/s", l.LR, l.PerSecond)
		}
		return at
	case *Evaluation:
		return at + fmt.Sprintf("  in context: return %.2f at first, %s in the last %d of %d episodes, %.1f %% of the optimum",
			row.First, row.withSE(row.Last, row.LastSE, "%.2f"), min(10, row.Episodes), row.Episodes, 100*row.Share)
	}
	return "" // the next test's line contains the figures of training
}

// tested names the goals that tests use.
func (v *view) tested() string {
	if v.cfg.ValidationGoals > 0 {
		return "validation"
	}
	return "held-out"
}

func (v *view) Status(t report.Tick) report.Status {
	s := report.Status{Place: fmt.Sprintf("%s/%s", report.Thousands(int64(t.Updates)), report.Thousands(int64(t.Total))), Share: float64(t.Updates) / float64(max(1, t.Total)),
		Speed: fmt.Sprintf("%.1f it/s", t.PerSecond), Left: float64(t.Total-t.Updates) / t.PerSecond}
	if l := v.last(); l != nil {
		s.Figures = fmt.Sprintf("  loss %.4f  acc %.1f %%  busy %.0f %%", l.LossAction, 100*l.AccAction, 100*l.BusyShare)
	}
	s.Figures += "  " + report.Bytes(v.info.Memory)
	if v.host {
		s.Figures += fmt.Sprintf("  loader wait %.1f %%", 100*t.WaitShare)
	}
	return s
}

// Chart returns the curve of the loss on held-out goals.
func (v *view) Chart() report.Chart {
	c := report.Chart{Last: v.cfg.TrainTimesteps, Name: v.tested()}
	if len(v.tests) == 0 {
		return c
	}
	c.Level = v.tests[len(v.tests)-1].LossAction
	for _, r := range v.reports {
		c.Points = append(c.Points, report.Point{X: float64(r.Iteration), Y: r.LossAction})
	}
	return c
}

// ending returns the closing report of a run: the results, the time by activity, and the command to
// run next.
func (v *view) ending(s *Summary) *report.Ending {
	out := &report.Ending{Row: s, Title: fmt.Sprintf("done: %s, %s rows, %s", report.Plural(int64(s.Iterations), "iteration"), report.Thousands(int64(s.Sequences)), report.Duration(s.Seconds))}
	best := fmt.Sprintf("loss %.4f", s.BestLoss)
	if s.BestShare != nil {
		best = fmt.Sprintf("agents earn %.1f %% of the optimum", 100**s.BestShare)
	}
	out.Line(v.tested(), "loss %.4f, %.1f %% of actions; best %s, at iteration %s", s.Test.LossAction, 100*s.Test.AccAction, best, report.Thousands(int64(s.BestIteration)))
	if e := s.Evaluation; e != nil {
		out.Line("in use", "%s", inUse(e))
		out.Line("", "%s", contexts(e))
	}
	if e := s.HeldOut; e != nil {
		out.Line("held out", "%s", inUse(e))
		out.Line("", "%s", curve(e))
		out.Line("", "weights of iteration %s, temperature %g and %g while searching, all chosen on other goals", report.Thousands(int64(s.BestIteration)), e.Temperature, e.Search)
	}
	if u := &v.total; u.seconds > 0 {
		if v.info.Resumed {
			out.Line("resumed", "what follows is of this process, after %s", v.info.Done)
		}
		n := float64(u.iterations)
		out.Line("speed", "%.1f iterations/s (%.2f ms), %s tokens/s, %s/s", n/u.seconds, 1e3*u.seconds/n, report.Thousands(int64(u.token/u.seconds)), report.Operations(u.flops/u.seconds))
		out.Line("time", "%5.1f %%  iterations  %s", 100*u.seconds/(u.seconds+u.testing), report.Duration(u.seconds))
		out.Line("", "%5.1f %%  tests       %s", 100*u.testing/(u.seconds+u.testing), report.Duration(u.testing))
		out.Line("device", "busy %.0f %% of the iterations' time, waited for rows %.2f %%", 100*u.busy/u.seconds, 100*u.wait/u.seconds)
		out.Line("", "in %s: %s", report.Plural(int64(u.iterations), "iteration"), u.asked)
	}
	out.Line("written", "%s, %s, %s", s.Last, filepath.Base(s.Best), run.ResultName)
	drawn := curvesName
	if e := s.Evaluation; e != nil {
		drawn += ", " + inContextName
		if e.drawable() {
			drawn += " and " + episodesName
		}
	}
	out.Line("", "%s, %s as .svg and .png", tables()[0].File, drawn)
	next := "eval"
	if _, playable := v.dataset.world.(world.Game); !playable {
		next = "act" // in another program's loop
	}
	out.Line("next", "haul %s --checkpoint %s", next, report.ShellWord(s.Dir))
	return out
}

// inUse returns the agents' result in one line.
func inUse(e *Evaluation) string {
	over := "; ± is over goals"
	if len(e.Goals) < 2 {
		over = ""
	}
	return fmt.Sprintf("return %.2f in the first episode, %s in the last %d of %d: %s %% of the optimum %.2f, on %s with %s on each%s",
		e.First, e.withSE(e.Last, e.LastSE, "%.2f"), min(10, e.Episodes), e.Episodes, e.withSE(100*e.Share, 100*e.ShareSE, "%.1f"), e.Optimal,
		report.Plural(int64(len(e.Goals)), "goal"), report.Plural(int64(e.Agents), "agent"), over)
}

// curve returns the first and the last return as text.
func curve(e *Evaluation) string {
	return fmt.Sprintf("return %s in episode %d; area under the curve %s of an expert's", e.withSE(e.Final, e.FinalSE, "%.3f"), e.Episodes, e.withSE(e.NAUC, e.NAUCSE, "%.3f"))
}

// withSE formats a figure and its standard error, which a single goal lacks.
func (e *Evaluation) withSE(v, se float64, format string) string {
	if len(e.Goals) < 2 {
		return fmt.Sprintf(format, v)
	}
	return fmt.Sprintf(format+" ± "+format, v, se)
}

// contexts summarises the agents' contexts.
func contexts(e *Evaluation) string {
	out := fmt.Sprintf("contexts of at most %d tokens, pruned %s", e.Context, report.Plural(e.Prunes, "time"))
	if r := e.Regions; r.Ended > 0 {
		out += fmt.Sprintf("; %s regions ended, %.1f ± %.1f steps long, %.1f %% of them by force", report.Thousands(r.Ended), r.Mean, r.SD, 100*float64(r.Forced)/float64(r.Ended))
	}
	return out
}
