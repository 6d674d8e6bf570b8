package reference

import (
	"haul/internal/kernel"
	"haul/internal/rng"
)

// Dropout: y = residual + x·mask/(1-rate). first is the global index of the instance of row 0.
func Dropout[F Float](y, x, residual Matrix[F], o *kernel.Dropout, first uint64) {
	for r := range x.Rows {
		instance, node := first+uint64(r/o.Nodes), r%o.Nodes
		for c, v := range x.Row(r) {
			e := uint32(node*x.Cols + c)
			word := rng.At(o.Seed, instance, uint32(o.Site)<<24|e/4, rng.Dropout)[e%4]
			var kept F
			if rng.Float(word) >= o.Rate {
				kept = v / (1 - F(o.Rate))
			}
			if residual.Data != nil {
				kept += residual.Row(r)[c]
			}
			y.Row(r)[c] = kept
		}
	}
}

// Generate draws the instance of global index g. Coordinates are float32 numbers whatever F is, so that
// every device has the same bits.
func Generate[F Float](posX, posY []F, demand []int32, o *kernel.Generate, g uint64) {
	symmetry := 0
	if o.Symmetries > 1 {
		symmetry = int(g % uint64(o.Symmetries))
		g /= uint64(o.Symmetries)
	}
	for j := range posX {
		word := rng.At(o.Seed, g, uint32(j), o.Purpose)
		x, y := rng.Float(word[0]), rng.Float(word[1])
		if o.Grid > 0 {
			points := uint32(o.Grid) + 1
			x = float32(rng.Below(word[0], points)) / float32(o.Grid)
			y = float32(rng.Below(word[1], points)) / float32(o.Grid)
		}
		x, y = reflect(x, y, symmetry)
		posX[j], posY[j] = F(x), F(y)
		demand[j] = o.DemandMin + int32(rng.Below(word[2], uint32(o.DemandMax-o.DemandMin)+1))
	}
	demand[0] = 0
}

// reflect applies symmetry k of the unit square: bit 0 mirrors x, bit 1 mirrors y, bit 2 then swaps them.
func reflect(x, y float32, k int) (float32, float32) {
	if k&1 != 0 {
		x = 1 - x
	}
	if k&2 != 0 {
		y = 1 - y
	}
	if k&4 != 0 {
		x, y = y, x
	}
	return x, y
}

// Feature: x, y, demand/capacity, depot flag of each node of one instance.
func Feature[F Float](feature Matrix[F], posX, posY []F, demand []int32, capacity int32) {
	for j := range posX {
		row := feature.Row(j)
		row[0], row[1], row[2], row[3] = posX[j], posY[j], F(demand[j])/F(capacity), 0
	}
	feature.Row(0)[3] = 1
}
