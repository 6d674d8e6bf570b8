package analysis

import (
	"slices"
	"strings"

	"haul/internal/doctor/trace"
)

// A step is a window of time. The profiler marks it on the CPU. If the CPU runs ahead, the GPU's
// work in that window belongs to an earlier step. Then the GPU's windows are used: from the end of
// one step's last kernel to the end of the next one's. Both lists have one entry per step, in
// order, and entry i of both is the same step.

const (
	// aheadShare is the delay of the GPU's end of a step behind the CPU's, as a fraction of the
	// step, from which the CPU is ahead in the step. A step that ends with a wait has no delay. A
	// step that ends with its last launches has the delay of the queue.
	aheadShare = 0.30
	// aheadSteps is the fraction of the steps in which the CPU must be ahead.
	aheadSteps = 0.33
)

// setPeriod determines the windows that the figures are computed in.
func (a *Analysis) setPeriod() {
	if !a.Marked || a.GPU.Len() == 0 {
		return
	}
	type issued struct {
		first, last int64
		stream      uint32 // of the first kernel
		device      uint16
		n           int
	}
	by := make([]issued, len(a.CPUSteps))
	for i := range a.GPU.Len() {
		g := a.GPU.At(i)
		th, at, ok := a.callOf(g)
		if !ok || g.Kind != trace.CatKernel {
			continue
		}
		s, ok := trace.Within(a.CPUSteps, th.Calls.At(at).Start)
		if !ok {
			continue
		}
		if by[s].n == 0 || g.Start < by[s].first {
			by[s].first, by[s].stream, by[s].device = g.Start, g.Stream, g.Device
		}
		by[s].last = max(by[s].last, g.End())
		by[s].n++
	}
	behind := 0
	for i, b := range by {
		w := a.CPUSteps[i]
		if b.n == 0 || i > 0 && b.last <= by[i-1].last {
			return
		}
		if float64(b.last-w.End) > aheadShare*float64(w.End-w.Start) {
			behind++
		}
	}
	if float64(behind) < aheadSteps*float64(len(by)) {
		return
	}
	windows := make([]trace.Window, len(by))
	from := a.firstOf(by[0].first, by[0].stream, by[0].device)
	if before := a.endBefore(a.CPUSteps[0].Start, by[0].device); before > from && before < by[0].last {
		from = before // a kernel of another stream may start during the previous step
	}
	for i, b := range by {
		if b.last <= from { // work of zero length
			return
		}
		windows[i] = trace.Window{Start: from, End: b.last}
		from = b.last
	}
	a.Steps, a.Ahead = windows, true
}

// endBefore returns the end of the last kernel on a device that was issued before a time.
func (a *Analysis) endBefore(at int64, device uint16) int64 {
	var end int64
	for i := range a.GPU.Len() {
		g := a.GPU.At(i)
		if g.Device != device || g.Kind != trace.CatKernel {
			continue
		}
		if th, k, ok := a.callOf(g); ok && th.Calls.At(k).Start < at {
			end = max(end, g.End())
		}
	}
	return end
}

// firstOf returns the start of the first step's work: its first kernel, or a copy before it in the
// same stream. A copy in another stream may belong to work from before the step.
func (a *Analysis) firstOf(kernel int64, stream uint32, device uint16) int64 {
	for i := range a.GPU.Len() {
		g := a.GPU.At(i)
		if g.Start >= kernel {
			break
		}
		if g.Stream != stream || g.Device != device {
			continue
		}
		if th, at, ok := a.callOf(g); ok {
			if s, ok := trace.Within(a.CPUSteps, th.Calls.At(at).Start); ok && s == 0 {
				return g.Start
			}
		}
	}
	return kernel
}

// leaveColdStepsOut removes leading warm-up steps from the measurement if enough steps remain. It
// returns their number.
func (a *Analysis) leaveColdStepsOut() int {
	if !a.Marked || len(a.CPUSteps) < 3 {
		return 0
	}
	length := func(w trace.Window) int64 { return w.End - w.Start }
	lengths := make([]int64, len(a.CPUSteps))
	for i, w := range a.CPUSteps {
		lengths[i] = length(w)
	}
	slices.Sort(lengths)
	middle := lengths[len(lengths)/2]
	n := 0
	for n < len(a.CPUSteps)/2 {
		took := length(a.CPUSteps[n])
		if took <= coldStep*middle || took <= startStep*middle && a.coldIn(a.CPUSteps[n]) <= took/2 {
			break
		}
		a.Coldest = max(a.Coldest, float64(took)/float64(middle))
		n++
	}
	a.CPUSteps, a.Steps = a.CPUSteps[n:], a.Steps[n:]
	return n
}

