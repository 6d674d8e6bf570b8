package analysis

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"haul/internal/doctor/trace"
)

// An operator's work follows from its shapes. Divided by its kernels' time it is a rate, and
// divided by the GPU's peak a share of the roofline. Outermost operators with recorded shapes
// count; of a backward, whose nodes have none, the operators inside. If an operator runs several
// kernels, the rate is over all of them.

// OpRate sums the operators of one name and one set of shapes.
type OpRate struct {
	Name   string  `json:"name"`
	Shapes string  `json:"shapes"`
	Count  float64 `json:"count"` // per step
	MS     float64 `json:"ms"`    // per step, on the GPU or, without one, on the CPU
	TFLOPS float64 `json:"tflop_per_s,omitempty"`
	GBps   float64 `json:"gb_per_s,omitempty"`
	Share  float64 `json:"roofline_share,omitempty"` // fraction of the GPU's peak; 0 if unknown
	Bound  string  `json:"bound,omitempty"`          // compute or memory
}

// shownRates is the number of rates that a report lists.
const shownRates = 12

// Roofline returns the operators with the largest time, with their rates.
func (a *Analysis) Roofline() []OpRate {
	type key struct{ name, form uint32 }
	type sum struct {
		key
		n  int
		ns float64
	}
	by := map[key]*sum{}
	add := func(name, form uint32, ns float64) {
		if form == 0 || ns == 0 {
			return
		}
		k := key{name, form}
		s := by[k]
		if s == nil {
			s = &sum{key: k}
			by[k] = s
		}
		s.n++
		s.ns += ns
	}
	a.EachOp(func(th *trace.Thread, _, _ int, o *trace.Op) {
		if trace.IsBackward(a.Names.List[o.Name].Text) && a.eachInside(th, o, add) {
			return
		}
		ns := float64(o.GPU)
		if len(a.Devices) == 0 {
			ns = float64(o.Dur)
		}
		add(o.Name, o.Form, ns)
	})
	list := make([]*sum, 0, len(by))
	for _, s := range by {
		list = append(list, s)
	}
	slices.SortFunc(list, func(x, y *sum) int {
		return cmp.Or(cmp.Compare(y.ns, x.ns), cmp.Compare(x.name, y.name), cmp.Compare(x.form, y.form))
	})
	peak := a.peaks()
	out := []OpRate{}
	for _, s := range list[:min(len(list), shownRates)] {
		name, form := a.Names.List[s.name].Text, &a.Forms[s.form]
		w := workOf(name, form)
		each := s.ns / float64(s.n)
		r := OpRate{Name: trace.ShortName(name), Shapes: shapesOf(form), Count: a.PerStep(float64(s.n)), MS: a.Ms(s.ns)}
		if math.IsInf(w.flops+w.bytes, 0) { // of invalid dimensions
			w = opWork{}
		}
		r.TFLOPS, r.GBps = w.flops/each/1000, w.bytes/each
		if rate := peak.flops(widthOf(form)); peak.bandwidth > 0 && rate > 0 && w.bytes > 0 && (w.flops > 0 || !w.products) {
			compute, memory := w.flops/rate/1000, w.bytes/peak.bandwidth // ns
			r.Share, r.Bound = max(compute, memory)/each, "memory"
			if compute > memory {
				r.Bound = "compute"
			}
		}
		out = append(out, r)
	}
	return out
}

// eachInside calls add with the outermost operators with shapes inside a node of the backward. It
// returns false if there are none.
func (a *Analysis) eachInside(th *trace.Thread, o *trace.Op, add func(name, form uint32, ns float64)) bool {
	any, until := false, int64(math.MinInt64)
	for k := sort.Search(th.Inner.Len(), func(k int) bool { return th.Inner.At(k).Start >= o.Start }); k < th.Inner.Len(); k++ {
		i := th.Inner.At(k)
		if i.Start >= o.End() {
			break
		}
		if i.Form == 0 || i.Start < until {
			continue
		}
		ns := float64(i.Dur)
		if len(a.Devices) > 0 {
			ns = a.kernelsIn(th, trace.Span{Start: i.Start, End: i.End()})
		}
		add(i.Name, i.Form, ns)
		any, until = true, i.End()
	}
	return any
}
