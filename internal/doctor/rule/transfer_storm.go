package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// transferStorm looks for many small copies of data across the bus: a matrix per sample, a row per
// route, a flag per write. A copy of any size costs about 10 µs, and PyTorch waits for each one
// from pageable memory.
//
// Threshold: 64 operators per step that copy under 64 kB each, and 2 % of the time. A step that
// copies its batch in a handful of tensors is far below.
const (
	smallCopies = 64
	copyShare   = 0.02
)

var transferStorm = Rule{
	ID:     "transfer-storm",
	remedy: "Keep data where it is used: make it on the GPU, or pack the samples and move them as one block per step; leave on the CPU what only the CPU reads.",
	find: func(a *analysis.Analysis, who trace.Cause) *cost {
		c := a.NewCharge()
		copies := 0
		for _, th := range a.Threads {
			copies += collectCopies(a, th, c)
		}
		ms := a.Ms(c.Ns)
		if a.PerStep(float64(copies)) < smallCopies || a.Share(ms) < copyShare {
			return nil
		}
		c.Take(who)
		ms = a.Ms(c.Ns)
		return &cost{ms: ms, places: c.Placed(), evidence: []string{
			fmt.Sprintf("%s operators per step make small copies; all %s copies per step together move %s kB", phrase.PerStepCount(a.PerStep(float64(copies))),
				phrase.PerStepCount(a.PerStep(float64(a.Copies))), phrase.Figure(a.PerStep(float64(a.Moved))/1024)),
			fmt.Sprintf("the GPU spends %s ms on all its copies, and waits %s ms for the CPU around these: %s", phrase.Figure(a.Ms(a.Copied)), phrase.Figure(ms), c.Top(4)),
			c.Where(),
		}}
	},
}

// collectCopies charges one thread's small copies with the views and the Python between them, which
// form the loop over the copies. It returns the number of copies. A launch between copies ends the
// loop.
func collectCopies(a *analysis.Analysis, th *trace.Thread, c *analysis.Charge) int {
	n, since, open := 0, 0, false
	for i := range th.Ops.Len() {
		o := th.Ops.At(i)
		step, ok := trace.Within(a.CPUSteps, o.Start)
		small := o.Holds&(trace.HoldsSmall|trace.HoldsSingle) != 0
		if !ok || o.Cause != 0 || !small && o.Launches > 0 {
			open = false
			continue
		}
		if !small {
			continue
		}
		for k := since; open && k < i; k++ {
			if between := th.Ops.At(k); between.Cause == 0 {
				c.Add(between, step)
			}
		}
		c.Add(o, step)
		n, since, open = n+1, i+1, true
	}
	return n
}
