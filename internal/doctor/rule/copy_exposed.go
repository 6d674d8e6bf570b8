package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// copyExposed looks for large exposed copies across the bus. They are page-locked, so the CPU is
// free, but kernels follow them in the same stream or wait for them. State that is offloaded to the
// host and a batch that is sent when it is needed look like this. Copies through pageable memory
// belong to pageable-copy.
//
// Threshold: 5 % of the step, as for communication.
const copyExposedShare = 0.05

var copyExposed = Rule{
	ID: "copy-exposed",
	remedy: "Copy while the GPU works: on a stream of its own, a batch or a layer ahead of its use, with non_blocking=True; and send less: " +
		"bytes or half precision that the GPU widens, or what stays on the GPU.",
	find: func(a *analysis.Analysis, _ trace.Cause) *cost {
		var list []*trace.Work
		for i := range a.GPU.Len() {
			g := a.GPU.At(i)
			if _, ok := trace.Within(a.Steps, g.Start); ok && isLargeCopy(g) && !g.Direction.Pageable() {
				list = append(list, g)
			}
		}
		bare := bareCopies(a, func(g *trace.Work) bool { return isLargeCopy(g) && !g.Direction.Pageable() })
		ms := a.Ms(float64(trace.Total(bare)))
		if len(list) == 0 || a.Share(ms) < copyExposedShare {
			return nil
		}
		var bytes, ns float64
		c := &cost{ms: ms, places: analysis.SpansOf(bare)}
		for _, g := range list {
			bytes, ns = bytes+float64(g.Bytes), ns+float64(g.Dur)
			c.issued = append(c.issued, a.IssuedAt(g)...)
		}
		c.evidence = []string{
			fmt.Sprintf("copies past 1 MB between the host and the GPU: %s per step, %s MB together, %.1f GB/s reached",
				phrase.PerStepCount(a.PerStep(float64(len(list)))), phrase.Figure(a.PerStep(bytes)/(1<<20)), bytes/max(1, ns)),
			fmt.Sprintf("they take %s ms per step, %s ms of it alone: no kernel runs beside them", phrase.Figure(a.Ms(ns)), phrase.Figure(ms)),
		}
		// Copies can overlap only with the kernels' time that is free of copies.
		if hidden := a.Ms(kernelsAlone(a, list)); hidden < ms {
			c.evidence = append(c.evidence, fmt.Sprintf("kernels run for %s ms per step without copies, so overlap wins at most that; the rest goes away only with the bytes", phrase.Figure(hidden)))
			c.remedy = sendLess
		}
		return c
	},
}

// sendLess is the remedy if the copies take longer than all kernels that they could overlap with.
const sendLess = "Send fewer bytes: keep weights and state on the GPU (quantized or sharded if they do not fit), send half precision or bytes that the GPU widens, " +
	"and work longer on what was sent: a larger batch per copy."

// kernelsAlone returns the time in ns in which kernels run and none of the copies does, mean over
// the devices.
func kernelsAlone(a *analysis.Analysis, copies []*trace.Work) float64 {
	var busy []trace.Span
	for _, g := range copies {
		busy = append(busy, trace.Span{Start: g.Start, End: g.End()})
	}
	busy = trace.Union(busy)
	var ns int64
	for _, d := range a.Devices {
		var kernels []trace.Span
		for _, i := range d.Works {
			if g := a.GPU.At(int(i)); g.Kind == trace.CatKernel {
				kernels = append(kernels, trace.Span{Start: g.Start, End: g.End()})
			}
		}
		alone, _ := trace.Without(trace.Clip(trace.Union(kernels), a.Steps), busy)
		ns += trace.Total(alone)
	}
	return float64(ns) / float64(max(1, len(a.Devices)))
}

// isLargeCopy reports whether a copy crosses the bus and its bytes outweigh its fixed cost.
func isLargeCopy(g *trace.Work) bool {
	return g.Kind == trace.CatCopy && g.Bytes >= analysis.LargeBytes && g.Direction != trace.Inside
}

// bareCopies returns the intervals of the steps in which such copies run and no kernel does, on any
// device.
func bareCopies(a *analysis.Analysis, which func(*trace.Work) bool) []trace.Span {
	var copies, kernels []trace.Span
	for i := range a.GPU.Len() {
		g := a.GPU.At(i)
		switch {
		case g.Kind == trace.CatKernel:
			kernels = append(kernels, trace.Span{Start: g.Start, End: g.End()})
		case which(g):
			copies = append(copies, trace.Span{Start: g.Start, End: g.End()})
		}
	}
	bare, _ := trace.Without(trace.Clip(trace.Union(copies), a.Steps), trace.Union(kernels))
	return bare
}
