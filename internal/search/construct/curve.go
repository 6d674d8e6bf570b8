package construct

import (
	"cmp"
	"math"
	"slices"

	"haul/internal/vrp"
)

// AlongCurve visits customers in the order of Hilbert's curve (Bartholdi and Platzman, 1982), or of
// their numbers where they have no coordinates, and begins a route where the vehicle is full.
func AlongCurve(p *vrp.Problem) (s vrp.Solution) {
	order := make([]int32, p.N())
	for i := range order {
		order[i] = int32(i + 1)
	}
	if x, y := p.Plane(); len(x) == len(p.Demand) {
		key := Curve(x, y)
		slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(key[a], key[b]), cmp.Compare(a, b)) })
	}
	load, from := int64(0), 0
	for i, v := range order {
		if load+int64(p.Demand[v]) > int64(p.Capacity) && i > from {
			s.Routes = append(s.Routes, order[from:i:i])
			load, from = 0, i
		}
		load += int64(p.Demand[v])
	}
	return vrp.Solution{Routes: append(s.Routes, order[from:])}
}

// Curve is where places lie along Hilbert's curve.
func Curve(x, y []float64) []uint64 {
	key := make([]uint64, len(x))
	left, low := slices.Min(x), slices.Min(y)
	side := max(slices.Max(x)-left, slices.Max(y)-low, math.SmallestNonzeroFloat64)
	for v := range key {
		key[v] = hilbert(cell(x[v]-left, side), cell(y[v]-low, side))
	}
	return key
}

// cell is where a length lies on a side that is cut into 2^16.
func cell(at, side float64) uint32 { return uint32(min(at/side*(1<<16), 1<<16-1)) }

// hilbert is the place of a cell on the curve through a square of 2^16 by 2^16 cells.
func hilbert(x, y uint32) (at uint64) {
	for s := uint32(1 << 15); s > 0; s >>= 1 {
		right, up := uint32(0), uint32(0)
		if x&s != 0 {
			right = 1
		}
		if y&s != 0 {
			up = 1
		}
		at += uint64(s) * uint64(s) * uint64((3*right)^up)
		if up == 0 { // turn the quarter so that the curve enters it where it should
			if right == 1 {
				x, y = 1<<16-1-x, 1<<16-1-y
			}
			x, y = y, x
		}
	}
	return at
}
