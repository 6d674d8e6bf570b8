package doctor

import "fmt"

// smallBatch looks for a step of ordinary length whose kernels leave most of the card empty: fewer
// thread blocks than the card has multiprocessors. The step then costs the same for a batch several
// times as large.
//
// Threshold: such kernels hold half of the compute kernels' time, the GPU is idle for half the
// step, the CPU issues fewer than 256 kernels per step (with more, their number is the cause and
// launch-bound says so), and the wait for them takes 10 % of the step.
const (
	batchKernels = 256
	batchShare   = 0.10
)

var smallBatch = rule{
	id:     "small-batch",
	remedy: "Give the card more to do per step: a larger batch costs about the same time until the kernels fill it; accumulate less, or run several instances side by side.",
	find: func(a *analysis, who cause) *cost {
		if 2*a.busy >= float64(a.wall) || a.perStep(float64(a.kernels)) >= batchKernels {
			return nil
		}
		c, ns := a.issuing()
		short, fill := a.underfilled()
		ms := a.ms(ns)
		if short < 0.5 || a.share(ms) < batchShare {
			return nil
		}
		c.take(who)
		return &cost{ms: ms, places: c.placed(), evidence: []string{
			fmt.Sprintf("%s of the kernels' time runs with fewer blocks than the card has processors; those fill %s of it", percent(short), percent(fill)),
			fmt.Sprintf("%s kernels per step, %s ms of GPU time; the GPU waits %s ms for them to be issued, whatever the batch", perStepCount(a.perStep(float64(a.kernels))),
				figure(a.ms(a.kernel)), figure(ms)),
			c.where(),
		}}
	},
}

// underfilled returns which part of the kernels' time runs on a card not filled, and how full that
// is.
func (a *analysis) underfilled() (share, fill float64) {
	var short, weighted, all float64
	for i := range a.gpu.len() {
		g := a.gpu.at(i)
		if _, ok := within(a.steps, g.start); !ok || g.kind != catKernel || g.comm {
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
