package model

import (
	"math"

	"haul/internal/vrp"
)

// Ways between coordinates measured quickly, where there are too many places for a table. A ruler
// gives the very number that the problem's own distance gives. Its root of a sum of squares may
// differ from vrp's in the last bit, so that what lies next to where a number is rounded the other
// way is asked of the problem.

// besideRounding is how near to such a place a length is asked for again, in units.
const besideRounding = 1e-5

// Ruled is f, or a quicker way to the same numbers: lengths in units to the nearest, or up (as
// UpUnits has it).
func (m *Compiled) Ruled(unit float64, up bool, f func(i, j int) int32) func(i, j int) int32 {
	p := m.P
	if m.Nodes <= TableGeneral || p.Profiles != nil || p.Speed != 0 && p.Speed != 1 && up || p.Metric != vrp.Exact && p.Metric != vrp.Rounded {
		return f
	}
	x, y := p.X, p.Y
	far := LongestLength / unit // past it the number is cut
	if p.Metric == vrp.Rounded {
		whole := unit == math.Trunc(unit)
		return func(i, j int) int32 {
			dx, dy := x[i]-x[j], y[i]-y[j]
			d := math.Sqrt(float64(dx*dx)+float64(dy*dy)) + 0.5
			if r := math.Floor(d); whole && d < far && d-r > besideRounding && r+1-d > besideRounding {
				return int32(r * unit)
			}
			return f(i, j)
		}
	}
	return func(i, j int) int32 {
		dx, dy := x[i]-x[j], y[i]-y[j]
		d := math.Sqrt(float64(dx*dx)+float64(dy*dy)) * unit
		if !up {
			d += 0.5
		}
		r := math.Floor(d)
		if !(d < LongestLength-2) || d-r <= besideRounding || r+1-d <= besideRounding {
			return f(i, j)
		}
		if up {
			r++
		}
		return int32(r)
	}
}
