package rule

import (
	"fmt"
	"strings"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// anomalyMode looks for torch.autograd.detect_anomaly left on. The engine then checks every
// gradient that a node returns for NaN, reads the result, and stores a Python traceback per forward
// operator.
//
// Threshold: checks for at least half of the backward's nodes, 8 per step. A program that checks
// its loss, or a few gradients, has far fewer.
const (
	anomalyChecks = 8
	anomalyShare  = 0.5
)

var anomalyMode = Rule{
	ID:     "anomaly-mode",
	remedy: "Turn torch.autograd.set_detect_anomaly off outside of debugging: it checks every gradient for NaN and records a traceback per operator.",
	find: func(a *analysis.Analysis, _ trace.Cause) *cost {
		nodes := 0
		a.EachOp(func(_ *trace.Thread, _, _ int, o *trace.Op) {
			if name := a.Names.List[o.Name].Text; strings.HasPrefix(name, trace.BackwardPrefix) && !strings.Contains(name, "AccumulateGrad") {
				nodes++
			}
		})
		checks := 0
		var ns float64
		var places []analysis.Place
		a.EachInner(func(th *trace.Thread, i *trace.Inner) {
			if a.Names.List[i.Name].Text != "aten::isnan" {
				return
			}
			if o := analysis.OpAt(th, i.Start); o == nil || !strings.HasPrefix(a.Names.List[o.Name].Text, trace.BackwardPrefix) {
				return
			}
			checks++
			// The check, and the read of its result, which takes about as long.
			ns += 2 * float64(i.Dur)
			places = append(places, analysis.Place{Span: trace.Span{Start: i.Start, End: i.End()}, Thread: th})
		})
		if a.PerStep(float64(checks)) < anomalyChecks || float64(checks) < anomalyShare*float64(nodes) {
			return nil
		}
		return &cost{ms: a.Ms(ns), places: places, evidence: []string{
			fmt.Sprintf("%s checks for NaN per step inside the backward, of %s nodes that it walks", phrase.PerStepCount(a.PerStep(float64(checks))), phrase.PerStepCount(a.PerStep(float64(nodes)))),
			fmt.Sprintf("the checks and the reads of their answers take %s ms per step; the traceback of every forward operator comes on top and shows as Python between operators", phrase.Figure(a.Ms(ns))),
		}}
	},
}
