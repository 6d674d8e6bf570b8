package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// launchBound looks for a GPU that waits for the CPU to issue its work: idle time while the CPU is
// inside operators or launch calls, beyond the idle time of other findings.
//
// Threshold: 10 % of the step. A step that ends with a wait loses a few percent to the start of the
// next one. Above a tenth, the CPU cannot issue work as fast as the GPU finishes it.
const launchShare = 0.10

// compiledShare is the fraction of the step in compiled code from which advice to compile is
// useless.
const compiledShare = 0.30

var launchBound = Rule{
	ID:     "launch-bound",
	remedy: "Fewer, larger kernels: batch the loop into tensor operations, fuse with torch.compile, or replay the step as a CUDA graph (mode=\"reduce-overhead\").",
	find: func(a *analysis.Analysis, who trace.Cause) *cost {
		c, ns := issuing(a)
		ms := a.Ms(ns)
		if a.Kernels == 0 || a.Share(ms) < launchShare {
			return nil
		}
		c.Take(who)
		evidence := []string{
			fmt.Sprintf("%s kernels per step, %s of them under 10 µs, %.1f µs each on average", phrase.PerStepCount(a.PerStep(float64(a.Kernels))),
				phrase.Percent(float64(a.Tiny)/float64(a.Kernels)), a.Kernel/float64(a.Kernels)/1000),
			fmt.Sprintf("the GPU waits %s ms per step while the CPU is inside operators or launch calls (beside what other findings hold); its kernels run %s ms", phrase.Figure(ms), phrase.Figure(a.Ms(a.Kernel))),
		}
		most := "most in "
		if a.Main != nil && 2*a.LooseLaunches >= ns {
			evidence = append(evidence, fmt.Sprintf("%s ms of it outside any operator: launches of graphs or of compiled code", phrase.Figure(a.Ms(a.LooseLaunches))))
			most = "and in "
		}
		if !c.Empty() {
			evidence = append(evidence, most+c.TopBy(4, (*analysis.Named).Inside))
		}
		if between := a.Ms(a.Idle[analysis.IdleBetween]); a.Share(between) > 0.05 {
			evidence = append(evidence, fmt.Sprintf("%s ms more is Python between operators: fewer operators save that too", phrase.Figure(between)))
		}
		evidence = append(evidence, optimizerHints(a)...)
		if hint := batchHint(a); hint != "" {
			evidence = append(evidence, hint)
		}
		out := &cost{ms: ms, places: c.Placed(), evidence: append(evidence, c.Where())}
		if held, by := heldByBusyGPU(a); held >= ns {
			out.evidence = append(out.evidence, fmt.Sprintf("the CPU stands still for %s ms per step itself, in waits for a GPU that works "+
				"(most in %s): without them it would run ahead, and issue this work while the GPU is busy", phrase.Figure(a.Ms(held)), by))
			out.remedy = waitLess
		}
		switch {
		case a.Format == trace.FormatJAX:
			out.remedy = "Fewer, larger programs: put the whole step under one jax.jit, loops into lax.scan, and block on the result once, at the end."
		case out.remedy == "" && float64(trace.Total(trace.Clip(a.Compiled, a.CPUSteps))) >= compiledShare*float64(a.Wall):
			out.remedy = "Part of the step is compiled already: mode=\"reduce-overhead\" replays it as a CUDA graph. Compile the rest too, without graph breaks, " +
				"and batch loops into tensor operations."
		}
		return out
	},
}

// waitLess is the remedy if the CPU has the time to run ahead but waits are in its way.
const waitLess = "Wait less, so that the CPU can run ahead: read the loss and other values every few steps or a step late " +
	"(.item(), .cpu(), a mask as an index and synchronize() all wait); where a value is needed at once, fewer and larger kernels (torch.compile, a CUDA graph) shorten what follows."

// heldByBusyGPU returns the time that the launching threads spend in waits or blocking copies while
// the GPU works, and the main reason. If it is longer than the time that the GPU waits for the CPU,
// the step would be shorter by all of the latter without these waits.
func heldByBusyGPU(a *analysis.Analysis) (ns float64, by string) {
	where := map[string]float64{}
	for _, th := range a.Threads {
		if th.Launches == 0 {
			continue
		}
		for i := range th.Calls.Len() {
			c := th.Calls.At(i)
			if _, ok := trace.Within(a.CPUSteps, c.Start); !ok || c.Kind != trace.CallWait && (c.Kind != trace.CallCopy || c.Dur < analysis.LongTimes*a.UsualLaunch) {
				continue
			}
			s := trace.Span{Start: c.Start, End: c.End()}
			held := float64(s.End - s.Start - trace.Covered(a.Gaps, s))
			ns += held
			name := a.Names.List[c.Name].Text
			if o := analysis.OpAt(th, c.Start); o != nil {
				name = a.Names.List[o.Name].Text
			}
			where[name] += held
		}
	}
	most := 0.0
	for name, held := range where {
		if held > most || held == most && name < by {
			most, by = held, name
		}
	}
	return ns, trace.ShortName(by)
}

// issuing charges the free operators with the idle time inside them. It returns it together with
// the idle time of launches outside any operator.
func issuing(a *analysis.Analysis) (*analysis.Charge, float64) {
	c := a.NewCharge()
	a.EachOp(func(_ *trace.Thread, _, step int, o *trace.Op) {
		if o.Cause == 0 && o.Idle > 0 {
			c.Add(o, step)
		}
	})
	for _, s := range a.Loose {
		if step, ok := trace.Within(a.CPUSteps, s.Start); ok {
			c.Place(s.Start, step, float64(s.End-s.Start))
		}
	}
	return c, c.Own + a.LooseLaunches
}
