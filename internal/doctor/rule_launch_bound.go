package doctor

import "fmt"

// launchBound looks for a GPU that waits for the CPU to issue its work: idle time while the CPU is inside
// operators or launch calls, past what other findings hold.
//
// Threshold: 10 % of the step. A step that ends with a wait loses a few percent to the start of the
// next one; past a tenth the CPU cannot hand work over as fast as the GPU finishes it.
const launchShare = 0.10

var launchBound = rule{
	id:     "launch-bound",
	remedy: "Fewer, larger kernels: batch the loop into tensor operations, fuse with torch.compile, or replay the step as a CUDA graph (mode=\"reduce-overhead\").",
	find: func(a *analysis, who cause) *cost {
		c, ns := a.issuing()
		ms := a.ms(ns)
		if a.kernels == 0 || a.share(ms) < launchShare {
			return nil
		}
		c.take(who)
		evidence := []string{
			fmt.Sprintf("%s kernels per step, %s of them under 10 µs, %.1f µs each on average", perStepCount(a.perStep(float64(a.kernels))),
				percent(float64(a.tiny)/float64(a.kernels)), a.kernel/float64(a.kernels)/1000),
			fmt.Sprintf("the GPU waits %s ms per step while the CPU is inside operators or launch calls (beside what other findings hold); its kernels run %s ms", figure(ms), figure(a.ms(a.kernel))),
		}
		if len(c.byName) > 0 {
			evidence = append(evidence, "most in "+c.topBy(4, (*named).inside))
		}
		if between := a.ms(a.idle[idleBetween]); a.share(between) > 0.05 {
			evidence = append(evidence, fmt.Sprintf("%s ms more is Python between operators: fewer operators save that too", figure(between)))
		}
		out := &cost{ms: ms, places: c.placed(), evidence: append(evidence, c.where())}
		if a.format == formatJAX {
			out.remedy = "Fewer, larger programs: put the whole step under one jax.jit, loops into lax.scan, and block on the result once, at the end."
		}
		return out
	},
}

// issuing charges the free operators with the idle time inside them, and returns it with that of the
// launches outside any operator.
func (a *analysis) issuing() (*charge, float64) {
	c := a.newCharge()
	a.eachOp(func(_ *thread, _, step int, o *op) {
		if o.cause == 0 && o.idle > 0 {
			c.add(o, step)
		}
	})
	return c, c.own + a.looseLaunches
}
