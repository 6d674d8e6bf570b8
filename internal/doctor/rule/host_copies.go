package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// hostCopies looks for a CPU job that spends its time moving tensors: contiguous() and clone()
// after transposes, conversions to and fro. Copies compute nothing.
//
// Threshold: 25 % of the step. Models copy a few percent; a quarter is a layout that the next
// operator does not like.
const hostCopyShare = 0.25

var hostCopies = Rule{
	ID: "copies",
	remedy: "Keep one layout: write the tensor the way the next operator reads it, let products take transposed views as they are, drop contiguous() where nothing needs it, " +
		"and convert types once, at the edge.",
	find: func(a *analysis.Analysis, who trace.Cause) *cost {
		if !a.OnHost() {
			return nil
		}
		c := a.NewCharge()
		var ns float64
		a.EachOp(func(_ *trace.Thread, _, step int, o *trace.Op) {
			if o.Cause == 0 && copiers[a.Names.List[o.Name].Text] {
				c.Add(o, step)
				ns += float64(o.Dur)
			}
		})
		ms := a.Ms(ns)
		if a.Share(ms) < hostCopyShare {
			return nil
		}
		c.Take(who)
		return &cost{ms: ms, places: c.Placed(), evidence: []string{
			fmt.Sprintf("%s operators per step only move tensors, %s ms: %s", phrase.PerStepCount(a.PerStep(float64(len(c.Placed())))), phrase.Figure(ms), c.TopBy(4, (*analysis.Named).OnCPU)),
			c.Where(),
		}}
	},
}

var copiers = map[string]bool{"aten::contiguous": true, "aten::clone": true, "aten::copy_": true, "aten::to": true, "aten::_to_copy": true,
	"aten::reshape": true, "aten::cat": true, "aten::stack": true, "aten::repeat": true, "aten::flatten": true}
