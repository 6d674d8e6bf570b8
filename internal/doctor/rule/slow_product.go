package rule

import (
	"cmp"
	"fmt"
	"slices"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// slowProduct looks for large matrix products in half precision that are slow because a dimension
// is not a multiple of 8. Rows then start at addresses that the tensor cores' wide loads do not
// support, and the library uses kernels that load single elements. A vocabulary of 50,257 is the
// best-known case.
//
// The reference is the fastest large product of the recording whose dimensions are multiples of 8
// or, without one, the GPU's data sheet. Only products that fill the GPU count: 10 GFLOP, and 100
// FLOPs per byte. Threshold: less than a third of the reference rate, and a gain of 5 % of the
// step.
const (
	slowFlops   = 1e10
	slowDensity = 100 // FLOPs per byte
	slowRate    = 1.0 / 3
	slowShare   = 0.05
	slowReaches = 0.6 // fraction of a data sheet's rate that large products reach
	slowAlign   = 8
)

var slowProduct = Rule{
	ID: "slow-product",
	remedy: "Pad the dimensions to multiples of 8, better 64 or 128 (the vocabulary, hidden sizes, sequence lengths; padded columns cost less than they save), " +
		"and keep operands contiguous in rows that start at multiples of 16 bytes.",
	find: func(a *analysis.Analysis, _ trace.Cause) *cost {
		var odd []*analysis.Product
		var fastest float64 // FLOPs per ns
		for _, p := range a.Products() {
			switch {
			case p.Width != 2 || p.Flops < slowFlops || p.Flops < slowDensity*p.Bytes:
			case misaligned(p):
				odd = append(odd, p)
			default:
				fastest = max(fastest, p.Rate())
			}
		}
		measure := "the fastest large product of this recording with dimensions that are"
		if fastest == 0 {
			fastest, measure = slowReaches*1000*a.HalfPeak(), "what the card does with dimensions that are"
		}
		odd = slices.DeleteFunc(odd, func(p *analysis.Product) bool { return p.Rate() >= slowRate*fastest })
		var saved, ns float64
		var places []analysis.Place
		for _, p := range odd {
			saved += p.NS - p.Flops*float64(p.N)/fastest
			ns += p.NS
			places = append(places, p.Places...)
		}
		ms := a.Ms(min(saved, a.Busy))
		if a.Share(ms) < slowShare {
			return nil
		}
		slices.SortFunc(odd, func(x, y *analysis.Product) int {
			return cmp.Or(cmp.Compare(y.NS, x.NS), cmp.Compare(x.Shapes, y.Shapes))
		})
		c := &cost{ms: ms, places: places, evidence: []string{
			fmt.Sprintf("large products with a dimension that is no multiple of 8 hold %s ms per step, at less than a third of %s: %.3g TFLOP/s", phrase.Figure(a.Ms(ns)), measure, fastest/1000),
		}}
		for _, p := range odd[:min(3, len(odd))] {
			c.evidence = append(c.evidence, fmt.Sprintf("%s [%s], %s per step: %.3g TFLOP/s", p.Name, p.Shapes, phrase.PerStepCount(a.PerStep(float64(p.N))), p.Rate()/1000))
		}
		return c
	},
}

func misaligned(p *analysis.Product) bool {
	return slices.ContainsFunc(p.Dims, func(d int64) bool { return d%slowAlign != 0 })
}
