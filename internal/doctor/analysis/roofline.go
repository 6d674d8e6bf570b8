package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// An operator's work follows from its shapes: the multiplications of a product, the bytes of its
// inputs and of a result as large as the largest of them. Against the time that its kernels took
// this is a rate, and against what the card can do a share of the roofline. Only outermost
// operators whose shapes were recorded count; a rate of a chain of kernels inside one operator is
// that of all of them.

// OpRate is the operators of one name and one set of shapes.
type OpRate struct {
	Name   string  `json:"name"`
	Shapes string  `json:"shapes"`
	Count  float64 `json:"count"` // per step
	MS     float64 `json:"ms"`    // per step, on the GPU; without one on the CPU
	TFLOPS float64 `json:"tflop_per_s,omitempty"`
	GBps   float64 `json:"gb_per_s,omitempty"`
	Share  float64 `json:"roofline_share,omitempty"` // of what the card allows; 0 where that is not known
	Bound  string  `json:"bound,omitempty"`          // compute or memory
}

// shownRates is how many a report lists.
const shownRates = 12

// Roofline lists the operators that hold most time, with their rates.
func (a *Analysis) Roofline() []OpRate {
	type key struct{ name, form uint32 }
	type sum struct {
		key
		n  int
		ns float64
	}
	by := map[key]*sum{}
	a.EachOp(func(_ *trace.Thread, _, _ int, o *trace.Op) {
		ns := float64(o.GPU)
		if len(a.Devices) == 0 {
			ns = float64(o.Dur)
		}
		if o.Form == 0 || ns == 0 {
			return
		}
		k := key{o.Name, o.Form}
		s := by[k]
		if s == nil {
			s = &sum{key: k}
			by[k] = s
		}
		s.n++
		s.ns += ns
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
		flops, bytes, width := flopsOf(name, form), bytesOf(form), widthOf(form)
		each := s.ns / float64(s.n)
		r := OpRate{Name: trace.ShortName(name), Shapes: shapesOf(form), Count: a.PerStep(float64(s.n)), MS: a.Ms(s.ns),
			TFLOPS: flops / each / 1000, GBps: bytes / each}
		if rate := peak.flops(width); peak.bandwidth > 0 && rate > 0 {
			compute, memory := flops/rate/1000, bytes/peak.bandwidth // ns
			r.Share, r.Bound = max(compute, memory)/each, "memory"
			if compute > memory {
				r.Bound = "compute"
			}
		}
		out = append(out, r)
	}
	return out
}

// peaks of a card, from its maker's data sheet: TFLOP/s without sparsity, GB/s.
type peaks struct{ fp64, fp32, half, bandwidth float64 }

func (p peaks) flops(width int) float64 {
	switch width {
	case 1, 2:
		return p.half
	case 4:
		return p.fp32
	case 8:
		return p.fp64
	}
	return 0
}

// peaks are those of the first card; zero where it is not known. fp32 is what tf32 or the vendor's
// own reduced form gives, since a name does not tell which is allowed.
func (a *Analysis) peaks() peaks {
	if len(a.Cards) == 0 {
		return peaks{}
	}
	name := strings.ToUpper(a.Cards[0].Name)
	for _, c := range []struct {
		word string
		peaks
	}{
		{"B200", peaks{40, 1125, 2250, 8000}}, {"H200", peaks{67, 495, 990, 4800}}, {"H100 PCIE", peaks{51, 378, 756, 2000}}, {"H100", peaks{67, 495, 990, 3350}},
		{"A100", peaks{19.5, 156, 312, 2039}}, {"V100", peaks{7.8, 15.7, 125, 900}}, {"MI300X", peaks{163, 654, 1307, 5300}}, {"MI250", peaks{45, 45, 181, 1600}},
		{"L40", peaks{1.4, 90, 181, 864}}, {"A10", peaks{0.5, 62, 125, 600}},
	} {
		if strings.Contains(name, c.word) {
			return c.peaks
		}
	}
	return peaks{}
}

// flopsOf is the multiplications and additions of an operator; 0 for what computes no product.
func flopsOf(name string, f *trace.Form) float64 {
	dims := func(i int) []int64 {
		if i < len(f.Inputs) {
			return f.Inputs[i].Dims
		}
		return nil
	}
	last := func(d []int64, back int) float64 {
		if len(d) < back {
			return 0
		}
		return float64(d[len(d)-back])
	}
	size := func(i int) float64 {
		if i < len(f.Inputs) {
			return f.Inputs[i].Elements()
		}
		return 0
	}
	switch name {
	case "aten::linear": // [.., in] by [out, in]
		return 2 * size(0) * last(dims(1), 2)
	case "aten::mm", "aten::matmul", "aten::bmm":
		if len(dims(1)) < 2 {
			return 2 * size(0)
		}
		return 2 * size(0) * last(dims(1), 1)
	case "aten::addmm", "aten::baddbmm":
		return 2 * size(1) * last(dims(2), 1)
	case "aten::scaled_dot_product_attention": // [.., queries, width], [.., keys, width]
		return 4 * size(0) * last(dims(1), 2)
	}
	return 0
}

// bytesOf is what an operator moves at least: its inputs once, and a result as large as the
// largest.
func bytesOf(f *trace.Form) float64 {
	var sum, largest float64
	for _, in := range f.Inputs {
		b := in.Elements() * float64(in.Width)
		sum, largest = sum+b, max(largest, b)
	}
	return sum + largest
}

// widthOf is the element size of the first tensor.
func widthOf(f *trace.Form) int {
	for _, in := range f.Inputs {
		if in.Width > 0 {
			return in.Width
		}
	}
	return 0
}

func shapesOf(f *trace.Form) string {
	var parts []string
	for _, in := range f.Inputs {
		if len(in.Dims) == 0 {
			continue
		}
		var dims []string
		for _, d := range in.Dims {
			dims = append(dims, fmt.Sprint(d))
		}
		if parts = append(parts, strings.Join(dims, "x")); len(parts) == 3 {
			break
		}
	}
	return strings.Join(parts, ", ")
}

// ModuleTime is what runs inside one module of the network, or one annotation of the program's.
type ModuleTime struct {
	Name  string  `json:"name"`
	Count float64 `json:"count"` // per step
	CPUMS float64 `json:"cpu_ms"`
	GPUMS float64 `json:"gpu_ms"` // of the operators that start inside
}

const (
	modulePrefix = "nn.Module: "
	shownModules = 16
)

// Modules lists what Python's frames name as modules, and the program's own annotations, by time:
// the GPU's, without one the CPU's. A module's time holds that of the modules inside it.
func (a *Analysis) Modules() []ModuleTime {
	type key struct {
		name  uint32
		frame bool
	}
	spans := map[key]map[*trace.Thread][]trace.Span{}
	count := map[key]int{}
	add := func(k key, th *trace.Thread, s trace.Span) {
		if _, ok := trace.Within(a.CPUSteps, s.Start); !ok {
			return
		}
		if spans[k] == nil {
			spans[k] = map[*trace.Thread][]trace.Span{}
		}
		spans[k][th] = append(spans[k][th], s)
		count[k]++
	}
	for _, th := range a.Threads {
		for i := range th.Frames.Len() {
			f := th.Frames.At(i)
			if strings.HasPrefix(a.Names.List[f.Name].Text, modulePrefix) {
				add(key{f.Name, true}, th, trace.Span{Start: f.Start, End: f.End()})
			}
		}
	}
	for _, r := range a.Ranges {
		add(key{r.Name, false}, r.Thread, r.Span)
	}
	out := []ModuleTime{}
	for k, threads := range spans {
		m := ModuleTime{Name: phrase.Printable(strings.TrimPrefix(a.Names.List[k.name].Text, modulePrefix)), Count: a.PerStep(float64(count[k]))}
		for th, list := range threads {
			list = trace.Union(list)
			m.CPUMS += a.Ms(float64(trace.Total(list)))
			at := 0
			for i := range th.Ops.Len() {
				o := th.Ops.At(i)
				for at < len(list) && list[at].End <= o.Start {
					at++
				}
				if at < len(list) && list[at].Start <= o.Start {
					m.GPUMS += a.Ms(float64(o.GPU))
				}
			}
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(x, y ModuleTime) int {
		return cmp.Or(cmp.Compare(y.GPUMS, x.GPUMS), cmp.Compare(y.CPUMS, x.CPUMS), strings.Compare(x.Name, y.Name))
	})
	return out[:min(len(out), shownModules)]
}
