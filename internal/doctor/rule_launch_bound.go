package doctor

import "fmt"

// launchBound looks for a GPU that waits for the CPU to issue its work: idle time while the CPU is
// inside operators or launch calls, past what other findings hold.
//
// Threshold: 10 % of the step. A step that ends with a wait loses a few percent to the start of the
// next one; past a tenth the CPU cannot hand work over as fast as the GPU finishes it.
const launchShare = 0.10

// compiledShare is the part of the step in compiled code from which the advice to compile is idle.
const compiledShare = 0.30

var launchBound = rule{
	id:     "launch-bound",
	remedy: "Fewer, larger kernels: batch the loop into tensor operations, fuse with torch.compile, or replay the step as a CUDA graph (mode=\"reduce-overhead\").",
	find: func(a *analysis, who cause) *cost {
		c, ns := a.issuing()
		ms := a.ms(ns)
		if a.kernels == 0 || a.share(ms) < launchShare {
			return nil
		}
		c.take(who)
		evidence := []string{
			fmt.Sprintf("%s kernels per step, %s of them under 10 µs, %.1f µs each on average", perStepCount(a.perStep(float64(a.kernels))),
				percent(float64(a.tiny)/float64(a.kernels)), a.kernel/float64(a.kernels)/1000),
			fmt.Sprintf("the GPU waits %s ms per step while the CPU is inside operators or launch calls (beside what other findings hold); its kernels run %s ms", figure(ms), figure(a.ms(a.kernel))),
		}
		most := "most in "
		if a.main != nil && 2*a.looseLaunches >= ns {
			evidence = append(evidence, fmt.Sprintf("%s ms of it outside any operator: launches of graphs or of compiled code", figure(a.ms(a.looseLaunches))))
			most = "and in "
		}
		if len(c.byName) > 0 {
			evidence = append(evidence, most+c.topBy(4, (*named).inside))
		}
		if between := a.ms(a.idle[idleBetween]); a.share(between) > 0.05 {
			evidence = append(evidence, fmt.Sprintf("%s ms more is Python between operators: fewer operators save that too", figure(between)))
		}
		out := &cost{ms: ms, places: c.placed(), evidence: append(evidence, c.where())}
		if held, by := a.heldByBusyGPU(); held >= ns {
			out.evidence = append(out.evidence, fmt.Sprintf("the CPU stands still for %s ms per step itself, in waits for a GPU that works "+
				"(most in %s): without them it would run ahead, and issue this work while the GPU is busy", figure(a.ms(held)), by))
			out.remedy = waitLess
		}
		switch {
		case a.format == formatJAX:
			out.remedy = "Fewer, larger programs: put the whole step under one jax.jit, loops into lax.scan, and block on the result once, at the end."
		case out.remedy == "" && float64(total(clip(a.compiled, a.cpuSteps))) >= compiledShare*float64(a.wall):
			out.remedy = "Part of the step is compiled already: mode=\"reduce-overhead\" replays it as a CUDA graph. Compile the rest too, without graph breaks, " +
				"and batch loops into tensor operations."
		}
		return out
	},
}

// waitLess is the remedy where the CPU has the time to run ahead and is kept from it.
const waitLess = "Wait less, so that the CPU can run ahead: read the loss and other values every few steps or a step late " +
	"(.item(), .cpu(), a mask as an index and synchronize() all wait); where a value is needed at once, fewer and larger kernels (torch.compile, a CUDA graph) shorten what follows."

// heldByBusyGPU is how long the launching threads stand in waits, or in copies that block, while
// the GPU works, and what holds them for most of it. Where that is longer than the GPU waits for
// the CPU, the step would be shorter by all of the latter if nobody waited.
func (a *analysis) heldByBusyGPU() (ns float64, by string) {
	where := map[string]float64{}
	for _, th := range a.threads {
		if th.launches == 0 {
			continue
		}
		for i := range th.calls.len() {
			c := th.calls.at(i)
			if _, ok := within(a.cpuSteps, c.start); !ok || c.kind != callWait && (c.kind != callCopy || c.dur < longTimes*a.usualLaunch) {
				continue
			}
			s := span{c.start, c.end()}
			held := float64(s.end - s.start - covered(a.gaps, s))
			ns += held
			name := a.names.list[c.name].text
			if o := opAt(th, c.start); o != nil {
				name = a.names.list[o.name].text
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
	return ns, shortName(by)
}

// issuing charges the free operators with the idle time inside them, and returns it with that of
// the launches outside any operator.
func (a *analysis) issuing() (*charge, float64) {
	c := a.newCharge()
	a.eachOp(func(_ *thread, _, step int, o *op) {
		if o.cause == 0 && o.idle > 0 {
			c.add(o, step)
		}
	})
	for _, s := range a.loose {
		if step, ok := within(a.cpuSteps, s.start); ok {
			c.place(s.start, step, float64(s.end-s.start))
		}
	}
	return c, c.own + a.looseLaunches
}
