package ppo

import (
	"fmt"
	"io"
	"path/filepath"

	"haul/internal/config"
	"haul/internal/draw"
	"haul/internal/report"
	"haul/internal/run"
	"haul/internal/world/grid"
)

// Iteration summarises one round. Return is over the episodes that ended in it, by the policy
// before the update; Expected and Greedy are of the policy after it.
type Iteration struct {
	Iteration  int      `json:"iteration" csv:"iteration"`
	Iterations int      `json:"iterations"`
	Return     *float64 `json:"return" csv:"return" tb:"train/return"` // mean; null if no episode ended
	Expected   float64  `json:"expected_return" csv:"expected_return" tb:"test/expected_return"`
	Share      float64  `json:"share_of_optimum" csv:"share_of_optimum" tb:"test/share_of_optimum"`
	Greedy     float64  `json:"greedy_return" csv:"greedy_return" tb:"test/greedy_return"` // return of the most likely actions
	Optimal    float64  `json:"optimal" csv:"optimal"`
	Best       bool     `json:"best" csv:"best"`
	PolicyLoss float64  `json:"policy_loss" csv:"policy_loss" tb:"train/policy_loss"`
	ValueLoss  float64  `json:"value_loss" csv:"value_loss" tb:"train/value_loss"` // mean squared error
	Entropy    float64  `json:"entropy" csv:"entropy" tb:"train/entropy"`
	Clipped    float64  `json:"clipped_share" csv:"clipped_share" tb:"train/clipped_share"` // fraction of samples whose ratio left the clip range
	GradNorm   float64  `json:"grad_norm" csv:"grad_norm" tb:"train/grad_norm"`             // mean, before clipping
	LR         float64  `json:"lr" csv:"lr"`

	Seconds        float64 `json:"seconds" csv:"seconds"`
	StepsPerSecond float64 `json:"steps_per_second" csv:"steps_per_second" tb:"speed/steps_per_second"` // of all environments
	SecondsLeft    float64 `json:"seconds_left"`

	report.Asked
}

// Summary is the result of a run.
type Summary struct {
	Iterations    int       `json:"iterations"`
	Steps         int       `json:"steps"` // of all environments
	Seconds       float64   `json:"seconds"`
	Goal          grid.Goal `json:"goal"`
	Optimal       float64   `json:"optimal"`
	Expected      float64   `json:"expected_return"` // of the last weights
	Share         float64   `json:"share_of_optimum"`
	Greedy        float64   `json:"greedy_return"`
	BestIteration int       `json:"best_iteration"`
	Dir           string    `json:"dir"`
	Last          string    `json:"last"`
	Best          string    `json:"best"`
}

// view describes a run in text and pictures.
type view struct {
	info  *report.Info
	cfg   *config.PPO
	goal  grid.Goal
	rows  []*Iteration
	asked report.Asked // of this process
	steps float64      // of all environments, in this process
	spent float64      // seconds
	walks []draw.Walk
}

func (v *view) Banner(bool) (string, [][2]string) {
	c := v.cfg
	return fmt.Sprintf("%s of %s steps in %s", report.Plural(int64(Recipe{}.Length(c)), "iteration"), report.Thousands(int64(round(c))), report.Plural(int64(c.NStream), "environment")),
		[][2]string{
			{"room", roomLine(roomOf(c), v.goal)},
			{"step", fmt.Sprintf("recorded once and replayed: %s, %s over each round", report.Plural(int64(c.BatchSize), "sample"), passes(c.NEpochs))},
		}
}

// roomLine returns a description of the room and its goal.
func roomLine(r grid.Room, goal grid.Goal) string {
	out := fmt.Sprintf("%d×%d, episodes of %d steps, ", r.Size, r.Size, r.Horizon)
	if goal.Keyed() {
		return out + fmt.Sprintf("the key at %v, the door at %v", goal.Key(), goal.Cell())
	}
	return out + fmt.Sprintf("the goal at %v", goal)
}

func passes(n int) string {
	if n == 1 {
		return "1 pass"
	}
	return report.Thousands(int64(n)) + " passes"
}

func (v *view) Heading() (string, []string) {
	return fmt.Sprintf("%9s  %8s  %8s  %8s  %8s  %8s  %9s", "iteration", "return", "expected", "optimum", "entropy", "clipped", "steps/s"), []string{"clipped", "entropy", "steps/s"}
}

func (v *view) Add(r *report.Record, past bool) {
	row := r.Row.(*Iteration)
	v.rows = append(v.rows, row)
	if !past {
		v.asked.Add(row.Asked)
		v.steps += row.StepsPerSecond * row.Seconds
		v.spent += row.Seconds
	}
}

