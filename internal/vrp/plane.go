package vrp

import "math"

// Places on the globe as places on a plane. What a reader could break: longitude and latitude
// must not be measured or drawn as they are. A degree of longitude is shorter than one of
// latitude by the cosine of the latitude, half as long in Oslo, and ±180° is the same meridian.

// Plane is where the nodes lie for whoever draws them or looks at them as a map: X and Y
// themselves, and for places on the globe, degrees of latitude in both directions, counted in x
// from the depot's meridian the short way round.
func (p *Problem) Plane() (x, y []float64) {
	if p.Metric != GreatCircle || len(p.X) == 0 {
		return p.X, p.Y
	}
	south, north := p.Y[0], p.Y[0]
	for _, lat := range p.Y {
		south, north = min(south, lat), max(north, lat)
	}
	narrow := math.Cos((south + north) / 2 * math.Pi / 180)
	x = make([]float64, len(p.X))
	for i, lon := range p.X {
		x[i] = shortWay(lon-p.X[0]) * narrow
	}
	return x, p.Y
}

// shortWay is a difference of longitudes within ±180°.
func shortWay(degrees float64) float64 { return math.Remainder(degrees, 360) }
