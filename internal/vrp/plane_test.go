package vrp

import (
	"math"
	"slices"
	"testing"
)

// TestPlaneIsAsTheGlobe: distances on the plane are those of the globe, up to its curvature, in the
// north and over the date line.
func TestPlaneIsAsTheGlobe(t *testing.T) {
	const degree = earthRadius * math.Pi / 180
	for _, place := range [][2]float64{{10, 0}, {10.7, 59.9}, {-70, -53}, {179.99, -17}, {-179.99, 66}, {180, 5}, {-180, 5}} {
		p := &Problem{Metric: GreatCircle}
		for _, by := range [][2]float64{{0, 0}, {0.1, 0}, {0, 0.1}, {-0.1, 0.05}, {0.07, -0.1}} {
			p.X, p.Y = append(p.X, math.Remainder(place[0]+by[0], 360)), append(p.Y, place[1]+by[1])
		}
		x, y := p.Plane()
		for i := range x {
			for j := range i {
				if plane, globe := degree*math.Hypot(x[i]-x[j], y[i]-y[j]), p.Dist(i, j); math.Abs(plane/globe-1) > 0.01 {
					t.Errorf("at %v, from %d to %d: %.0f m on the plane, %.0f m on the globe", place, i, j, plane, globe)
				}
			}
		}
	}
	flat := &Problem{X: []float64{-500, 200}, Y: []float64{95, 1}}
	if x, y := flat.Plane(); !slices.Equal(x, flat.X) || !slices.Equal(y, flat.Y) {
		t.Errorf("coordinates of a plane were changed: %v, %v", x, y)
	}
}
