package policy

import (
	"math"

	"haul/internal/kernel"
	"haul/internal/vrp"
)

// Given problems for a policy of many variants (kernel.VRP, MDVRP). Routes are checked with exact
// numbers, but a device adds in float32: limits and windows are made slightly tighter for the
// device. They do not apply to a vehicle at the depot, except through the bits of kernel.MDVRP.

// tighter is the margin, relative to the longest sums.
const tighter = 1e-5

// variedOf is ownOf for a policy of many variants.
func variedOf(p *vrp.Problem, side float64) kernel.Own {
	a, _ := p.Variant()
	own := kernel.Own{Attributes: kernel.Attributes(a), Limit: float32(math.Inf(1)), End: float32(math.Inf(1)), Depots: p.DepotCount()}
	if a&vrp.LimitedLength != 0 {
		own.Limit = float32(p.Types()[0].MaxDistance / side * (1 - tighter))
	}
	if a&vrp.TimeWindows == 0 {
		return own
	}
	own.Windows = make([]kernel.Window, p.N()+1) // of the first depot and the customers
	for j := range own.Windows {
		w, at := kernel.Window{Late: float32(math.Inf(1))}, j
		if j > 0 {
			at += p.DepotCount() - 1
		}
		if p.Windows != nil && len(p.Windows[at]) == 1 {
			w.Early, w.Late = float32(p.Windows[at][0].From/side), float32(p.Windows[at][0].To/side-tighter)
		}
		if p.Service != nil {
			w.Service = float32(p.Service[at] / side)
		}
		own.Windows[j] = w
	}
	// Open routes have the end too, as in training: a customer served in time allows a return in
	// time.
	own.End = own.Windows[0].Late
	return own
}
