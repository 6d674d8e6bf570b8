package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// fp64 looks for work in double precision, which mostly comes from NumPy's default type. It moves
// twice the bytes of fp32 and uses vector units at half their width. Graphics cards run it at 1/32
// or 1/64 of the rate of fp32.
//
// The gain is at least half of it. Threshold: 10 % of the step's time in it.
const (
	fp64Share    = 0.10
	fp64GPUShare = 0.20 // higher, because random numbers are drawn in doubles
	fp64Gain     = 0.5
)

var fp64 = Rule{
	ID:     "fp64",
	remedy: "Compute in fp32 or less: torch.float32 at the edge (NumPy's default is float64), .float() on data, no torch.set_default_dtype(torch.float64); keep doubles for the few sums that need them.",
	find: func(a *analysis.Analysis, _ trace.Cause) *cost {
		if len(a.Devices) > 0 {
			return fp64OnGPU(a)
		}
		if !a.OnHost() {
			return nil
		}
		var double, known, all float64
		c := a.NewCharge()
		a.EachOp(func(_ *trace.Thread, _, step int, o *trace.Op) {
			if o.Cause != 0 {
				return
			}
			all += float64(o.Dur)
			is, recorded := isFP64(a, o.Form)
			if recorded {
				known += float64(o.Dur)
			}
			if is {
				double += float64(o.Dur)
				c.Add(o, step)
			}
		})
		if known == 0 {
			return nil
		}
		// The backward records no types. They are assumed to be distributed as in the forward.
		part := double / known
		ms := a.Ms(all * part)
		if part < 0.5 || a.Share(ms) < fp64Share {
			return nil
		}
		return &cost{ms: ms * fp64Gain, places: c.Placed(), evidence: []string{
			fmt.Sprintf("%s of the operators' time whose types are recorded is in double precision: %s", phrase.Percent(part), c.TopBy(4, (*analysis.Named).OnCPU)),
			"fp32 moves half the bytes and fills vector registers with twice the values: at least half of that time goes away",
		}}
	},
}

// isFP64 reports whether an operator's first tensor has doubles, and whether its type was recorded.
func isFP64(a *analysis.Analysis, form uint32) (is, recorded bool) {
	if form == 0 {
		return false, false
	}
	for _, in := range a.Forms[form].Inputs {
		if in.Width > 0 && len(in.Dims) > 0 {
			return in.FP64, true
		}
	}
	return false, false
}

// fp64OnGPU recognises double precision in the kernels' names.
func fp64OnGPU(a *analysis.Analysis) *cost {
	var issued []analysis.Place
	alone := a.Alone(func(g *trace.Work) bool { return a.Names.List[g.Name].FP64 }, func(g *trace.Work) { issued = append(issued, a.IssuedAt(g)...) })
	n, ns, ms := alone.N, alone.Total, a.Ms(alone.NS)
	if a.Share(ms) < fp64GPUShare {
		return nil
	}
	return &cost{ms: ms * fp64Gain, places: issued, evidence: []string{
		fmt.Sprintf("%s kernels per step in double precision, %s ms: %s of the kernels' time", phrase.PerStepCount(a.PerStep(float64(n))), phrase.Figure(a.Ms(ns)), phrase.Percent(ns/a.Kernel)),
		"fp32 moves half the bytes: at least half of that time goes away, and tensor cores take far more of it",
	}}
}
