package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// smallBatch looks for a step of ordinary length whose kernels leave most of the GPU unfilled:
// fewer thread blocks than the GPU has multiprocessors. The step then takes equally long for a
// batch several times as large.
//
// Threshold: such kernels take half of the compute kernels' time, the GPU is idle for half the
// step, the CPU issues fewer than 256 kernels per step (with more, their number is the cause and
// launch-bound reports it), and waiting for them takes 10 % of the step.
const (
	batchKernels = 256
	batchShare   = 0.10
)

var smallBatch = Rule{
	ID:     "small-batch",
	remedy: "Give the card more to do per step: a larger batch costs about the same time until the kernels fill it; accumulate less, or run several instances side by side.",
	find: func(a *analysis.Analysis, who trace.Cause) *cost {
		if 2*a.Busy >= float64(a.Wall) || a.PerStep(float64(a.Kernels)) >= batchKernels {
			return nil
		}
		c, ns := issuing(a)
		short, fill := underfilled(a)
		ms := a.Ms(ns)
		if short < 0.5 || a.Share(ms) < batchShare {
			return nil
		}
		c.Take(who)
		a.LooseLaunches = 0 // they belong to this cause
		return &cost{ms: ms, places: c.Placed(), evidence: []string{
			fmt.Sprintf("%s of the kernels' time runs with fewer blocks than the card has processors; those fill %s of it", phrase.Percent(short), phrase.Percent(fill)),
			fmt.Sprintf("%s kernels per step, %s ms of GPU time; the GPU waits %s ms for them to be issued, whatever the batch", phrase.PerStepCount(a.PerStep(float64(a.Kernels))),
				phrase.Figure(a.Ms(a.Kernel)), phrase.Figure(ms)),
			c.Where(),
		}}
	},
}
