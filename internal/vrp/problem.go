package vrp

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// Metric says how the distance between two nodes is computed from the data.
type Metric int

// The metrics of the formats, and Exact for unrounded Euclidean distances. Those that round to a
// fraction have sums that are equal to a multiple of it up to float64's rounding.
const (
	Exact       Metric = iota // sqrt(dx²+dy²)
	Rounded                   // EUC_2D: the nearest integer, floor(d + 0.5)
	Ceil                      // CEIL_2D: the next integer up
	Explicit                  // EXPLICIT: read from Weights
	GreatCircle               // metres on the globe; X is the longitude and Y the latitude, in degrees
	Tenths                    // cut to one decimal, as the DIMACS challenge does
	Thousandths               // the nearest thousandth: what PyVRP calls exact
	Trunc                     // FLOOR_2D: the next integer down
	Geo                       // TSPLIB's GEO: whole kilometres; X is DDD.MM of the latitude, Y of the longitude
	Att                       // TSPLIB's ATT: pseudo-Euclidean
)

// Problem is one routing problem: what solvers, files and the validator work on. Places are
// numbered from 0: depots first, then customers. A plain CVRP has one depot, Capacity, Demand and
// distances, and nothing else; every further part is optional, and its zero value asks for nothing
// (parts.go has their types). Slices "by place" have one entry per place, the depots' included.
//
// What a reader could break: a solver that does not honour a part refuses the problem by the part's
// name (Plain, Parts). A part that is read and then ignored gives routes that are called valid and
// are not.
type Problem struct {
	Name, Comment string
	Capacity      int32     // of a vehicle, where Fleet is nil
	Demand        []int32   // by place: what is delivered; 0 at depots
	X, Y          []float64 // by place, nil when the file gives no coordinates
	IDs           []string  // by place: what the file calls it; nil: its number
	Names         []string  // by place: what people call it; nil: nothing
	Fractions     []int32   // per dimension: into how many parts a unit of the file's amounts is cut here; nil: 1
	Clock         float64   // units of time per minute where times are those of a day, from midnight; 0: they are not
	SkillWords    []string  // of skill k, at k-1: what the file calls it, where skills are words; nil: they are numbers
	Notes         []string  // lines that a reader of the file owes its user: columns that were not read
	Metric        Metric
	Weights       []float64 // Explicit only: places × places, row-major, may be asymmetric

	// What further limits a route where Fleet is nil; the zero values limit nothing.
	MaxDuration float64   // of a route's legs, waiting and services together; 0: none
	Service     []float64 // by place: time spent there (at a depot: before leaving it); nil: none
	Vehicles    int       // routes at most; 0: any number
	Open        bool      // a route ends at its last customer: the leg back to the depot costs nothing

	// Optional parts.
	Depots     int           // how many; 0 counts as 1
	Speed      float64       // distance per unit of time, where no profile has durations; 0: 1
	Fleet      []VehicleType // nil: Vehicles of Capacity from depot 0 (see Types)
	Profiles   []Profile     // matrices of their own for vehicle types; [0] replaces Weights and Metric
	Pickup     []int32       // by place: what is picked up, in the first dimension; nil: nothing
	Dimensions []Dimension   // of load beyond the first
	Windows    [][]Window    // by place, in order, apart: when service begins, or a vehicle leaves or returns
	Setup      []float64     // by place: time spent where the place before has other coordinates or matrix index
	Release    []float64     // by place: the trip that serves it begins (loads at its depot) no sooner
	Optional   []bool        // by place: may be left out; nil: every customer is required
	Prize      []float64     // by place: lost where an optional customer is left out
	Groups     []Group       // of which one customer is visited
	Shipments  []Shipment    // pickups and deliveries that one vehicle makes
	LIFO       bool          // what was picked up last of shipments is delivered first
	Needs      [][]int32     // by place: skills that its vehicle must have
	Priority   []int         // by place: of those that cannot all be served, the higher are kept
	Backhauls  BackhaulRule
	Late       []float64 // by place: price per unit of time past its windows; nil or 0: windows are hard
	Objective  Objective
}

// DepotCount is the number of depots, which are the first places.
func (p *Problem) DepotCount() int { return max(1, p.Depots) }

// N is the number of customers.
func (p *Problem) N() int { return len(p.Demand) - p.DepotCount() }

// Dist is the distance from node i to node j under the problem's metric.
func (p *Problem) Dist(i, j int) float64 {
	switch p.Metric {
	case Explicit:
		return p.Weights[i*len(p.Demand)+j]
	case GreatCircle:
		return greatCircle(p.X[i], p.Y[i], p.X[j], p.Y[j])
	case Geo:
		return geo(p.X[i], p.Y[i], p.X[j], p.Y[j])
	}
	dx, dy := p.X[i]-p.X[j], p.Y[i]-p.Y[j]
	switch p.Metric {
	case Exact:
		return math.Hypot(dx, dy)
	case Rounded:
		return math.Floor(math.Hypot(dx, dy) + 0.5)
	}
	// Hypot's last bit may be wrong, which a metric that cuts turns into a whole unit: 12.999... for
	// the triangle 5, 12, 13. The root of a sum of squares is exact there.
	d := math.Sqrt(float64(dx*dx) + float64(dy*dy))
	switch p.Metric {
	case Ceil:
		return math.Ceil(d)
	case Tenths:
		return math.Floor(d*10) / 10
	case Thousandths:
		return math.Floor(d*1000+0.5) / 1000
	case Trunc:
		return math.Floor(d)
	default: // Att
		return math.Ceil(math.Sqrt((float64(dx*dx) + float64(dy*dy)) / 10))
	}
}

