package report

import (
	"fmt"
	"path/filepath"
	"strings"

	"haul/internal/train"
)

// AgentTerminal tells a person about an agent's run: a line for every test and every evaluation in context, and with Live a block with where
// the run stands, what keeps the device busy, and the loss.
type AgentTerminal struct {
	Screen
	History string // the histories' path where eval must be told it
	info    train.ADInfo
	last    *train.ADReport
	test    *train.ADTest
	curve   []point
	reports int
	seconds float64
	sums    train.ADReport // what the device was asked for, and time-weighted shares, in this process
	testing float64        // seconds of tests and evaluations
}

// Start prints the banner.
func (t *AgentTerminal) Start(i train.ADInfo) {
	t.info = i
	t.write(t.paint(bold, fmt.Sprintf("%s: %s of %s rows of %s", i.Name, plural(int64(i.Iterations), "iteration"), thousands(int64(i.Batch*max(1, i.Parts))), plural(int64(i.Tokens), "token"))))
	where := "on the device: the step draws its own rows, nothing is copied"
	if i.Data == train.DataHost {
		where = "on the host: the trainer fills its own batches"
		if i.Workers > 0 {
			where = fmt.Sprintf("on the host: %s fill batches", plural(int64(i.Workers), "worker"))
		}
	}
	rows := [][2]string{
		{"model", fmt.Sprintf("%s, %s parameters", i.Model, thousands(int64(i.Parameters)))},
		{"device", fmt.Sprintf("%s, %s", i.Device, i.Precision)},
		{"room", fmt.Sprintf("%d×%d, episodes of %d steps", i.Room.Size, i.Room.Size, i.Room.Horizon)},
		{"histories", fmt.Sprintf("%s of %s, %s, %s", plural(int64(i.Streams), "stream"), plural(int64(i.Goals), "goal"), bytesText(i.DataBytes), where)},
		{"step", fmt.Sprintf("recorded once and replayed: about %s an iteration", operations(float64(i.FLOPs)))},
		{"memory", bytesText(i.Memory)},
		{"results", i.Dir},
	}
	t.banner(rows, i.Paths)
	if i.Resumed {
		t.write(fmt.Sprintf("  %-9s after %s", "resumed", plural(int64(i.Done), "iteration")))
	}
}

// Past takes the reports of a resumed run's past, so that the curve is whole.
func (t *AgentTerminal) Past(reports []train.ADReport) {
	for _, r := range reports {
		t.curve = append(t.curve, point{float64(r.Iteration), r.LossAction})
	}
}

// Tick redraws the block.
func (t *AgentTerminal) Tick(p train.ADProgress) {
	if !t.Live {
		return
	}
	const bar = 12
	done := float64(p.Iteration) / float64(max(1, p.Iterations))
	full := min(bar, int(done*bar))
	line := fmt.Sprintf("%s/%s  %s%s %3.0f %%  %.1f it/s", thousands(int64(p.Iteration)), thousands(int64(p.Iterations)),
		strings.Repeat("█", full), strings.Repeat("░", bar-full), 100*done, p.PerSecond)
	if p.PerSecond > 0 {
		line += fmt.Sprintf("  %s left", duration(float64(p.Iterations-p.Iteration)/p.PerSecond))
	}
	if l := t.last; l != nil {
		line += fmt.Sprintf("  loss %.4f  acc %.1f %%  busy %.0f %%", l.LossAction, 100*l.AccAction, 100*l.BusyShare)
	}
	line += fmt.Sprintf("  %s", bytesText(t.info.Memory))
	if t.info.Data == train.DataHost {
		line += fmt.Sprintf("  loader wait %.1f %%", 100*p.WaitShare)
	}
	lines := []string{line}
	if t.test != nil {
		lines = append(lines, chart(t.curve, p.Iterations, t.test.LossAction, "held-out", min(t.Width()-1, 76), chartRows)...)
	}
	t.show(lines)
}

// Report keeps the figures for the block and the summary.
func (t *AgentTerminal) Report(r train.ADReport) {
	t.last = &r
	t.curve = append(t.curve, point{float64(r.Iteration), r.LossAction})
	t.reports += r.Since
	t.seconds += r.Seconds
	s := &t.sums
	s.Launches += r.Launches
	s.Waits += r.Waits
	s.CopiesIn += r.CopiesIn
	s.CopiesOut += r.CopiesOut
	s.Allocations += r.Allocations
	s.BusyShare += r.BusyShare * r.Seconds
	s.WaitShare += r.WaitShare * r.Seconds
	s.FLOPsPerSecond += r.FLOPsPerSecond * r.Seconds
	s.TokensPerSecond += r.TokensPerSecond * r.Seconds
}

// Test prints a line.
func (t *AgentTerminal) Test(r train.ADTest) {
	t.test = &r
	t.testing += r.Seconds
	t.clear()
	line := fmt.Sprintf("%9s", thousands(int64(r.Iteration)))
	if l := t.last; l != nil {
		line += fmt.Sprintf("  train loss %.4f acc %.1f %%", l.LossAction, 100*l.AccAction)
	}
	line += fmt.Sprintf("  held-out loss %.4f acc %.1f %%", r.LossAction, 100*r.AccAction)
	if r.LossTokenType > 0 {
		line += fmt.Sprintf("  token type %.4f %.1f %%", r.LossTokenType, 100*r.AccTokenType)
	}
	if l := t.last; l != nil {
		line += fmt.Sprintf("  lr %.2g  %.1f it/s", l.LR, l.PerSecond)
	}
	t.write(t.cut(line))
}

