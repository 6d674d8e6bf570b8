// Package host computes the contract's data on the host, for the CPU device and for the loaders of
// batches: instances of a rule set, its vehicles in float32, rows of token sequences and masks of
// dropout. Devices agree with it bit for bit. internal/kernel/reference has separate plain loops.
package host

import (
	"math"

	"haul/internal/kernel"
	"haul/internal/rng"
)

// Draw draws what an instance has beside places and demands, which are there, and fills in the
// columns of its nodes: from words that nothing else reads, word 3 of the first customer's block
// and for VRP and MDVRP the blocks from secondBlock on. CVRP has nothing, CVRPL the limit of a
// route's length, TSP its share. MDVRP moves depots that an instance has not to the first.
func Draw(s kernel.RuleSet, nodes []int32, x, y []float32, d *kernel.Drawing, index uint64) {
	switch own := rng.At(d.Seed, index, 1, d.Purpose)[3]; s {
	case kernel.CVRPL:
		Complete(s, nodes, x, y, kernel.Own{Limit: limit(d, x, y, own)})
	case kernel.VRP:
		drawVRP(d, nodes, x, y, own, index)
	case kernel.TSP:
		Complete(s, nodes, x, y, kernel.Own{})
	case kernel.MDVRP:
		drawMDVRP(d, nodes, x, y, own, index)
	}
}

// limit is uniform between twice the way to the farthest customer, so that every customer can be
// served, and Range where that is more (RouteFinder's, https://arxiv.org/abs/2406.15007).
func limit(d *kernel.Drawing, x, y []float32, word uint32) float32 {
	far := float32(0)
	for j := range x {
		far = max(far, Leg(x[j], y[j], x[0], y[0]))
	}
	low := 2 * far
	return low + float32(rng.Float(word)*(max(d.Range, low)-low))
}

// Complete fills in the columns of an instance's nodes behind the demands, which are there; TSP's
// column takes their place.
func Complete(s kernel.RuleSet, nodes []int32, x, y []float32, own kernel.Own) {
	switch s {
	case kernel.CVRPL:
		for j := range x {
			home := own.Limit
			if j > 0 {
				home = Leg(x[j], y[j], x[0], y[0])
			}
			nodes[4*j+1], nodes[4*j+2], nodes[4*j+3] = word(x[j]), word(y[j]), word(home)
		}
	case kernel.VRP:
		completeVRP(nodes, x, y, own)
	case kernel.MDVRP:
		completeMDVRP(nodes, x, y, own)
	case kernel.TSP:
		for j := range x {
			nodes[j] = word(1 / float32(max(1, len(x)-1)))
		}
	}
}

func word(x float32) int32 { return int32(math.Float32bits(x)) }

// Leg is the length of the way between two places, never fused, so that devices agree bit for bit.
func Leg(x0, y0, x1, y1 float32) float32 {
	dx, dy := x1-x0, y1-y0
	return float32(math.Sqrt(float64(float32(dx*dx) + float32(dy*dy))))
}
