package analysis

import (
	"cmp"
	"slices"
	"strings"

	"haul/internal/doctor/trace"
)

// A trace without ProfilerStep still shows its iterations: an optimizer's step ends one, a data
// loader's fetch or a call of one jitted function begins one. If there are enough of them they are
// the steps, and warm-up steps can be left out. The interval before the first mark is warm-up too.
// If it is most of the recording, the recording is of a start, and is analysed whole.

const (
	minIterations = 4
	// startShare is the fraction of a recording before the end of its first iteration from which
	// the recording shows a start.
	startShare = 0.4
)

// iterations returns the windows between marks and the name of the marks, or nil if there are too
// few.
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

// jitted returns the times of the calls of the function that JAX calls most often, on their thread.
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
