package doctor

import "fmt"

// transferStorm looks for many small copies across the bus that carry data: a matrix a sample, a
// row a route, a flag a write. A copy costs about 10 µs whatever its size, and PyTorch waits for
// each one from pageable memory.
//
// Threshold: 64 operators per step that copy under 64 kB each, and 2 % of the time. A step that
// brings its batch over in a handful of tensors stays far below.
const (
	smallCopies = 64
	copyShare   = 0.02
)

var transferStorm = rule{
	id:     "transfer-storm",
	remedy: "Keep data where it is used: make it on the GPU, or pack the samples and move them as one block per step; leave on the CPU what only the CPU reads.",
	find: func(a *analysis, who cause) *cost {
		c := a.newCharge()
		copies := 0
		for _, th := range a.threads {
			copies += a.collectCopies(th, c)
		}
		ms := a.ms(c.ns)
		if a.perStep(float64(copies)) < smallCopies || a.share(ms) < copyShare {
			return nil
		}
		c.take(who)
		ms = a.ms(c.ns)
		return &cost{ms: ms, places: c.placed(), evidence: []string{
			fmt.Sprintf("%s operators per step make small copies; all %s copies per step together move %s kB", perStepCount(a.perStep(float64(copies))),
				perStepCount(a.perStep(float64(a.copies))), figure(a.perStep(float64(a.moved))/1024)),
			fmt.Sprintf("the GPU spends %s ms on all its copies, and waits %s ms for the CPU around these: %s", figure(a.ms(a.copied)), figure(ms), c.top(4)),
			c.where(),
		}}
	},
}

// collectCopies charges one thread's small copies with the views and the Python between them, which
// are the loop over the copies, and returns how many copies there are. A launch in between ends the
// loop.
func (a *analysis) collectCopies(th *thread, c *charge) int {
	n, since, open := 0, 0, false
	for i := range th.ops.len() {
		o := th.ops.at(i)
		step, ok := within(a.cpuSteps, o.start)
		small := o.holds&(holdsSmall|holdsSingle) != 0
		if !ok || o.cause != 0 || !small && o.launches > 0 {
			open = false
			continue
		}
		if !small {
			continue
		}
		for k := since; open && k < i; k++ {
			if between := th.ops.at(k); between.cause == 0 {
				c.add(between, step)
			}
		}
		c.add(o, step)
		n, since, open = n+1, i+1, true
	}
	return n
}
