package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// dispatchBound looks for a CPU job whose operators are so small that issuing them takes longer
// than their work: loops over elements, small layers for one sample at a time, an optimizer that
// handles each parameter separately. Without a GPU nothing runs meanwhile, so each operator costs
// the pause before it and the time of an operator without work.
//
// Threshold: half of the step, from 32 small operators per step on. If Python takes more than four
// times as long between operators as issuing them, that is the loop's own work, and python-bound
// reports it.
const (
	dispatchShare  = 0.50
	dispatchOps    = 32
	dispatchPauses = 4
	notedDisturbed = 0.05 // fraction of the step that other programs take
)

var dispatchBound = Rule{
	ID:     "dispatch-bound",
	remedy: "Fewer, larger operators: replace the loop by operations on whole tensors (stack what it visits), take a larger batch, or let torch.compile fuse the operators into a few.",
	find: func(a *analysis.Analysis, who trace.Cause) *cost {
		d := a.Dispatch()
		if d == nil || a.PerStep(float64(len(d.Small))) < dispatchOps {
			return nil
		}
		share := d.Share(a)
		if share < dispatchShare || d.Pauses > dispatchPauses*(d.Ns-d.Pauses) {
			return nil
		}
		c := a.NewCharge()
		for _, s := range d.Small {
			c.Add(s.Op, s.Step)
			s.Op.Cause = who
		}
		a.Taken[analysis.IdleBetween] += d.Pauses
		a.Taken[analysis.IdlePython] += d.DisturbedPauses
		evidence := []string{
			fmt.Sprintf("%s operators per step, %s of them small: one without work takes %s µs in this recording, and %s µs pass before it", phrase.PerStepCount(a.PerStep(float64(d.All))),
				phrase.Percent(float64(len(d.Small))/float64(d.All)), phrase.Figure(d.Bare/1000), phrase.Figure(d.Pause/1000)),
			fmt.Sprintf("issuing the small ones takes %s ms per step, %s ms of it in pauses between them; the work inside them takes %s ms", phrase.Figure(a.Ms(d.Ns)), phrase.Figure(a.Ms(d.Pauses)), phrase.Figure(a.Ms(d.Work))),
			"most in " + c.TopBy(4, (*analysis.Named).OnCPU),
		}
		if a.Share(a.Ms(d.Disturbed)) >= notedDisturbed {
			evidence = append(evidence, fmt.Sprintf("other programs hold the core for %s ms per step: of the rest, issuing takes %s, and the cost is that part of the step", phrase.Figure(a.Ms(d.Disturbed)), phrase.Percent(share)))
		}
		evidence = append(evidence, optimizerHints(a)...)
		return &cost{ms: share * a.Ms(float64(a.Wall)), places: c.Placed(), evidence: append(evidence, c.Where())}
	},
}
