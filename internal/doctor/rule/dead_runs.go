package rule

import (
	"fmt"
	"strings"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// In a network most operators have parameters, and equal layers repeat with other weights, so
// repetition alone proves nothing. Autograd does: if the same operators with the same shapes run
// several times in a step, and the backward visits only one of these runs, no loss depends on the
// others. Sampling is excluded, because a decoder's steps repeat and their results are used.
//
// Threshold: half of the operators that make nodes are never visited although later ones are, each
// in a run that occurs three times, and they take 5 % of the step.

const (
	repeatShare = 0.05
	minRepeats  = 3
)

// deadRuns finds the operators of a network whose repeated runs are unused.
func deadRuns(a *analysis.Analysis, who trace.Cause) *cost {
	g := a.Graph()
	if g == nil || !g.Walks || float64(len(g.Dead)) < deadShare*float64(g.Made) || a.PerStep(float64(len(g.Dead))) < deadOps {
		return nil
	}
	type key struct {
		step         int
		name, inputs uint32
	}
	times := map[key]int{}
	for i, o := range g.Dead {
		if draws(a.Names.List[o.Name].Text) {
			return nil
		}
		times[key{g.Steps[i], o.Name, o.Inputs}]++
	}
	c := a.NewCharge()
	var ns float64
	least := 0
	for i, o := range g.Dead {
		n := times[key{g.Steps[i], o.Name, o.Inputs}]
		if n+1 < minRepeats || o.Cause != 0 {
			continue
		}
		if least == 0 || n < least {
			least = n
		}
		ns += a.Weight(o)
		c.Add(o, g.Steps[i])
	}
	ms := a.Ms(min(ns, float64(a.Wall)))
	if a.Share(ms) < repeatShare {
		return nil
	}
	c.Take(who)
	return &cost{ms: ms, places: c.Placed(), remedy: "Run the network once per input and use the result wherever it is needed; where several runs were meant to differ, or to reach the loss, they do not.",
		evidence: []string{
			fmt.Sprintf("%s of the operators that make nodes of autograd's graph are never walked by the backward, though later ones are: their results reach no loss",
				phrase.Percent(float64(len(g.Dead))/float64(g.Made))),
			fmt.Sprintf("they are the same operators on the same shapes, %d times and more per step beside the run that is used: %s", least, c.TopBy(4, (*analysis.Named).OnCPU)),
			c.Where(),
		}}
}

// draws reports whether an operator makes random choices, as decoding does.
func draws(name string) bool {
	for _, w := range []string{"multinomial", "bernoulli", "argmax", "topk", "rand", "exponential"} {
		if strings.Contains(name, w) {
			return true
		}
	}
	return false
}
