package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// pythonBound looks for intervals in which the GPU waits for the host's own work: Python outside
// any operator, or operators without launches, such as preprocessing on the CPU. Python between two
// ordinary operators belongs to the operators and to launch-bound.
//
// Threshold: 5 % of the step. If short intervals between operators take half as much again as the
// operators, the interpreter is the cause, and they count too.
//
// Without a GPU, Python around short operators is normal in a small model. There the threshold is
// 15 % of the median step, at positions that recur in most steps, or 40 % in short intervals. A
// single interval in the only step does not recur: below half of the step it is a note.
const (
	pythonShare     = 0.05
	hostPythonShare = 0.15
	hostLoopShare   = 0.40 // in short intervals, from which the loop is Python's
	hostOnceShare   = 0.50 // for one interval of the only step, which may be the machine's
)

var pythonBound = Rule{
	ID:     "python-bound",
	remedy: "Take the work out of the loop's way: do it beside the training loop (workers, a thread, a batch ahead), on the GPU, or in one vectorised call instead of a Python loop.",
	find: func(a *analysis.Analysis, _ trace.Cause) *cost {
		if a.Own {
			return nil
		}
		ns, short := a.Idle[analysis.IdlePython]-a.Taken[analysis.IdlePython], a.Idle[analysis.IdleBetween]-a.Taken[analysis.IdleBetween]
		path := a.Idle[analysis.IdleOp] + a.Idle[analysis.IdleLaunch] + a.Idle[analysis.IdleCopy]
		loop := len(a.Devices) > 0 && short > 1.5*path && a.Share(a.Ms(short)) >= launchShare
		if loop {
			ns += short
		}
		ms, least := a.Ms(ns), pythonShare
		if len(a.Devices) == 0 {
			if loop = a.Share(a.Ms(short)) >= hostLoopShare; loop {
				ms += a.Ms(short)
			} else { // disturbances by the machine in some steps are not the program's
				ms = min(ms, a.Ms(a.Recurring), a.MiddleHeld(analysis.IdlePython)/1e6)
			}
			least = hostPythonShare
		}
		if a.Share(ms) < least {
			return nil
		}
		c := &cost{ms: ms}
		ops := a.NewCharge() // operators that compute on the CPU
		var longest analysis.Piece
		n := 0
		in := map[int]bool{}
		for _, p := range a.Held {
			if p.Kind != analysis.IdlePython && !(loop && p.Kind == analysis.IdleBetween) {
				continue
			}
			n++
			if p.Op != nil {
				ops.CountFor(p.Op, float64(p.End-p.Start))
			}
			step, _ := trace.Within(a.Steps, p.Start)
			in[min(step, len(a.Steps)-1)] = true
			if p.End-p.Start > longest.End-longest.Start {
				longest = p
			}
		}
		for _, p := range a.InPython {
			if p.Kind == analysis.IdlePython || loop {
				c.places = append(c.places, p.Place)
			}
		}
		where := "the GPU waits for %s ms per step in stretches without a launch"
		if len(a.Devices) == 0 {
			where = "the main thread spends %s ms per step outside any operator"
		}
		c.evidence = append(c.evidence, fmt.Sprintf(where, phrase.Figure(ms)))
		if n > 0 {
			step, _ := trace.Within(a.Steps, longest.Start)
			step = min(step, len(a.Steps)-1)
			intervals := "one stretch"
			if n > 1 {
				intervals = "the longest of " + phrase.Count1(n, "stretch")
			}
			if len(in) < len(a.Steps) {
				intervals = fmt.Sprintf("in %d of %s: ", len(in), phrase.Count1(len(a.Steps), "step")) + intervals
			}
			c.evidence = append(c.evidence, fmt.Sprintf("%s takes %s ms, in step %d", intervals, phrase.Figure(float64(longest.End-longest.Start)/1e6), step+1))
		}
		if len(a.Devices) == 0 && len(a.Steps) == 1 && n == 1 && a.Share(ms) < hostOnceShare {
			c.most = Note
			c.evidence = append(c.evidence, "one stretch in one step may be the machine's: record several steps to see whether it recurs")
		}
		if !ops.Empty() {
			in := ops.TopBy(4, (*analysis.Named).OnCPU)
			c.evidence = append(c.evidence, "of that, in operators: "+in)
			if len(a.Devices) > 0 && hostRandom(in) {
				c.remedy = "Draw random numbers where they are used: torch.randn(..., device=\"cuda\") and its kin; drawn on the CPU they are computed there and copied."
			}
		}
		if loop && len(a.Devices) == 0 {
			c.evidence = append(c.evidence, fmt.Sprintf("%s ms of it is Python between short operators", phrase.Figure(a.Ms(short))))
		} else if loop {
			c.evidence = append(c.evidence, fmt.Sprintf("%s ms of it is Python between operators, more than the operators themselves take on the way to a launch", phrase.Figure(a.Ms(short))))
		}
		return c
	},
}
