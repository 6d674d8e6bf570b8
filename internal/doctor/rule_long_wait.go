package doctor

import "fmt"

// longWait looks for single waits or blocking copies that hold the CPU for a large part of a step
// while the GPU has nothing to do: a read of a few bytes that stands behind work of another stream,
// another process or another rank. Many short ones are a storm and have their own rules.
//
// Threshold: 5 % of the step in stretches that each stand out. A wait for a GPU that works costs
// nothing by itself; one that holds the CPU for 30 % of the step is still worth a note, since
// nothing is prepared meanwhile.
const (
	waitShare = 0.05
	heldShare = 0.30
)

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
			return a.heldWhileBusy(who)
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

// heldWhileBusy notes one blocking copy that holds the CPU for long while the GPU works. What it
// costs is the little in which the GPU was done and the CPU not yet back. A wait that a program
// asks for by name, at the end of a step, is no surprise to anyone and not noted.
func (a *analysis) heldWhileBusy(who cause) *cost {
	var longest *call
	var held *thread
	for _, th := range a.threads {
		for i := range th.calls.len() {
			c := th.calls.at(i)
			if _, ok := within(a.cpuSteps, c.start); ok && c.kind == callCopy && (longest == nil || c.dur > longest.dur) {
				longest, held = c, th
			}
		}
	}
	if longest == nil || len(a.devices) == 0 || float64(longest.dur) < heldShare*float64(a.wall)/float64(len(a.steps)) {
		return nil
	}
	w := span{longest.start, longest.end()}
	o := opAt(held, longest.start)
	if o == nil || o.cause != 0 || float64(covered(a.gaps, w)) > 0.2*float64(longest.dur) {
		return nil
	}
	o.cause = who
	return &cost{ms: a.ms(float64(o.idle)), most: Note, places: []place{{w, held}}, evidence: []string{
		fmt.Sprintf("%s holds the CPU for %s ms in %s while the GPU works: nothing is lost by that alone, and nothing is prepared meanwhile",
			printable(a.names.list[longest.name].text), figure(float64(longest.dur)/1e6), shortName(a.names.list[o.name].text)),
	}}
}
