package vrp

import "math"

// Metric says how the distance between two nodes is made from the data.
type Metric int

// The metrics CVRPLIB files use, and Exact for unrounded Euclidean distances.
const (
	Exact       Metric = iota // sqrt(dx²+dy²)
	Rounded                   // EUC_2D: the nearest integer, floor(d + 0.5)
	Ceil                      // CEIL_2D: the next integer up
	Explicit                  // EXPLICIT: read from Weights
	GreatCircle               // metres on the globe; X is the longitude and Y the latitude, in degrees
)

// Problem is one instance with its metric: what solvers, files and the validator work on.
// Capacity and demands are integers; Demand[0] is 0.
type Problem struct {
	Name, Comment string
	Capacity      int32
	Demand        []int32   // N+1
	X, Y          []float64 // N+1, nil when the file gives no coordinates
	IDs           []string  // N+1: what the file calls each node; nil: its number
	Metric        Metric
	Weights       []float64 // Explicit only: (N+1)×(N+1), row-major

	// What further limits a route; the zero values limit nothing.
	MaxDuration float64   // of a route's legs and services together; 0: none
	Service     []float64 // N+1: time spent at each node, in units of distance; nil: none
	Vehicles    int       // routes at most; 0: any number
	Open        bool      // a route ends at its last customer: the leg back to the depot costs nothing
}

// N is the number of customers.
func (p *Problem) N() int { return len(p.Demand) - 1 }

// Dist is the distance from node i to node j under the problem's metric.
func (p *Problem) Dist(i, j int) float64 {
	if p.Metric == Explicit {
		return p.Weights[i*len(p.Demand)+j]
	}
	if p.Metric == GreatCircle {
		return greatCircle(p.X[i], p.Y[i], p.X[j], p.Y[j])
	}
	d := math.Hypot(p.X[i]-p.X[j], p.Y[i]-p.Y[j])
	switch p.Metric {
	case Rounded:
		return math.Floor(d + 0.5)
	case Ceil:
		return math.Ceil(d)
	default:
		return d
	}
}

// earthRadius is the mean one, in metres.
const earthRadius = 6_371_008.8

// greatCircle is the haversine distance between two points given in degrees.
func greatCircle(lon1, lat1, lon2, lat2 float64) float64 {
	const rad = math.Pi / 180
	s, t := math.Sin((lat2-lat1)*rad/2), math.Sin((lon2-lon1)*rad/2)
	h := float64(s*s) + float64(math.Cos(lat1*rad)*math.Cos(lat2*rad))*float64(t*t)
	return 2 * earthRadius * math.Asin(math.Sqrt(min(h, 1)))
}

// Leg is what driving from node i to node j adds to a route's cost: the distance, but nothing for
// the way back to the depot of an open route.
func (p *Problem) Leg(i, j int) float64 {
	if p.Open && j == 0 {
		return 0
	}
	return p.Dist(i, j)
}

// Solution is a set of routes. A route lists customers 1..N in order; the depot at both ends is
// implied.
type Solution struct {
	Routes [][]int32
}

// Tour flattens the routes into one visit sequence: 0, route, 0, route, ..., 0.
func (s Solution) Tour() []int32 {
	t := []int32{0}
	for _, r := range s.Routes {
		t = append(append(t, r...), 0)
	}
	return t
}

// FromTour cuts a visit sequence at the depot into routes; empty routes vanish.
func FromTour(tour []int32) Solution {
	var s Solution
	var route []int32
	for _, v := range tour {
		if v != 0 {
			route = append(route, v)
			continue
		}
		if len(route) > 0 {
			s.Routes = append(s.Routes, route)
			route = nil
		}
	}
	if len(route) > 0 {
		s.Routes = append(s.Routes, route)
	}
	return s
}

// Cost is the total length of the routes under the problem's metric.
func (p *Problem) Cost(s Solution) float64 {
	var sum float64
	for _, r := range s.Routes {
		last := 0
		for _, v := range r {
			sum += p.Leg(last, int(v))
			last = int(v)
		}
		sum += p.Leg(last, 0)
	}
	return sum
}

func problemName(p *Problem) string {
	if p.Name == "" {
		return "this"
	}
	return p.Name
}
