package analysis

import (
	"cmp"
	"slices"
	"strings"

	"haul/internal/doctor/trace"
)

// A trace without ProfilerStep still shows its iterations: an optimizer's step ends each, a data
// loader's fetch or a call of one jitted function begins it. Where these come often enough they are
// the steps, and cold ones at the start can be left out. The stretch before the first mark is a
// start too; where it is most of the recording, the recording is of a start, and stays whole.

const (
	minIterations = 4
	// startShare is the part of a recording before its first iteration has ended from which it shows a
	// start.
	startShare = 0.4
)

// iterations are the windows between marks, and what the marks are; none where too few are found.
func (a *Analysis) iterations(whole trace.Window) ([]trace.Window, string) {
	type candidate struct {
		by    string
		marks []int64
		first int // the mark that ends the first iteration
	}
	var updates, fetches []int64
	for _, u := range a.Updates {
		updates = append(updates, u.End)
	}
	for _, f := range a.Fetches {
		if f.Thread.Launches > 0 || f.Thread.Ops.Len() > 0 {
			fetches = append(fetches, f.Start)
		}
	}
	for _, c := range []candidate{{"Optimizer.step", updates, 0}, {"the data loader's fetch", fetches, 1}, {"the jitted function", a.jitted(), 1}} {
		slices.Sort(c.marks)
		if len(c.marks) < minIterations {
			continue
		}
		if float64(c.marks[c.first]-whole.Start) > startShare*float64(whole.End-whole.Start) {
			return nil, ""
		}
		var out []trace.Window
		for i := 1; i < len(c.marks); i++ {
			if c.marks[i] > c.marks[i-1] {
				out = append(out, trace.Window{Start: c.marks[i-1], End: c.marks[i]})
			}
		}
		if len(out) >= minIterations-1 {
			return out, c.by
		}
	}
	return nil, ""
}

// jitted is when the function that JAX calls most often is called, on the thread that calls it.
func (a *Analysis) jitted() []int64 {
	type key struct {
		thread int
		name   uint32
	}
	by := map[key][]int64{}
	for t, th := range a.Threads {
		for i := range th.Ops.Len() {
			if o := th.Ops.At(i); strings.HasPrefix(a.Names.List[o.Name].Text, "PjitFunction(") {
				k := key{t, o.Name}
				by[k] = append(by[k], o.Start)
			}
		}
	}
	var best key
	for k, list := range by {
		if c := cmp.Or(cmp.Compare(len(list), len(by[best])), -cmp.Compare(a.Names.List[k.name].Text, a.Names.List[best.name].Text)); c > 0 {
			best = k
		}
	}
	return by[best]
}
