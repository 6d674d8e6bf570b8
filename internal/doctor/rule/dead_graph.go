package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// deadGraph looks for an unused autograd graph: an evaluation without torch.no_grad(), or results
// that the loss does not depend on. Each operator then makes a node that keeps its inputs alive.
//
// no_grad saves the making of nodes and the memory. Making nodes takes about a fifth of an
// operator's CPU time, as measured on the recordings of scripts/doctor-cpu-traces and
// scripts/doctor-gpu-traces. Threshold: half of the operators that make nodes, at least 16 per
// step, and 3 % of the step. Ordinary training leaves up to 5 % of its nodes unvisited.
const (
	deadShare = 0.5
	deadOps   = 16
	nodesCost = 0.2
	deadCosts = 0.03
)

var deadGraph = Rule{
	ID: "dead-graph",
	remedy: "Put what needs no gradient under torch.no_grad() or torch.inference_mode(): evaluation, sampling, targets, a frozen network. " +
		"Where the loss was meant to use these results, it does not.",
	find: func(a *analysis.Analysis, who trace.Cause) *cost {
		g := a.Graph()
		if g == nil || g.Made == 0 || float64(len(g.Dead)) < deadShare*float64(g.Made) || a.PerStep(float64(len(g.Dead))) < deadOps {
			return nil
		}
		c := a.NewCharge()
		var ns float64
		for i, o := range g.Dead {
			if o.Cause != 0 {
				continue
			}
			c.Add(o, g.Steps[i])
			ns += nodesCost * (a.Weight(o) - float64(o.GPU)) // the kernels remain
		}
		ms := a.Ms(ns)
		if a.Share(ms) < deadCosts {
			return nil
		}
		first := fmt.Sprintf("%s operators per step make nodes of autograd's graph, and no backward is recorded at all", phrase.PerStepCount(a.PerStep(float64(g.Made))))
		if g.Walks {
			first = fmt.Sprintf("%s of the %s operators per step that make nodes of autograd's graph are never walked by a backward",
				phrase.Percent(float64(len(g.Dead))/float64(g.Made)), phrase.PerStepCount(a.PerStep(float64(g.Made))))
		}
		return &cost{ms: ms, places: c.Placed(), evidence: []string{
			first,
			fmt.Sprintf("making nodes takes about a fifth of an operator's time on the CPU, and keeps its inputs in memory: %s", c.TopBy(4, (*analysis.Named).OnCPU)),
			c.Where(),
		}}
	},
}
