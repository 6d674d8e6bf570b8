package report

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
)

// write prints the numbers for a person.
func write(b *analysis.Breakdown, p func(format string, args ...any)) {
	p("\nThe step's time")
	for _, s := range []struct {
		what  string
		share float64
	}{{"compute", b.ComputeShare}, {"communication, exposed", b.CommExposedShare}, {"copies and memsets alone", b.CopyShare}, {"idle", b.IdleShare}, {"communication, hidden behind compute", b.CommHiddenShare}} {
		p("  %8s  %s", phrase.Percent(s.share), s.what)
	}
	if len(b.Families) > 0 {
		p("\nKernels by what they compute, per step")
		for _, f := range b.Families {
			p("  %8s ms  %6s  %s, %s", phrase.Figure(f.MS), phrase.Percent(f.Share), f.Family, phrase.PerStepCount(f.Count))
		}
	}
	if len(b.Collectives) > 0 {
		p("\nCollectives, per step")
		for _, c := range b.Collectives {
			group := ""
			if c.Group != "" {
				group = " in group " + c.Group
			}
			p("  %8s ms  %s%s, %s, %s ms exposed, %s MB, %.3g GB/s on the bus", phrase.Figure(c.MS), c.Kind, group, phrase.PerStepCount(c.Count), phrase.Figure(c.ExposedMS), phrase.Figure(c.MB), c.BusGBps)
		}
	}
	if len(b.Copies) > 0 {
		p("\nCopies, per step")
		for _, c := range b.Copies {
			p("  %8s ms  %s, %s, %s MB at %.3g GB/s", phrase.Figure(c.MS), c.Direction, phrase.PerStepCount(c.Count), phrase.Figure(c.MB), c.GBps)
		}
	}
	if len(b.GPUs) > 1 {
		p("\nGPUs")
		for _, g := range b.GPUs {
			p("  %3d  busy %s, %s, %s, the widest %s ms", g.Device, phrase.Percent(g.BusyShare), phrase.Count1(g.Kernels, "kernel"), phrase.Count1(g.Gaps, "gap"), phrase.Figure(g.WidestMS))
		}
	}
	if len(b.GPUs) > 0 {
		p("\nQueue: %.1f pieces of work issued and unfinished at a launch on average; %s ms from issue to start (median)", b.QueueDepth, phrase.Figure(b.QueueMS))
	}
	if n := len(b.Memory); n > 0 {
		low, high := b.Memory[0].MB, b.Memory[0].MB
		for _, m := range b.Memory {
			low, high = min(low, m.MB), max(high, m.MB)
		}
		p("Memory on the device: %s to %s MB allocated", fmt.Sprintf("%.0f", low), fmt.Sprintf("%.0f", high))
	}
}

// writeRates prints the critical path, the operators' rates and the modules.
func writeRates(b *analysis.Breakdown, p func(format string, args ...any)) {
	if len(b.Path) > 0 {
		p("\nThe critical path, per step")
		for _, x := range b.Path {
			p("  %8s ms  %6s  %s", phrase.Figure(x.MS), phrase.Percent(x.Share), x.What)
		}
	}
	if len(b.Roofline) > 0 {
		p("\nOperators by their shapes, per step, against the roofline")
		for _, r := range b.Roofline {
			rate := fmt.Sprintf("%.3g GB/s", r.GBps)
			if r.TFLOPS > 0 {
				rate = fmt.Sprintf("%.3g TFLOP/s, ", r.TFLOPS) + rate
			}
			if r.Bound != "" {
				rate += fmt.Sprintf(", %s of the roof (%s)", phrase.Percent(r.Share), r.Bound)
			}
			p("  %8s ms  %s [%s], %s: %s", phrase.Figure(r.MS), r.Name, r.Shapes, phrase.PerStepCount(r.Count), rate)
		}
	}
	if len(b.Modules) > 0 {
		p("\nModules and the program's own ranges, per step")
		for _, m := range b.Modules {
			p("  %8s ms on the GPU  %8s ms on the CPU  %s, %s", phrase.Figure(m.GPUMS), phrase.Figure(m.CPUMS), m.Name, phrase.PerStepCount(m.Count))
		}
	}
}