// cut keeps a line from wrapping on a screen; a pipe takes it whole.
func (t *AgentTerminal) cut(line string) string {
	if !t.Live {
		return line
	}
	return fit(line, t.Width()-1)
}

// Evaluated prints a line.
func (t *AgentTerminal) Evaluated(e *train.ADEvaluation) {
	t.testing += e.Seconds
	t.clear()
	t.write(t.cut(fmt.Sprintf("%9s  in context: return %.2f at first, %.2f ± %.2f in the last %d of %d episodes, %.1f %% of the optimum", thousands(int64(e.Iteration)),
		e.First, e.Last, e.LastSE, min(10, e.Episodes), e.Episodes, 100*e.Share)))
}

// Done prints how the run ended, where its time went, and what to try next.
func (t *AgentTerminal) Done(s train.ADSummary) {
	t.clear()
	t.write("")
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "done: %s, %s rows, %s\n", plural(int64(s.Iterations), "iteration"), thousands(int64(s.Sequences)), duration(s.Seconds))
	row("held-out", "loss %.4f, %.1f %% of actions; best loss %.4f at iteration %s", s.Test.LossAction, 100*s.Test.AccAction, s.BestLoss, thousands(int64(s.BestIteration)))
	if e := s.Evaluation; e != nil {
		row("in use", "%s", inUse(e))
		row("", "%s", contexts(e))
	}
	if t.seconds > 0 {
		u := &t.sums
		row("speed", "%.1f iterations/s (%.2f ms), %s tokens/s, %s/s", float64(t.reports)/t.seconds, 1e3*t.seconds/float64(t.reports), thousands(int64(u.TokensPerSecond/t.seconds)), operations(u.FLOPsPerSecond/t.seconds))
		row("time", "%5.1f %%  iterations  %s", 100*t.seconds/(t.seconds+t.testing), duration(t.seconds))
		row("", "%5.1f %%  tests       %s", 100*t.testing/(t.seconds+t.testing), duration(t.testing))
		row("device", "busy %.0f %% of the iterations' time, waited for rows %.2f %%", 100*u.BusyShare/t.seconds, 100*u.WaitShare/t.seconds)
		row("", "in %s: %s, %s, copies: %s in and %s out, %s", plural(int64(t.reports), "iteration"), pluralES(u.Launches, "launch"), plural(u.Waits, "wait"),
			thousands(u.CopiesIn), thousands(u.CopiesOut), plural(u.Allocations, "allocation"))
	}
	row("written", "%s, %s", s.Last, filepath.Base(s.Best))
	row("", "%s, %s, %s and %s as .svg and .png", agentHistoryName, curvesName, inContextName, episodesName)
	next := "haul eval --model AD --checkpoint " + s.Dir
	if t.History != "" {
		next += " --history " + t.History
	}
	row("next", "%s", next)
	row("", "tensorboard --logdir %s", filepath.Dir(s.Dir))
	fmt.Fprint(t.Result, b.String())
}

// inUse is how agents fared, in a line.
func inUse(e *train.ADEvaluation) string {
	return fmt.Sprintf("return %.2f in the first episode, %.2f ± %.2f in the last %d of %d: %.1f ± %.1f %% of the optimum %.2f, on %s with %s on each",
		e.First, e.Last, e.LastSE, min(10, e.Episodes), e.Episodes, 100*e.Share, 100*e.ShareSE, e.Optimal, plural(int64(len(e.Goals)), "goal"), plural(int64(e.Agents), "agent"))
}

// contexts is what became of the agents' contexts.
func contexts(e *train.ADEvaluation) string {
	out := fmt.Sprintf("contexts of at most %d tokens, pruned %s", e.Context, plural(e.Prunes, "time"))
	if r := e.Regions; r.Ended > 0 {
		out += fmt.Sprintf("; %s regions ended, %.1f ± %.1f steps long, %.1f %% of them by force", thousands(r.Ended), r.Mean, r.SD, 100*float64(r.Forced)/float64(r.Ended))
	}
	return out
}

// WriteInContext prints an evaluation for a person: the curve by tens of the episodes, then every goal.
func WriteInContext(b *strings.Builder, e *train.ADEvaluation) {
	fmt.Fprintf(b, "%s\n%s\n\n", inUse(e), contexts(e))
	fmt.Fprintf(b, "%-14s  %-9s  %-9s\n", "episodes", "agent", "learner")
	const most = 10
	step := (len(e.Return) + most - 1) / most
	for at := 0; at < len(e.Return); at += step {
		end := min(at+step, len(e.Return))
		source := "–"
		if len(e.Source) >= end {
			source = fmt.Sprintf("%.2f", mean(e.Source[at:end]))
		}
		fmt.Fprintf(b, "%-14s  %-9.2f  %-9s\n", fmt.Sprintf("%d to %d", at+1, end), mean(e.Return[at:end]), source)
	}
	fmt.Fprintf(b, "\n%-14s  %-9s  %-9s  %s\n", "goal", "last", "optimum", "share")
	for _, g := range e.Goals {
		fmt.Fprintf(b, "%-14s  %-9.2f  %-9.2f  %.1f %%\n", g.Goal, g.Last, g.Optimal, 100*g.Share)
	}
	fmt.Fprintf(b, "\n%s steps of all agents a second, %s runs of the network, %s\n", thousands(int64(e.StepsPerSecond)), thousands(e.Runs), duration(e.Seconds))
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
