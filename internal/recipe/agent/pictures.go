package agent

import (
	"fmt"
	"io"

	"haul/internal/draw"
	"haul/internal/report"
	"haul/internal/world"
)

// Pictures of a run folder.
const (
	curvesName    = "curves"
	inContextName = "in_context"
	episodesName  = "episodes"
)

func (v *view) Pictures() []report.Picture {
	var out []report.Picture
	if len(v.reports) > 0 {
		out = append(out, report.Picture{Name: curvesName, Draw: v.drawCurves})
	}
	if e := v.used; e != nil {
		out = append(out, report.Picture{Name: inContextName, Draw: func(w io.Writer, f draw.Format) error { return e.drawReturns(w, f, v.info.Config) }})
	}
	if e := v.used; e != nil && e.drawable() {
		out = append(out, report.Picture{Name: episodesName, Draw: func(w io.Writer, f draw.Format) error { return e.drawEpisodes(w, f, v.info.Config) }})
	}
	return out
}

// drawCurves draws the action head's loss and accuracy by iteration.
func (v *view) drawCurves(w io.Writer, f draw.Format) error {
	var loss, acc, heldLoss, heldAcc draw.Curve
	loss.Name, heldLoss.Name = "training, with dropout", "held-out goals"
	acc.Name, heldAcc.Name = loss.Name, heldLoss.Name
	for _, r := range v.reports {
		loss.Add(float64(r.Iteration), r.LossAction)
		acc.Add(float64(r.Iteration), 100*r.AccAction)
	}
	for _, t := range v.tests {
		heldLoss.Add(float64(t.Iteration), t.LossAction)
		heldAcc.Add(float64(t.Iteration), 100*t.AccAction)
	}
	subtitle := fmt.Sprintf("%s tokens per row · batch %s · %s parameters · %s", report.Thousands(int64(v.dataset.trainSpec.Tokens)), report.Thousands(int64(v.cfg.TrainBatchSize)), report.Thousands(int64(v.info.Parameters)), v.info.Device)
	return draw.Panels(w, f, v.info.Config, subtitle,
		draw.Panel{Title: "Loss of the next action", X: "iteration", Curves: []draw.Curve{loss, heldLoss}},
		draw.Panel{Title: "Actions predicted, %", X: "iteration", Curves: []draw.Curve{acc, heldAcc}})
}

// drawReturns draws the return of each episode in context, with the source learners' returns and
// the optimum.
func (e *Evaluation) drawReturns(w io.Writer, f draw.Format, name string) error {
	var agent, source draw.Curve
	agent.Name, source.Name = "agent, in its context", "source learner, by gradient"
	for i, v := range e.Return {
		agent.Add(float64(i+1), v)
	}
	for i, v := range e.Source[:min(len(e.Source), len(e.Return))] {
		source.Add(float64(i+1), v)
	}
	title := fmt.Sprintf("%s · %.1f %% of the optimum in its last %d episodes", name, 100*e.Share, min(10, e.Episodes))
	goals := "goals"
	if e.HeldOut {
		goals = "held-out goals"
	}
	subtitle := fmt.Sprintf("%d %s · %d agents on each · %s iterations · temperature %g", len(e.Goals), goals, e.Agents, report.Thousands(int64(e.Iteration)), e.Temperature)
	return draw.Panels(w, f, title, subtitle, draw.Panel{Title: "Return of an episode", X: "episode in context", Curves: []draw.Curve{source, agent},
		Level: e.Optimal, LevelName: "optimum", FromZero: true})
}

// drawEpisodes draws an agent's first and last trajectory next to each other.
func (e *Evaluation) drawEpisodes(w io.Writer, f draw.Format, name string) error {
	square := e.Game.(world.Map)
	shown := func(caption string, x Episode) draw.Walk {
		out := draw.Walk{Caption: fmt.Sprintf("%s · return %g of %g", caption, x.Return, e.Game.Best(x.Goal))}
		out.Goal, out.Key = square.Marks(x.Goal)
		for _, cell := range x.Cells {
			out.Cells = append(out.Cells, [2]int{int(cell[0]), int(cell[1])})
		}
		return out
	}
	return draw.Rooms(w, f, name, square.Side(), shown("first episode", e.FirstEpisode), shown(fmt.Sprintf("episode %d", e.Episodes), e.LastEpisode))
}

// drawable reports whether trajectories can be drawn.
func (e *Evaluation) drawable() bool {
	_, square := e.Game.(world.Map)
	return square
}
