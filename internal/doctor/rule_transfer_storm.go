package doctor

import "fmt"

// transferStorm looks for many small copies across the bus that carry data: a matrix a sample, a row
// a route, a flag a write. A copy costs about 10 µs whatever its size, and PyTorch waits for each one
// from pageable memory.
//
// Threshold: 64 operators a step that copy under 64 kB each, and 2 % of the time. A step that brings its
// batch over in a handful of tensors stays far below.
var transferStorm = rule{
	id:     "transfer-storm",
	remedy: "Keep data where it is used: make it on the GPU, or pack the samples and move them as one block a step; leave on the CPU what only the CPU reads.",
	find: func(a *analysis, who cause) *cost {
		c := a.collect(holdsSmall | holdsSingle)
		copies := c.n
		ms := a.bounded(c.ns, 0)
		if a.perStep(float64(copies)) < 64 || a.share(ms) < 0.02 {
			return nil
		}
		c.take(who)
		ms = a.bounded(c.ns, 0)
		return &cost{ms, []string{
			fmt.Sprintf("%s operators a step make small copies; all %s copies a step together move %s kB", perStepCount(a.perStep(float64(copies))),
				perStepCount(a.perStep(float64(a.copies))), figure(a.perStep(float64(a.moved))/1024)),
			fmt.Sprintf("the GPU spends %s ms on all its copies, the CPU %s ms around these: %s", figure(a.ms(a.copied)), figure(a.ms(c.ns)), c.top(4)),
			c.where(),
		}}
	},
}