func (v *view) Line(r *report.Record, live bool) string {
	row := r.Row.(*Iteration)
	if !live {
		return fmt.Sprintf("iteration %d/%d  return %s  expected %.2f of %.2f  entropy %.3f  clipped %.1f %%  %s steps/s  %s left", row.Iteration, row.Iterations, earned(row.Return), row.Expected,
			row.Optimal, row.Entropy, 100*row.Clipped, report.Thousands(int64(row.StepsPerSecond)), report.Duration(row.SecondsLeft))
	}
	return fmt.Sprintf("%9s  %8s  %8.2f  %8.2f  %8.3f  %6.1f %%  %9s", fmt.Sprintf("%d/%d", row.Iteration, row.Iterations), earned(row.Return), row.Expected, row.Optimal,
		row.Entropy, 100*row.Clipped, report.Thousands(int64(row.StepsPerSecond)))
}

func earned(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f", *v)
}

func (v *view) Status(t report.Tick) report.Status {
	s := report.Status{Place: fmt.Sprintf("%d/%d", t.Updates, t.Total), Share: float64(t.Updates) / float64(max(1, t.Total)), Left: float64(t.Total-t.Updates) / t.PerSecond,
		Speed: report.Thousands(int64(t.PerSecond*float64(round(v.cfg)))) + " steps/s"}
	if n := len(v.rows); n > 0 {
		s.Figures = fmt.Sprintf("  expected %.2f of %.2f", v.rows[n-1].Expected, v.rows[n-1].Optimal)
	}
	return s
}

// Chart returns the curve of the expected return, with the optimum as a level.
func (v *view) Chart() report.Chart {
	c := report.Chart{Last: Recipe{}.Length(v.cfg), Level: roomOf(v.cfg).Optimal(v.goal), Name: "optimum"}
	for _, r := range v.rows {
		c.Points = append(c.Points, report.Point{X: float64(r.Iteration), Y: r.Expected})
	}
	return c
}

func (v *view) Pictures() []report.Picture {
	var out []report.Picture
	if len(v.rows) > 0 {
		out = append(out, report.Picture{Name: "curves", Draw: v.drawCurves})
	}
	if v.walks != nil {
		out = append(out, report.Picture{Name: "walks", Draw: func(w io.Writer, f draw.Format) error {
			return draw.Rooms(w, f, v.info.Config, v.cfg.GridSize, v.walks...)
		}})
	}
	return out
}

// drawCurves draws the return and the entropy by iteration.
func (v *view) drawCurves(w io.Writer, f draw.Format) error {
	var acted, expected, entropy draw.Curve
	acted.Name, expected.Name, entropy.Name = "while acting", "expected, after learning", "mean over samples"
	for _, r := range v.rows {
		x := float64(r.Iteration)
		if r.Return != nil {
			acted.Add(x, *r.Return)
		}
		expected.Add(x, r.Expected)
		entropy.Add(x, r.Entropy)
	}
	last := v.rows[len(v.rows)-1]
	return draw.Panels(w, f, fmt.Sprintf("%s · %.2f %% of the optimum", v.info.Config, 100*last.Share),
		fmt.Sprintf("goal %v of a %d×%d room · %s parameters · %s", v.goal, v.cfg.GridSize, v.cfg.GridSize, report.Thousands(int64(v.info.Parameters)), v.info.Device),
		draw.Panel{Title: "Return of an episode", X: "iteration", Curves: []draw.Curve{acted, expected}, Level: last.Optimal, LevelName: "optimum", FromZero: true},
		draw.Panel{Title: "Entropy of the policy", X: "iteration", Curves: []draw.Curve{entropy}, FromZero: true})
}

// ending returns the closing report of the run, with the commands to run next.
func (v *view) ending(s *Summary) *report.Ending {
	out := &report.Ending{Row: s, Title: fmt.Sprintf("done: %s, %s steps, %s", report.Plural(int64(s.Iterations), "iteration"), report.Thousands(int64(s.Steps)), report.Duration(s.Seconds))}
	out.Line("return", "%.3f of %.3f per episode, worked out exactly: %.2f %% of the optimum; %g by the most likely actions", s.Expected, s.Optimal, 100*s.Share, s.Greedy)
	if v.spent > 0 {
		if v.info.Resumed {
			out.Line("resumed", "what follows is of this process, after %s", v.info.Done)
		}
		out.Line("speed", "%s steps of environments/s, learning included", report.Thousands(int64(v.steps/v.spent)))
		out.Line("device", "%s", v.asked)
	}
	out.Line("written", "%s, %s, %s", s.Last, filepath.Base(s.Best), run.ResultName)
	out.Line("", "%s, curves and walks as .svg and .png", tables()[0].File)
	out.Line("next", "haul eval --checkpoint %s --plot walks.svg", report.ShellWord(s.Dir))
	return out
}
