package analysis

import (
	"math"
	"slices"
	"strings"

	"haul/internal/doctor/trace"
)

// Autograd numbers the nodes of its graph in the order in which forward operators make them,
// thread by thread, and the backward names the numbers that it visits. A node that is never
// visited was made for nothing: its result reaches no loss. Numbers are compared within one
// recording only, so a node whose backward may come after the end of the recording proves
// nothing.

// Graph is what became of the nodes that a recording's operators made.
type Graph struct {
	Made  int         // operators that made nodes
	Dead  []*trace.Op // of those, the ones whose nodes no backward walked
	Steps []int       // of each dead one
	Walks bool        // there is a backward in the recording
}

// Graph finds the operators whose part of autograd's graph is thrown away. With a backward in the
// recording only nodes before the last walked one count; the rest may still be walked. It returns
// nil where the recording cannot tell: most of what is walked was made before it began, as in a
// pipeline's schedule.
func (a *Analysis) Graph() *Graph {
	var walked []uint32
	for _, th := range a.Threads { // outside the steps too: a backward may lie behind the part that is judged
		for i := range th.Ops.Len() {
			if o := th.Ops.At(i); isNumber32(o.Sequence) && strings.HasPrefix(a.Names.List[o.Name].Text, trace.BackwardPrefix) {
				walked = append(walked, o.Sequence)
			}
		}
	}
	slices.Sort(walked)
	walked = slices.Compact(walked)
	g := &Graph{Walks: len(walked) > 0}
	met := 0 // walked numbers whose operator is in the recording
	for _, th := range a.Threads {
		var before *trace.Op
		beforeStep := 0
		a.eachOn(th, func(step int, o *trace.Op) {
			if !isNumber32(o.Sequence) || strings.HasPrefix(a.Names.List[o.Name].Text, trace.BackwardPrefix) {
				return
			}
			if f := before; f != nil && o.Sequence > f.Sequence && o.Sequence-f.Sequence < maxNodes {
				g.Made++
				from, _ := slices.BinarySearch(walked, f.Sequence)
				to, _ := slices.BinarySearch(walked, o.Sequence)
				met += to - from
				if to == from && (!g.Walks || f.Sequence < walked[len(walked)-1]) {
					g.Dead, g.Steps = append(g.Dead, f), append(g.Steps, beforeStep)
				}
			}
			before, beforeStep = o, step
		})
	}
	if g.Walks && 2*met < len(walked) {
		return nil
	}
	return g
}

// maxNodes bounds the nodes that one operator makes: a larger step is another thread's counter.
const maxNodes = 4096

// isNumber32 tells a sequence number from none and from one that was too large to be kept.
func isNumber32(n uint32) bool { return n != 0 && n != math.MaxUint32 }

// eachOn visits the operators of one thread that start inside a step.
func (a *Analysis) eachOn(th *trace.Thread, visit func(step int, o *trace.Op)) {
	step := 0
	for i := range th.Ops.Len() {
		o := th.Ops.At(i)
		for step < len(a.CPUSteps) && a.CPUSteps[step].End <= o.Start {
			step++
		}
		if step < len(a.CPUSteps) && a.CPUSteps[step].Start <= o.Start {
			visit(step, o)
		}
	}
}

// Weight is the time that an operator holds of the step: with a GPU what the card waits for it and
// works for it, without one its own time.
func (a *Analysis) Weight(o *trace.Op) float64 {
	if len(a.Devices) == 0 {
		return float64(o.Dur)
	}
	return float64(o.Idle) + float64(o.Lead) + float64(o.GPU)
}

// EachInner visits the operators inside others that are kept and start inside a step.
func (a *Analysis) EachInner(visit func(th *trace.Thread, i *trace.Inner)) {
	for _, th := range a.Threads {
		for k := range th.Inner.Len() {
			i := th.Inner.At(k)
			if _, ok := trace.Within(a.CPUSteps, i.Start); ok {
				visit(th, i)
			}
		}
	}
}

// OnHost tells a job without a GPU.
func (a *Analysis) OnHost() bool { return len(a.Devices) == 0 && a.Main != nil && !a.Own }
