package analysis

import (
	"sort"

	"haul/internal/doctor/trace"
)

// Product sums the matrix products of one operator and one set of shapes.
type Product struct {
	Name   string
	Shapes string
	Dims   []int64 // rows, columns and depth, of each product in a batch
	Width  int     // bytes per element
	N      int
	NS     float64 // on the GPU
	Flops  float64 // per product
	Bytes  float64 // lower bound of the bytes moved per product
	Places []Place
}

// Rate returns the FLOPs per ns.
func (p *Product) Rate() float64 { return p.Flops * float64(p.N) / p.NS }

// HalfPeak returns the GPU's rate for products in half precision, in TFLOP/s, or 0 if it is
// unknown.
func (a *Analysis) HalfPeak() float64 { return a.peaks().half }

// Products returns the matrix products inside the steps with recorded shapes and kernels, including
// those inside other operators.
func (a *Analysis) Products() []*Product {
	type key struct{ name, form uint32 }
	by := map[key]*Product{}
	var out []*Product
	add := func(th *trace.Thread, name, form uint32, s trace.Span) {
		if form == 0 {
			return
		}
		text, f := a.Names.List[name].Text, &a.Forms[form]
		dims := productDims(text, f)
		if dims == nil {
			return
		}
		ns := a.kernelsIn(th, s)
		if ns == 0 {
			return
		}
		p := by[key{name, form}]
		if p == nil {
			w := workOf(text, f)
			p = &Product{Name: trace.ShortName(text), Shapes: shapesOf(f), Dims: dims, Width: widthOf(f), Flops: w.flops, Bytes: w.bytes}
			by[key{name, form}] = p
			out = append(out, p)
		}
		p.N++
		p.NS += ns
		p.Places = append(p.Places, Place{s, th})
	}
	a.EachOp(func(th *trace.Thread, _, _ int, o *trace.Op) {
		add(th, o.Name, o.Form, trace.Span{Start: o.Start, End: o.End()})
	})
	a.EachInner(func(th *trace.Thread, i *trace.Inner) {
		add(th, i.Name, i.Form, trace.Span{Start: i.Start, End: i.End()})
	})
	return out
}

// kernelsIn returns the time of the kernels that a thread's calls inside an interval started.
func (a *Analysis) kernelsIn(th *trace.Thread, s trace.Span) float64 {
	var ns float64
	for i := sort.Search(th.Calls.Len(), func(i int) bool { return th.Calls.At(i).Start >= s.Start }); i < th.Calls.Len(); i++ {
		c := th.Calls.At(i)
		if c.Start >= s.End {
			break
		}
		if c.Kind != trace.CallLaunch {
			continue
		}
		if g := a.started(c, a.byCorrelation); g != nil && g.Kind == trace.CatKernel {
			ns += float64(g.Dur)
		}
	}
	return ns
}

// productDims returns the rows, columns and depth of a product, or nil for other operators and for
// shapes that do not fit.
func productDims(name string, f *trace.Form) []int64 {
	dims := func(i int) []int64 {
		if i < len(f.Inputs) {
			return f.Inputs[i].Dims
		}
		return nil
	}
	var x, y []int64
	switch name {
	case "aten::mm", "aten::bmm":
		x, y = dims(0), dims(1)
	case "aten::addmm", "aten::baddbmm":
		x, y = dims(1), dims(2)
	}
	if len(x) < 2 || len(y) < 2 {
		return nil
	}
	return []int64{x[len(x)-2], y[len(y)-1], x[len(x)-1]}
}

// CallsIn returns the correlation numbers of a thread's launches inside an interval.
func (a *Analysis) CallsIn(th *trace.Thread, s trace.Span) []uint32 {
	var out []uint32
	for i := sort.Search(th.Calls.Len(), func(i int) bool { return th.Calls.At(i).Start >= s.Start }); i < th.Calls.Len(); i++ {
		c := th.Calls.At(i)
		if c.Start >= s.End {
			break
		}
		if c.Kind == trace.CallLaunch && c.Correlation != 0 {
			out = append(out, c.Correlation)
		}
	}
	return out
}
