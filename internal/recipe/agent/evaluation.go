package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"haul/internal/config"
	"haul/internal/device"
	"haul/internal/draw"
	"haul/internal/report"
	"haul/internal/run"
	"haul/internal/world/history"
)

// evaluated is an evaluation that a command reports.
type evaluated struct {
	*Evaluation
	path, device, name string
	flattered          bool // some of these goals were used to choose the temperature
}

// evaluate runs copies of a checkpoint's agent that learn goals in their contexts.
func evaluate(ctx context.Context, e *run.Evaluation) (_ *evaluated, err error) {
	o := EvalOptions{Flags: true, Agents: e.Flags.Int("agents"), Episodes: e.Flags.Int("episodes"), Seed: e.Seed, Progress: e.Progress}
	if err := checkJudging(e.Flags); err != nil {
		return nil, err
	}
	goals, t := e.Flags.String("goals"), e.Flags.Float("temperature")
	if e.Flags.Changed("temperature") {
		o.Temperature = &t
	}
	if search := e.Flags.Float("search"); e.Flags.Changed("search") {
		o.Search = &search
	}
	tries, err := parseTemperatures(e.Flags)
	if err != nil {
		return nil, err
	}
	ck, at, err := readCheckpoint(e.Path)
	if err != nil {
		return nil, err
	}
	var path string
	if o.History, path, err = at.history(e.Flags, ck.Settings.(*config.AD)); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.History.Close()) }()
	if !e.Flags.Changed("history") {
		if err := at.same(o.History, path, ck.Settings.(*config.AD)); err != nil {
			return nil, err
		}
	}
	c := ck.Settings.(*config.AD)
	if (goals == "validation" || len(tries) > 0) && c.ValidationGoals == 0 {
		return nil, run.Usagef("%s kept no goals for validation: train with --set validation_goals=8, for example", e.Path)
	}
	if c.EvalTune && c.ValidationGoals > 0 && !e.Flags.Changed("temperature") && !e.Flags.Changed("search") && !e.Flags.Changed("tune") {
		tries = usualTemperatures()
	}
	o.Goals = chosen(goals, o.History, c)
	dev, err := e.Device()
	if err != nil {
		return nil, err
	}
	a, err := load(dev, ck, at)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	out, err := a.tuned(ctx, o, tries)
	if err != nil {
		return nil, err
	}
	return &evaluated{out, e.Path, dev.Name(), e.Settings.(*config.AD).Name, len(tries) > 0 && (goals == "validation" || goals == "all")}, nil
}

// same returns an error if the default file no longer holds the histories that the run learned
// from, because its held-out goals may be known to the agent. It accepts a file that the user
// names.
func (at *state) same(h history.History, path string, c *config.AD) error {
	was, err := at.world()
	if err != nil {
		return err
	}
	if err := history.Matches(h, was); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	d, err := newDataset(h, c)
	if err != nil {
		return fmt.Errorf("%s: %w: say with --history where the run's own histories are", path, err)
	}
	if d.checksum != at.Histories {
		return fmt.Errorf("%s holds other learning histories than the run learned from (checksum %s, these have %s): say with --history where its own are, or which to take", path, at.Histories, d.checksum)
	}
	return nil
}

// chosen returns the indices of the goals to evaluate, or nil for the held-out goals.
func chosen(which string, h history.History, c *config.AD) []int {
	learned, validation, held := goals(h, c)
	switch which {
	case "train":
		return learned
	case "validation":
		return validation
	case "all":
		return slices.Concat(learned, validation, held)
	}
	return nil
}

// Trial is the result at one temperature on the validation goals.
type Trial struct {
	Temperature float64 `json:"temperature"`
	Search      float64 `json:"search_temperature"`
	Share       float64 `json:"share_of_optimum"`
	ShareSE     float64 `json:"share_of_optimum_se"`
}

// atOnce returns the number of temperatures to try at a time: all on a GPU, which a few hundred
// agents do not fill, otherwise one, which needs less memory.
func (a *Agent) atOnce(tries []temperatures) int {
	if device.OnGPU(a.dev.Name()) {
		return max(1, len(tries))
	}
	return 1
}