const (
	// coldStep is the length in median steps from which a step with first uses of the driver is
	// warm-up.
	coldStep = 3
	// startStep is the length in median steps from which a leading step is warm-up for any reason:
	// torch.compile compiles, workers start, caches are filled.
	startStep = 10
)

// edgeShare is the fraction of a single step from which its edges are removed.
const edgeShare = 0.05

// cutEdges removes the edges of a single step. The host's activity before the first GPU work and
// after the last happens once per recording. It does not show whether the next step would wait for
// it, since steps of a loop overlap. With several steps the edges are inside the loop. A loader's
// fetch remains in the step. So does the front edge if the first work was issued long before it
// ran, after work that was not recorded.
func (a *Analysis) cutEdges() {
	if len(a.Steps) != 1 || a.GPU.Len() == 0 {
		return
	}
	whole := trace.Span(a.Steps[0])
	first, last := whole.End, whole.Start
	var begins *trace.Work
	for i := range a.GPU.Len() {
		if g := a.GPU.At(i); g.Start < whole.End && g.End() > whole.Start {
			if at := max(whole.Start, g.Start); begins == nil || at < first {
				first, begins = at, g
			}
			last = max(last, min(whole.End, g.End()))
		}
	}
	if begins == nil || last <= first { // no work, or work of zero length
		return
	}
	least := int64(edgeShare * float64(whole.End-whole.Start))
	late := false
	if th, i, ok := a.callOf(begins); ok {
		c := th.Calls.At(i)
		issued := c.End()
		if c.Kind == trace.CallCopy {
			issued = c.Start
		}
		late = first-issued >= least
	}
	for _, s := range a.Loader {
		if s.End > whole.Start && s.Start < first {
			first = max(whole.Start, s.Start)
		}
	}
	if first-whole.Start >= least && !late {
		a.Before = trace.Span{Start: whole.Start, End: first}
		a.Lead = float64(a.coldIn(trace.Window(a.Before)))
		a.Steps[0].Start = first
	}
	if whole.End-last >= least {
		a.After = trace.Span{Start: last, End: whole.End}
		a.Steps[0].End = last
	}
}

// coldIn returns the time of first uses inside a window.
func (a *Analysis) coldIn(w trace.Window) int64 {
	var ns int64
	for _, th := range a.Threads {
		for i := range th.Calls.Len() {
			if c := th.Calls.At(i); c.Cold {
				ns += trace.Overlap(trace.Span(w), trace.Span{Start: c.Start, End: c.End()})
			}
		}
	}
	return ns
}

// markCold finds the calls that are long because of a first use of the driver, a library or a
// kernel: a hundred times the usual launch, and much longer than other calls of the same name.
// Waits and copies are long for other reasons.
func (a *Analysis) markCold() {
	var launches []float32
	byName := map[uint32][]float32{}
	visit := func(f func(c *trace.Call)) {
		for _, th := range a.Threads {
			for i := range th.Calls.Len() {
				if c := th.Calls.At(i); c.Kind != trace.CallWait && c.Kind != trace.CallCopy {
					f(c)
				}
			}
		}
	}
	visit(func(c *trace.Call) {
		if c.Kind == trace.CallLaunch {
			launches = append(launches, c.Dur)
		} else {
			byName[c.Name] = append(byName[c.Name], c.Dur)
		}
	})
	if len(launches) == 0 {
		return
	}
	usual := Median(launches)
	a.UsualLaunch = usual
	own := map[uint32]float32{}
	for id, list := range byName {
		if len(list) >= 8 {
			own[id] = Median(list)
		}
	}
	visit(func(c *trace.Call) {
		c.Cold = c.Dur >= 100*usual && c.Dur > 0 && (c.Kind == trace.CallLaunch || c.Dur >= 20*own[c.Name]) &&
			// its duration depends on the size of the graph
			!strings.Contains(a.Names.List[c.Name].Text, "GraphLaunch")
	})
}
