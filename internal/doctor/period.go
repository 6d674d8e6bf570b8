package doctor

import (
	"cmp"
	"slices"
	"strings"
)

// A step is a window of time. The profiler marks it on the CPU; where the CPU runs ahead, what the
// GPU does meanwhile belongs to an earlier step, so the GPU's own windows are used instead: from
// the end of one step's last kernel to the end of the next one's. Both lists have one entry a step,
// in order, and entry i of both is the same step.

const (
	// aheadShare is how far the GPU's end of a step must lie behind the CPU's, as a share of the step,
	// for the CPU to count as ahead in it. A step that ends with a wait has none; one that ends with
	// its last launches trails by what is in the queue.
	aheadShare = 0.30
	// aheadSteps is the part of the steps in which that must be so.
	aheadSteps = 0.33
)

// setPeriod picks the windows that the figures are measured in.
func (a *analysis) setPeriod() {
	if !a.marked || a.gpu.len() == 0 {
		return
	}
	type issued struct {
		first, last int64
		stream      uint32 // of the first
		device      uint16
		n           int
	}
	by := make([]issued, len(a.cpuSteps))
	for i := range a.gpu.len() {
		g := a.gpu.at(i)
		th, at, ok := a.callOf(g)
		if !ok || g.kind != catKernel {
			continue
		}
		s, ok := within(a.cpuSteps, th.calls.at(at).start)
		if !ok {
			continue
		}
		if by[s].n == 0 || g.start < by[s].first {
			by[s].first, by[s].stream, by[s].device = g.start, g.stream, g.device
		}
		by[s].last = max(by[s].last, g.end())
		by[s].n++
	}
	behind := 0
	for i, b := range by {
		w := a.cpuSteps[i]
		if b.n == 0 || i > 0 && b.last <= by[i-1].last {
			return
		}
		if float64(b.last-w.end) > aheadShare*float64(w.end-w.start) {
			behind++
		}
	}
	if float64(behind) < aheadSteps*float64(len(by)) {
		return
	}
	windows := make([]window, len(by))
	from := a.firstOf(by[0].first, by[0].stream, by[0].device)
	for i, b := range by {
		if b.last <= from { // work of no length
			return
		}
		windows[i] = window{from, b.last}
		from = b.last
	}
	a.steps, a.ahead = windows, true
}

// firstOf is where the first step's work begins: at its first kernel, or at a copy that stands
// before it in the same stream. A copy of another stream may have been sent while work from before
// still ran.
func (a *analysis) firstOf(kernel int64, stream uint32, device uint16) int64 {
	for i := range a.gpu.len() {
		g := a.gpu.at(i)
		if g.start >= kernel {
			break
		}
		if g.stream != stream || g.device != device {
			continue
		}
		if th, at, ok := a.callOf(g); ok {
			if s, ok := within(a.cpuSteps, th.calls.at(at).start); ok && s == 0 {
				return g.start
			}
		}
	}
	return kernel
}

// leaveColdStepsOut takes the steps of a start out of the measurement where enough warm ones
// are left, and returns how many it took. Only leading steps can be cold.
func (a *analysis) leaveColdStepsOut() int {
	if !a.marked || len(a.cpuSteps) < 3 {
		return 0
	}
	length := func(w window) int64 { return w.end - w.start }
	lengths := make([]int64, len(a.cpuSteps))
	for i, w := range a.cpuSteps {
		lengths[i] = length(w)
	}
	slices.Sort(lengths)
	middle := lengths[len(lengths)/2]
	n := 0
	for n < len(a.cpuSteps)/2 {
		took := length(a.cpuSteps[n])
		if took <= coldStep*middle || took <= startStep*middle && a.coldIn(a.cpuSteps[n]) <= took/2 {
			break
		}
		a.coldest = max(a.coldest, float64(took)/float64(middle))
		n++
	}
	a.cpuSteps, a.steps = a.cpuSteps[n:], a.steps[n:]
	return n
}

const (
	// coldStep is how many times the middle step one takes that first uses of the driver make cold.
	coldStep = 3
	// startStep is from how many times on it is a start for whatever reason: torch.compile at work,
	// workers that come up, caches being filled.
	startStep = 10
)

// coldIn is the time of first uses inside a window.
func (a *analysis) coldIn(w window) int64 {
	var ns int64
	for _, th := range a.threads {
		for i := range th.calls.len() {
			if c := th.calls.at(i); c.cold {
				ns += overlap(span(w), span{c.start, c.end()})
			}
		}
	}
	return ns
}

// markCold finds the calls that a first use of the driver, a library or a kernel makes long: a
// hundred times the usual launch, and out of line with the other calls of their name. Calls that
// wait or copy are long for other reasons.
func (a *analysis) markCold() {
	var launches []float32
	byName := map[uint32][]float32{}
	visit := func(f func(c *call)) {
		for _, th := range a.threads {
			for i := range th.calls.len() {
				if c := th.calls.at(i); c.kind != callWait && c.kind != callCopy {
					f(c)
				}
			}
		}
	}
	visit(func(c *call) {
		if c.kind == callLaunch {
			launches = append(launches, c.dur)
		} else {
			byName[c.name] = append(byName[c.name], c.dur)
		}
	})
	if len(launches) == 0 {
		return
	}
	usual := median(launches)
	a.usualLaunch = usual
	own := map[uint32]float32{}
	for id, list := range byName {
		if len(list) >= 8 {
			own[id] = median(list)
		}
	}
	visit(func(c *call) {
		c.cold = c.dur >= 100*usual && c.dur > 0 && (c.kind == callLaunch || c.dur >= 20*own[c.name]) &&
			// which takes as long as its graph is large
			!strings.Contains(a.names.list[c.name].text, "GraphLaunch")
	})
}

func median[T cmp.Ordered](list []T) T {
	slices.Sort(list)
	return list[len(list)/2]
}
