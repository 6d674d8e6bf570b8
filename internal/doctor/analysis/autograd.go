package analysis

import (
	"math"
	"slices"
	"strings"

	"haul/internal/doctor/trace"
)

// Autograd numbers the nodes of its graph in the order in which a thread's forward operators make
// them, and backward operators carry the numbers. A node without a backward operator was made for
// nothing: no loss depends on it. Numbers are compared within one recording only. A node whose
// backward may be after the end of the recording proves nothing.

// Graph describes the use of the nodes that a recording's operators made.
type Graph struct {
	Made  int         // number of operators that made nodes
	Dead  []*trace.Op // operators whose nodes no backward visited
	Steps []int       // step of each operator in Dead
	Walks bool        // the recording contains a backward
}

// Graph finds the operators whose autograd nodes are unused. If the recording has a backward, only
// nodes before the last visited one count, since later nodes may still be visited. It returns nil
// if the recording cannot show it: most visited nodes were made before it began, as in a pipeline's
// schedule.
func (a *Analysis) Graph() *Graph {
	var walked []uint32
	for _, th := range a.Threads { // outside the steps too, since a backward may follow the analysed part
		for i := range th.Ops.Len() {
			if o := th.Ops.At(i); isNumber32(o.Sequence) && strings.HasPrefix(a.Names.List[o.Name].Text, trace.BackwardPrefix) {
				walked = append(walked, o.Sequence)
			}
		}
	}
	slices.Sort(walked)
	walked = slices.Compact(walked)
	g := &Graph{Walks: len(walked) > 0}
	met := 0 // visited numbers whose operator is in the recording
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

// maxNodes limits the nodes of one operator: a larger difference is another thread's counter.
const maxNodes = 4096

// isNumber32 reports whether n is a valid sequence number: not missing and not too large to store.
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

// Weight returns an operator's part of the step's time: with a GPU its idle and kernel time,
// without one the operator's own time.
func (a *Analysis) Weight(o *trace.Op) float64 {
	if len(a.Devices) == 0 {
		return float64(o.Dur)
	}
	return float64(o.Idle) + float64(o.Lead) + float64(o.GPU)
}

// EachInner visits the stored operators inside others that start inside a step.
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

// OnHost reports whether the job uses no GPU.
func (a *Analysis) OnHost() bool { return len(a.Devices) == 0 && a.Main != nil && !a.Own }
