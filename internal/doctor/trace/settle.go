package trace

import (
	"cmp"
	"slices"
)

// After settle the lists of a trace are in time order and are searched, so nothing may be added.

// settle sorts every list by time and keeps only outermost operators.
func (t *builder) settle() *Trace {
	t.sortBare()
	for _, th := range t.Threads {
		th.Ops.order(func(a, b *Op) bool { return a.Start < b.Start || a.Start == b.Start && a.Dur > b.Dur })
		th.Calls.order(func(a, b *Call) bool { return a.Start < b.Start })
		th.Frames.order(func(a, b *frame) bool { return a.Start < b.Start || a.Start == b.Start && a.dur > b.dur })
		kept := 0
		for i := range th.Ops.Len() {
			o := th.Ops.At(i)
			if kept > 0 && th.Ops.At(kept-1).holdsStart(o.Start) {
				th.Ops.At(kept - 1).nest(1 + int(o.Nested))
				if t.Names.List[o.Name].inner {
					th.Inner.Add(Inner{o.Start, o.Dur, o.Name, o.Form})
				}
				continue
			}
			*th.Ops.At(kept) = *o
			kept++
		}
		th.Ops.cut(kept)
		th.Inner.order(func(a, b *Inner) bool { return a.Start < b.Start })
	}
	t.GPU.order(func(a, b *Work) bool { return a.Start < b.Start })
	for i := range t.GPU.Len() {
		if g := t.GPU.At(i); g.Blocks < -1 {
			if len(t.GPUModels) > 0 && t.GPUModels[0].Processors > 0 {
				g.Blocks = (-1 - g.Blocks) / float32(t.GPUModels[0].Processors)
			} else {
				g.Blocks = -1
			}
		}
	}
	t.StepMarks = tidySteps(t.StepMarks)
	t.Loader = Union(t.Loader)
	slices.SortStableFunc(t.Updates, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	slices.SortStableFunc(t.Ranges, func(a, b Range) int { return cmp.Compare(a.Start, b.Start) })
	t.Regions = Union(t.Regions)
	t.Framework = Union(t.Framework)
	t.Compiled = Union(t.Compiled)
	t.Compiling = Union(t.Compiling)
	t.Overhead = Union(t.Overhead)
	t.Captured = Union(t.Captured)
	t.Blocked = Union(t.Blocked)
	slices.SortStableFunc(t.Notes, func(a, b Note) int { return cmp.Compare(a.Start, b.Start) })
	t.Memory.order(func(a, b *Alloc) bool {
		return a.At < b.At || a.At == b.At && (a.Bytes < b.Bytes || a.Bytes == b.Bytes && a.Addr < b.Addr)
	})
	t.Aimed.order(func(a, b *aim) bool { return a.Correlation < b.Correlation })
	t.Collectives = t.raw
	slices.SortStableFunc(t.Collectives, func(a, b Collective) int { return cmp.Compare(a.Start, b.Start) })
	return t.Trace
}
