package doctor

import "fmt"

// smallBatch looks for a step of ordinary length whose kernels leave most of the card empty: fewer
// thread blocks than the card has multiprocessors. The step then costs the same for a batch several
// times as large.
//
// Threshold: half of the operators that launch (past what other causes took) launch such kernels, these
// kernels hold half of the kernels' time, the GPU is idle for half the step, and issuing takes 20 %
// of it. It looks at what launchBound leaves.
var smallBatch = rule{
	id:     "small-batch",
	remedy: "Give the card more to do a step: a larger batch costs about the same time until the kernels fill it; accumulate less, or run several instances side by side.",
	find: func(a *analysis, who cause) *cost {
		if 2*a.busy >= a.wall {
			return nil
		}
		c := a.collect(holdsLaunch)
		empty := 0
		for _, o := range c.ops {
			if o.holds&holdsUnderfilled != 0 {
				empty++
			}
		}
		short, fill := a.underfilled()
		ms := a.bounded(c.ns, 0)
		if 2*empty < len(c.ops) || short < 0.5 || a.share(ms) < 0.20 {
			return nil
		}
		c.take(who)
		return &cost{ms, []string{
			fmt.Sprintf("%s of the kernels' time runs with fewer blocks than the card has processors; those fill %s of it", percent(short), percent(fill)),
			fmt.Sprintf("%s kernels a step, %s ms of GPU time; issuing them takes %s ms whatever the batch", perStepCount(a.perStep(float64(a.kernels))),
				figure(a.ms(a.kernel)), figure(a.ms(c.ns))),
			c.where(),
		}}
	},
}

// underfilled returns which part of the kernels' time runs on a card not filled, and how full that is.
func (a *analysis) underfilled() (share, fill float64) {
	var short, weighted, all float64
	for i := range a.gpu.len() {
		g := a.gpu.at(i)
		if _, ok := within(a.steps, g.start); !ok || g.kind != catKernel {
			continue
		}
		all += float64(g.dur)
		if g.blocks >= 0 && g.blocks < 1 {
			short += float64(g.dur)
			weighted += float64(g.dur) * float64(g.blocks)
		}
	}
	return short / max(1, all), weighted / max(1, short)
}
