package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// longWait looks for single waits or blocking copies that block the CPU for a large part of a step
// while the GPU is idle: a read of a few bytes that is queued after work of another stream, another
// process or another rank. Many short ones have their own rules, the storms.
//
// Threshold: 5 % of the step, in intervals that are each long. A wait for a GPU that works costs
// nothing. If it blocks the CPU for 30 % of the step it is a note, since nothing is prepared
// meanwhile.
const (
	waitShare = 0.05
	heldShare = 0.30
)

var longWait = Rule{
	ID:     "long-wait",
	remedy: "Find what the wait stands for: read the value later or not at all (non_blocking=True and an event), keep it on the GPU, or move what it waits for out of the way.",
	find: func(a *analysis.Analysis, who trace.Cause) *cost {
		var ns float64
		var list []analysis.HeldCall
		for _, h := range a.Long {
			if h.Op == nil || h.Op.Cause == 0 {
				ns += h.Idle
				list = append(list, h)
			}
		}
		ms := a.Ms(ns)
		if a.Share(ms) < waitShare {
			return heldWhileBusy(a, who)
		}
		c := &cost{ms: ms}
		for _, h := range list {
			if h.Op != nil {
				h.Op.Cause = who
				h.Op.Idle = max(0, h.Op.Idle-float32(h.Idle))
			}
			c.places = append(c.places, analysis.Place{Span: trace.Span{Start: h.Call.Start, End: h.Call.End()}, Thread: h.Thread})
		}
		h := list[0]
		held := fmt.Sprintf("the longest, %s, holds the CPU for %s ms", phrase.Printable(a.Names.List[h.Call.Name].Text), phrase.Figure(float64(h.Call.Dur)/1e6))
		if h.Op != nil {
			held += " in " + trace.ShortName(a.Names.List[h.Op.Name].Text)
		}
		c.evidence = []string{
			fmt.Sprintf("%s per step, %s ms in which the GPU does nothing that was recorded", phrase.CountFew(a.PerStep(float64(len(list))), "long wait"), phrase.Figure(ms)),
			held,
		}
		return c
	},
}

// heldWhileBusy notes one blocking copy that blocks the CPU for long while the GPU works. Its cost
// is the short time between the GPU's end and the CPU's return. An explicit wait at the end of a
// step is intended and not noted.
func heldWhileBusy(a *analysis.Analysis, who trace.Cause) *cost {
	var longest *trace.Call
	var held *trace.Thread
	for _, th := range a.Threads {
		for i := range th.Calls.Len() {
			c := th.Calls.At(i)
			if _, ok := trace.Within(a.CPUSteps, c.Start); ok && c.Kind == trace.CallCopy && (longest == nil || c.Dur > longest.Dur) {
				longest, held = c, th
			}
		}
	}
	if longest == nil || len(a.Devices) == 0 || float64(longest.Dur) < heldShare*float64(a.Wall)/float64(len(a.Steps)) {
		return nil
	}
	w := trace.Span{Start: longest.Start, End: longest.End()}
	o := analysis.OpAt(held, longest.Start)
	if o == nil || o.Cause != 0 || float64(trace.Covered(a.Gaps, w)) > 0.2*float64(longest.Dur) {
		return nil
	}
	o.Cause = who
	return &cost{ms: a.Ms(float64(o.Idle)), most: Note, places: []analysis.Place{{Span: w, Thread: held}}, evidence: []string{
		fmt.Sprintf("%s holds the CPU for %s ms in %s while the GPU works: nothing is lost by that alone, and nothing is prepared meanwhile",
			phrase.Printable(a.Names.List[longest.Name].Text), phrase.Figure(float64(longest.Dur)/1e6), trace.ShortName(a.Names.List[o.Name].Text)),
	}}
}