// tune tries temperatures on the validation goals.
func (a *Agent) tune(ctx context.Context, o EvalOptions, tries []temperatures) (out []Trial, err error) {
	o.Goals = chosen("validation", o.History, a.Config)
	for some := range slices.Chunk(tries, a.atOnce(tries)) {
		o.tries = some
		all, err := a.evaluateAll(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, e := range all {
			out = append(out, Trial{e.Temperature, e.Search, e.Share, e.ShareSE})
		}
	}
	return out, nil
}

// tuned evaluates at the temperatures with the highest return on the validation goals, or at those
// of the options if there is nothing to try.
func (a *Agent) tuned(ctx context.Context, o EvalOptions, tries []temperatures) (*Evaluation, error) {
	trials, err := a.tune(ctx, o, tries)
	if err != nil {
		return nil, err
	}
	if len(trials) > 0 {
		best := bestTrial(trials)
		o.Temperature, o.Search = &best.Temperature, &best.Search
	}
	out, err := a.Evaluate(ctx, o)
	if err == nil {
		out.Tuned = trials
	}
	return out, err
}

// bestTrial returns the trial with the highest return, the first among equals.
func bestTrial(all []Trial) *Trial {
	best := &all[0]
	for i := range all {
		if all[i].Share > best.Share {
			best = &all[i]
		}
	}
	return best
}

// Object returns the evaluation for JSON output.
func (j *evaluated) Object() any { return j.Evaluation }

// Pictures returns the curve and, with the suffix -episodes, the trajectories.
func (j *evaluated) Pictures() []run.Drawing {
	out := []run.Drawing{{Draw: func(w io.Writer, f draw.Format) error { return j.drawReturns(w, f, j.name) }}}
	if j.drawable() {
		out = append(out, run.Drawing{Suffix: "-episodes", Draw: func(w io.Writer, f draw.Format) error { return j.drawEpisodes(w, f, j.name) }})
	}
	return out
}

// Text writes an evaluation for people: the curve by tenths of the episodes, then every goal.
func (j *evaluated) Text(w io.Writer, bold func(string) string) error {
	e, b := j.Evaluation, new(strings.Builder)
	fmt.Fprintf(b, "%s\n", bold(j.path+", "+j.device))
	fmt.Fprintf(b, "%s\n%s\n%s\n\n", inUse(e), curve(e), contexts(e))
	for _, t := range e.Tuned {
		fmt.Fprintf(b, "temperature %-4g searching %-4g  %.1f ± %.1f %% on the goals kept for validation\n", t.Temperature, t.Search, 100*t.Share, 100*t.ShareSE)
	}
	if len(e.Tuned) > 0 {
		fmt.Fprintf(b, "taken: %g searching %g\n", e.Temperature, e.Search)
		if j.flattered {
			b.WriteString("The goals below include those that chose this temperature, which flatters the agent: --goals held-out has none of them.\n")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(b, "%-14s  %-9s  %s\n", "episodes", "agent", "learner")
	const most = 10
	step := (len(e.Return) + most - 1) / most
	for at := 0; at < len(e.Return); at += step {
		end := min(at+step, len(e.Return))
		source := "–"
		if len(e.Source) >= end {
			source = fmt.Sprintf("%.2f", mean(e.Source[at:end]))
		}
		which := fmt.Sprintf("%d to %d", at+1, end)
		if step == 1 || at+1 == end {
			which = fmt.Sprint(end)
		}
		fmt.Fprintf(b, "%-14s  %-9.2f  %s\n", which, mean(e.Return[at:end]), source)
	}
	width := 14
	for _, g := range e.Goals {
		width = max(width, len(g.Goal.String()))
	}
	fmt.Fprintf(b, "\n%-*s  %-9s  %-9s  %s\n", width, "goal", "last", "optimum", "share")
	for _, g := range e.Goals {
		fmt.Fprintf(b, "%-*s  %-9.2f  %-9.2f  %.1f %%\n", width, g.Goal, g.Last, g.Optimal, 100*g.Share)
	}
	fmt.Fprintf(b, "\n%s steps of all agents per second, %s runs of the network, %s\n",
		report.Thousands(int64(e.StepsPerSecond)), report.Thousands(e.Runs), report.Duration(e.Seconds))
	_, err := io.WriteString(w, b.String())
	return err
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
