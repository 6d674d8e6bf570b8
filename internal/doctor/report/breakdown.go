package report

import (
	"fmt"
	"strings"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
)

// write writes the figures for people.
func write(b *analysis.Breakdown, p func(format string, args ...any)) {
	if len(b.GPUs) > 0 { // for a job without a GPU the critical path has the same figures
		p("\nThe step's time")
		for _, s := range []struct {
			what  string
			share float64
		}{{"compute", b.ComputeShare}, {"communication, exposed", b.CommExposedShare}, {"copies and memsets alone", b.CopyShare}, {"idle", b.IdleShare}, {"communication, hidden behind compute", b.CommHiddenShare}} {
			p("  %8s  %s", phrase.Percent(s.share), s.what)
		}
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
	writeMemory(b, p)
}

// writeMemory writes the allocated memory and its holders at the peak.
func writeMemory(b *analysis.Breakdown, p func(format string, args ...any)) {
	if len(b.Memory) == 0 {
		return
	}
	low, high := b.Memory[0].MB, b.Memory[0].MB
	for _, m := range b.Memory {
		low, high = min(low, m.MB), max(high, m.MB)
	}
	if b.Peak == nil {
		p("\nMemory: %.0f to %.0f MB allocated", low, high)
		return
	}
	k := b.Peak
	p("\nMemory (%s): %.0f to %.0f MB allocated. At the peak, %s ms after the first step began, it is held by", k.Device, low, high, phrase.Figure(k.MS))
	if k.BeforeMB > 0 {
		p("  %8s MB  what was there before the recording: weights, the optimizer's state", phrase.Figure(k.BeforeMB))
	}
	for _, h := range k.Holders {
		where := ""
		if h.Where != "" {
			where = ", " + h.Where
		}
		p("  %8s MB  %s (%s), %s%s", phrase.Figure(h.MB), h.What, h.Phase, phrase.Count1(h.Pieces, "piece"), where)
	}
	if k.GrowsMB > 0 {
		p("  Every step ends with more than the one before, by %s MB on average: something is kept, a loss with its graph for example", phrase.Figure(k.GrowsMB))
	}
}

// writeGraphs writes the work of replayed graphs, by the operators of their capture.
func writeGraphs(b *analysis.Breakdown, p func(format string, args ...any)) {
	for _, g := range b.Graphs {
		p("\nA graph of %s, replayed %s per step, %s ms", phrase.Count1(g.Kernels, "piece")+" of work", phrase.CountFew(g.Replays, "time"), phrase.Figure(g.MS))
		if g.Why != "" {
			p("  its operators are not known: %s", g.Why)
			continue
		}
		from := ""
		if g.Capture != "" {
			from = " in " + g.Capture
		}
		p("  the capture%s tells the operators of %s of its time", from, phrase.Percent(g.Joined))
		for _, o := range g.Operators {
			shapes := ""
			if o.Shapes != "" {
				shapes = " [" + o.Shapes + "]"
			}
			p("  %8s ms  %s%s, %s", phrase.Figure(o.MS), o.Name, shapes, phrase.PerStepCount(o.Count))
		}
		for _, m := range g.Modules {
			p("  %8s ms  in module %s", phrase.Figure(m.GPUMS), m.Name)
		}
	}
}

// writePath writes the median step's critical path from its start to its end.
func writePath(b *analysis.Breakdown, p func(format string, args ...any)) {
	if len(b.Order) == 0 {
		return
	}
	gpu := len(b.GPUs) > 0
	p("\nThe critical path of the middle step, in order")
	for _, l := range b.Order {
		line := fmt.Sprintf("  at %7s  for %7s ms  %6s  ", phrase.Figure(l.AtMS), phrase.Figure(l.MS), phrase.Percent(l.Share))
		switch {
		case l.Part == "wait" && gpu:
			line += "the GPU waits, the CPU in " + l.Waits
		case l.Part == "wait":
			line += "the main thread in " + l.Waits
		case l.Part == "communication":
			line += fmt.Sprintf("communication, %s beside it", overlapping(l))
		case gpu:
			line += fmt.Sprintf("%s: %s, the GPU works %s of it", l.Part, phrase.Count1(l.Pieces, "piece"), phrase.Percent(l.Busy))
		default:
			line += fmt.Sprintf("%s: %s", l.Part, phrase.Count1(l.Pieces, "operator"))
		}
		for i, t := range l.Top {
			if l.Part == "communication" {
				break
			}
			sep := ", "
			if i == 0 {
				sep = "; "
			}
			line += fmt.Sprintf("%s%s %s", sep, t.What, phrase.Percent(t.Share))
		}
		if l.Where != "" {
			line += ", " + l.Where
		}
		p("%s", line)
	}
}

// overlapping names the work that overlaps communication.
func overlapping(l analysis.PathLeg) string {
	if l.Pieces > 1 || len(l.Top) > 1 {
		return "next to nothing"
	}
	return "nothing"
}

// moduleLine formats one line of the tree of modules.
func moduleLine(m analysis.ModuleTime, gpu bool) string {
	line := fmt.Sprintf("  %8s ms on the CPU", phrase.Figure(m.CPUMS))
	if gpu {
		line = fmt.Sprintf("  %8s ms on the GPU  %8s ms on the CPU", phrase.Figure(m.GPUMS), phrase.Figure(m.CPUMS))
	}
	line += "  " + strings.Repeat("  ", m.Depth) + m.Name
	if m.Modules > 1 {
		line += fmt.Sprintf(", %d of them", m.Modules)
	}
	line += ", " + phrase.CountFew(m.Count, "call")
	if m.BackwardMS > 0 {
		line += fmt.Sprintf("; backward %s ms", phrase.Figure(m.BackwardMS))
	}
	if m.Longest != "" && m.LongestMS > 0 {
		line += fmt.Sprintf("; the longest %s %s ms", m.Longest, phrase.Figure(m.LongestMS))
	}
	return line
}

// bandwidth formats a rate of bytes; below 1 GB/s with two digits.
func bandwidth(gbps float64) string {
	if gbps < 1 {
		return fmt.Sprintf("%.2g GB/s", gbps)
	}
	return fmt.Sprintf("%.0f GB/s", gbps)
}

// writeRates writes the critical path, the operators' rates, the modules and the graphs.
func writeRates(b *analysis.Breakdown, p func(format string, args ...any)) {
	if len(b.Path) > 0 {
		p("\nThe critical path, per step")
		for _, x := range b.Path {
			p("  %8s ms  %6s  %s", phrase.Figure(x.MS), phrase.Percent(x.Share), x.What)
		}
	}
	writePath(b, p)
	if len(b.Roofline) > 0 {
		p("\nOperators by their shapes, per step, against the roofline")
		for _, r := range b.Roofline {
			rate := "its shapes do not tell its work"
			switch {
			case r.TFLOPS > 0:
				rate = fmt.Sprintf("%.3g TFLOP/s, %s", r.TFLOPS, bandwidth(r.GBps))
			case r.GBps > 0:
				rate = bandwidth(r.GBps)
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
			p("%s", moduleLine(m, len(b.GPUs) > 0))
		}
	}
	writeGraphs(b, p)
}
