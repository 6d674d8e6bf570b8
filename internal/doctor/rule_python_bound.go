package doctor

import "fmt"

// pythonBound looks for stretches in which the GPU waits for the host's own work: Python outside
// any operator, or operators that launch nothing, such as preprocessing on the CPU. Python between
// two ordinary operators is not meant: it goes away with the operators, and launch-bound speaks of
// it.
//
// Threshold: 5 % of the step. Where short stretches between operators outweigh the operators by
// half, the interpreter is the cause after all, and they count too.
const pythonShare = 0.05

var pythonBound = rule{
	id:     "python-bound",
	remedy: "Take the work out of the loop's way: do it beside the training loop (workers, a thread, a batch ahead), on the GPU, or in one vectorised call instead of a Python loop.",
	find: func(a *analysis, _ cause) *cost {
		if a.own {
			return nil
		}
		ns, short := a.idle[idlePython], a.idle[idleBetween]
		path := a.idle[idleOp] + a.idle[idleLaunch] + a.idle[idleCopy]
		loop := len(a.devices) > 0 && short > 1.5*path && a.share(a.ms(short)) >= launchShare
		if loop {
			ns += short
		}
		ms := a.ms(ns)
		if a.share(ms) < pythonShare {
			return nil
		}
		c := &cost{ms: ms}
		ops := a.newCharge() // that compute on the CPU
		var longest piece
		n := 0
		in := map[int]bool{}
		for _, p := range a.held {
			if p.kind != idlePython && !(loop && p.kind == idleBetween) {
				continue
			}
			n++
			if p.op != nil {
				ops.countFor(p.op, float64(p.end-p.start))
			}
			step, _ := within(a.steps, p.start)
			in[min(step, len(a.steps)-1)] = true
			if p.end-p.start > longest.end-longest.start {
				longest = p
			}
		}
		for _, p := range a.inPython {
			if p.kind == idlePython || loop {
				c.places = append(c.places, p.place)
			}
		}
		where := "the GPU waits for %s ms per step in stretches without a launch"
		if len(a.devices) == 0 {
			where = "the main thread spends %s ms per step outside any operator"
		}
		c.evidence = append(c.evidence, fmt.Sprintf(where, figure(ms)))
		if n > 0 {
			step, _ := within(a.steps, longest.start)
			step = min(step, len(a.steps)-1)
			stretches := "one stretch"
			if n > 1 {
				stretches = "the longest of " + count1(n, "stretch")
			}
			if len(in) < len(a.steps) {
				stretches = fmt.Sprintf("in %d of %s: ", len(in), count1(len(a.steps), "step")) + stretches
			}
			c.evidence = append(c.evidence, fmt.Sprintf("%s takes %s ms, in step %d", stretches, figure(float64(longest.end-longest.start)/1e6), step+1))
		}
		if len(ops.byName) > 0 {
			c.evidence = append(c.evidence, "of that, in operators: "+ops.topBy(4, (*named).onCPU))
		}
		if loop {
			c.evidence = append(c.evidence, fmt.Sprintf("%s ms of it is Python between operators, more than the operators themselves take on the way to a launch", figure(a.ms(short))))
		}
		return c
	},
}
