package analysis

import "haul/internal/doctor/trace"

// Kernels on different streams may run concurrently. Making a kernel faster gains only the time in
// which no other kernel runs: that is its part of the critical path.

// Alone sums the time of a set of kernels inside the steps.
type Alone struct {
	N     int
	Total float64 // ns, sum of the kernels' durations
	NS    float64 // ns in which no other kernel runs, mean over the devices
}

// Part returns the fraction of the kernels' time that is on the critical path.
func (x Alone) Part() float64 {
	if x.Total == 0 {
		return 0
	}
	return min(1, x.NS/x.Total)
}

// Alone sums the kernels that is selects, without communication, and calls visit with each.
func (a *Analysis) Alone(is func(g *trace.Work) bool, visit func(g *trace.Work)) Alone {
	var out Alone
	for _, d := range a.Devices {
		var picked, others []trace.Span
		for _, i := range d.Works {
			g := a.GPU.At(int(i))
			if g.Kind != trace.CatKernel {
				continue
			}
			s := trace.Span{Start: g.Start, End: g.End()}
			if g.Comm || !is(g) {
				others = append(others, s)
				continue
			}
			picked = append(picked, s)
			if _, ok := trace.Within(a.Steps, g.Start); ok {
				out.N++
				out.Total += float64(g.Dur)
				visit(g)
			}
		}
		rest, _ := trace.Without(trace.Clip(trace.Union(picked), a.Steps), trace.Union(others))
		out.NS += float64(trace.Total(rest)) / float64(len(a.Devices))
	}
	return out
}
