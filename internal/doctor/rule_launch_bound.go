package doctor

import "fmt"

// launchBound looks for a step that is mostly the issuing of kernels which each do next to nothing:
// the CPU cannot hand them over as fast as the GPU finishes them.
//
// Threshold: 600 kernels a step under 10 µs, in operators that hold 10 % of the time. Below 10 µs a kernel
// runs shorter than its operator takes to issue it. A few transformer layers, forward, backward and
// optimizer, need 200 to 500 launches; a step with more has a loop in it. A GPU that is busy all the
// same bounds the cost by its idle time, and the finding goes away.
//
// A replayed graph still takes about 1 µs a kernel, which is not counted as won.
var launchBound = rule{
	id:     "launch-bound",
	remedy: "Fewer, larger kernels: batch the loop into tensor operations, fuse with torch.compile, or replay the step as a CUDA graph (mode=\"reduce-overhead\").",
	find: func(a *analysis, who cause) *cost {
		if a.perStep(float64(a.tiny)) < 600 {
			return nil
		}
		c := a.collect(holdsLaunch)
		c.addCalls(a.orphans[callLaunch])
		launches := 0
		for _, o := range c.ops {
			launches += int(o.launches)
		}
		ms := a.bounded(c.ns-1000*float64(launches), 0)
		if a.share(ms) < 0.10 {
			return nil
		}
		c.take(who)
		return &cost{ms, []string{
			fmt.Sprintf("%s kernels a step, %s of them under 10 µs, %.1f µs each on average", perStepCount(a.perStep(float64(a.kernels))),
				percent(float64(a.tiny)/float64(a.kernels)), a.kernel/float64(a.kernels)/1000),
			fmt.Sprintf("issuing takes the CPU %s ms (beside what other findings hold), running takes the GPU %s ms", figure(a.ms(c.ns)), figure(a.ms(a.kernel))),
			"most in " + c.top(4),
			c.where(),
		}}
	},
}
