package doctor

import "fmt"

// longWait looks for single waits or blocking copies that hold the CPU for a large part of a step
// while the GPU has nothing to do: a read of a few bytes that stands behind work of another stream,
// another process or another rank. Many short ones are a storm and have their own rules.
//
// Threshold: 5 % of the step in stretches that each stand out. A wait for a GPU that works costs nothing.
const waitShare = 0.05

var longWait = rule{
	id:     "long-wait",
	remedy: "Find what the wait stands for: read the value later or not at all (non_blocking=True and an event), keep it on the GPU, or move what it waits for out of the way.",
	find: func(a *analysis, who cause) *cost {
		var ns float64
		var list []heldCall
		for _, h := range a.long {
			if h.op == nil || h.op.cause == 0 {
				ns += h.idle
				list = append(list, h)
			}
		}
		ms := a.ms(ns)
		if a.share(ms) < waitShare {
			return nil
		}
		c := &cost{ms: ms}
		for _, h := range list {
			if h.op != nil {
				h.op.cause = who
				h.op.idle = max(0, h.op.idle-float32(h.idle))
			}
			c.places = append(c.places, place{span{h.call.start, h.call.end()}, h.thread})
		}
		h := list[0]
		held := fmt.Sprintf("the longest, %s, holds the CPU for %s ms", printable(a.names.list[h.call.name].text), figure(float64(h.call.dur)/1e6))
		if h.op != nil {
			held += " in " + shortName(a.names.list[h.op.name].text)
		}
		c.evidence = []string{
			fmt.Sprintf("%s per step, %s ms in which the GPU does nothing that was recorded", countFew(a.perStep(float64(len(list))), "long wait"), figure(ms)),
			held,
		}
		return c
	},
}