// DistanceOf is the distance from place i to place j for vehicles of a profile.
func (p *Problem) DistanceOf(profile, i, j int) float64 {
	if p.Profiles == nil {
		return p.Dist(i, j)
	}
	return p.Profiles[profile].Distance[i*len(p.Demand)+j]
}

// DurationOf is how long vehicles of a profile take from place i to place j.
func (p *Problem) DurationOf(profile, i, j int) float64 {
	if p.Profiles != nil && p.Profiles[profile].Duration != nil {
		return p.Profiles[profile].Duration[i*len(p.Demand)+j]
	}
	d := p.DistanceOf(profile, i, j)
	if p.Speed != 0 {
		d /= p.Speed
	}
	return d
}

// geo is TSPLIB's GEO: coordinates are degrees with minutes as two decimals, pi and the Earth's
// radius are those of its definition.
func geo(x1, y1, x2, y2 float64) float64 {
	const pi, radius = 3.141592, 6378.388
	rad := func(c float64) float64 {
		deg := math.Trunc(c)
		return pi * (deg + 5*(c-deg)/3) / 180
	}
	lat1, lon1, lat2, lon2 := rad(x1), rad(y1), rad(x2), rad(y2)
	if lat1 == lat2 && lon1 == lon2 {
		return 0
	}
	q1, q2, q3 := math.Cos(lon1-lon2), math.Cos(lat1-lat2), math.Cos(lat1+lat2)
	return math.Trunc(radius*math.Acos(max(-1, min(1, 0.5*((1+q1)*q2-(1-q1)*q3)))) + 1)
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

// Solution is a set of routes. A route lists the places between its ends in order: customers, and a
// depot where the vehicle reloads. Its first and last depot are those of its vehicle type and are
// implied. A customer on no route is not served.
type Solution struct {
	Routes [][]int32
	Types  []int32 // index into Types() of each route's vehicle; nil: all 0
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

func problemName(p *Problem) string {
	if p.Name == "" {
		return "this"
	}
	return p.Name
}

// ID is what the problem's own file calls a node.
func (p *Problem) ID(node int) string {
	if p.IDs != nil {
		return p.IDs[node]
	}
	return strconv.Itoa(node)
}

// skill is what a file calls a skill: its word in quotes, or its number.
func (p *Problem) skill(k int32) string {
	if k < 1 || int(k) > len(p.SkillWords) {
		return strconv.Itoa(int(k))
	}
	return strconv.Quote(p.SkillWords[k-1])
}

// Amount is an amount of a dimension as the problem's file counts it.
func (p *Problem) Amount(dimension int, a int64) float64 {
	if p.Fractions == nil {
		return float64(a)
	}
	return float64(a) / float64(p.Fractions[dimension])
}

// TimeText is a point in time as people read it: 08:30 where times are those of a day, with seconds
// where it has them; else a number.
func (p *Problem) TimeText(x float64) string {
	if p.Clock == 0 || !(x >= 0 && x < 1e6*p.Clock) {
		return strconv.FormatFloat(x, 'g', 10, 64)
	}
	s := int64(math.Round(x / p.Clock * 60))
	text := fmt.Sprintf("%02d:%02d", s/3600, s/60%60)
	if s%60 != 0 {
		text += fmt.Sprintf(":%02d", s%60)
	}
	return text
}

// SpanText is a length of time for people: hours and minutes where times are those of a day.
func (p *Problem) SpanText(x float64) string {
	if p.Clock > 0 && x > 0 && x < p.Clock/120 {
		return "less than a second"
	}
	return p.TimeText(x)
}

// Called is a customer's name for people, "" where it has none.
func (p *Problem) Called(node int) string {
	if p.Names == nil {
		return ""
	}
	return p.Names[node]
}

// trucks finds "No of trucks: 5", as the comments of CVRPLIB's older sets have it.
var trucks = regexp.MustCompile(`(?i)\bno\.? of trucks:?\s*([0-9]+)`)

// Trucks is the number of trucks that the comment names, 0 if it names none. It limits nothing by
// itself.
func (p *Problem) Trucks() int {
	m := trucks.FindStringSubmatch(p.Comment)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0
	}
	return n
}

// quoteShort quotes a name for an error, cut where it would flood the line.
func quoteShort(s string) string {
	if len(s) > 40 {
		return strconv.Quote(s[:40]) + "..."
	}
	return strconv.Quote(s)
}

// Types is the fleet: Fleet itself, or what Capacity, Vehicles, MaxDuration and Open say as one
// type. It never is empty.
func (p *Problem) Types() []VehicleType {
	if p.Fleet != nil {
		return p.Fleet
	}
	t := NewVehicleType(p.Capacity)
	t.Count = p.Vehicles
	if p.MaxDuration > 0 {
		t.MaxDuration = p.MaxDuration
	}
	if p.Open {
		t.End = None
	}
	return []VehicleType{t}
}

func (p *Problem) isCustomer(v int32) bool {
	return int(v) >= p.DepotCount() && int(v) < len(p.Demand)
}
