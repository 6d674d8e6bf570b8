package testset

import (
	"fmt"
	"math"
	"strings"

	"haul/internal/rng"
	"haul/internal/vrp"
)

// The 96 test sets of RouteFinder (Berto et al., 2024), 48 variants of two sizes. What a reader
// could break: the order of draws. NumPy is seeded again for each set and draws whole arrays of
// all instances: places, linehauls, the mask and the amounts of backhauls, services, widths and
// starts of windows, limits. Numbers are kept as float32, as in the published files.

const (
	routeFinderInstances = 1000
	routeFinderDepots    = 3 // with MD
	lastReturn           = 4.6
)

// RouteFinderSeed is what each of the sets begins with.
const RouteFinderSeed = 1234

// Variant is a set's attributes.
type Variant struct {
	Depots, Open, Backhauls, Mixed, Limit, Windows bool
}

// Variants are the 48 names, in the order of their attributes.
func Variants() []string {
	var names []string
	for i := range 48 {
		names = append(names, variantAt(i).String())
	}
	return names
}

func variantAt(i int) Variant {
	return Variant{Depots: i >= 24, Open: i/12%2 == 1, Backhauls: i/4%3 > 0, Mixed: i/4%3 == 2, Limit: i/2%2 == 1, Windows: i%2 == 1}
}

// String is the variant's name: vrptw, ovrpmbl, mdcvrp.
func (v Variant) String() string {
	var b strings.Builder
	for _, part := range []struct {
		has  bool
		name string
	}{{v.Depots, "md"}, {v.Open, "o"}, {v == (Variant{Depots: v.Depots}), "c"}, {true, "vrp"}, {v.Mixed, "m"}, {v.Backhauls, "b"}, {v.Limit, "l"}, {v.Windows, "tw"}} {
		if part.has {
			b.WriteString(part.name)
		}
	}
	return b.String()
}

// ParseVariant reads a variant's name.
func ParseVariant(name string) (Variant, error) {
	for i, known := range Variants() {
		if known == strings.ToLower(name) {
			return variantAt(i), nil
		}
	}
	return Variant{}, fmt.Errorf("RouteFinder has no variant %q: they are cvrp, and vrp with b or mb, l and tw behind it, o before it, md before that", name)
}

// RouteFinderCapacity is what a vehicle carries there, by the number of customers; 0 where there is
// no such set.
func RouteFinderCapacity(customers int) int32 {
	if customers != 50 && customers != 100 {
		return 0
	}
	return int32(30 + customers/5)
}

// RouteFinder is the test set of a variant for 50 or 100 customers.
func RouteFinder(variant string, customers int) (*Set, error) {
	v, err := ParseVariant(variant)
	if err != nil {
		return nil, err
	}
	capacity := RouteFinderCapacity(customers)
	if capacity == 0 {
		return nil, fmt.Errorf("the test sets of RouteFinder have 50 or 100 customers, not %d", customers)
	}
	depots := 1
	if v.Depots {
		depots = routeFinderDepots
	}
	s := &Set{Name: fmt.Sprintf("routefinder-%s-%d", v, customers), array: fmt.Sprintf("%s_%d", v, customers), Problems: make([]*vrp.Problem, routeFinderInstances)}
	d := &variantDraw{v: v, mt: rng.NewMT19937(RouteFinderSeed), depots: depots, n: customers}
	d.draw()
	for i := range s.Problems {
		s.Problems[i] = d.problem(i, fmt.Sprintf("%s-%d", s.Name, i), capacity)
	}
	return s, nil
}

// variantDraw holds the arrays of all instances, in NumPy's order.
type variantDraw struct {
	v                     Variant
	mt                    *rng.MT19937
	depots, n             int
	x, y                  []float64 // instances × places
	linehaul, backhaul    []int32   // instances × customers
	service, start, width []float64
	limit                 []float64 // instances
}

// floats is NumPy's rand of so many numbers.
func (d *variantDraw) floats(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = d.mt.Float64()
	}
	return out
}

func (d *variantDraw) draw() {
	places, all := d.depots+d.n, routeFinderInstances*d.n
	xy := d.floats(routeFinderInstances * places * 2)
	d.x, d.y = make([]float64, len(xy)/2), make([]float64, len(xy)/2)
	for i := range d.x {
		d.x[i], d.y[i] = xy[2*i], xy[2*i+1]
	}
	d.linehaul, d.backhaul = make([]int32, all), make([]int32, all)
	for i := range d.linehaul {
		d.linehaul[i] = int32(d.mt.Integer(1, 10))
	}
	if d.v.Backhauls {
		mask := d.floats(all)
		for i := range mask {
			if mask[i] < 0.2 {
				d.backhaul[i], d.linehaul[i] = int32(d.mt.Integer(1, 10)), 0
			}
		}
	}
	if d.v.Windows {
		d.service, d.width = d.floats(all), d.floats(all)
		d.start = d.floats(all)
		for i := range d.start {
			at := i/d.n*places + d.depots + i%d.n
			way := d.way(at, i/d.n*places)
			service, width := 0.15+0.03*d.service[i], 0.18+0.02*d.width[i]
			h := (lastReturn-service-width)/way*1.0 - 1
			d.service[i], d.width[i], d.start[i] = service, width, (1+(h-1)*d.start[i])*way/1.0
		}
	}
	if d.v.Limit {
		d.limit = d.floats(routeFinderInstances)
		for i := range d.limit {
			far := 0.0
			for j := 1; j < places; j++ {
				far = max(far, d.way(i*places+j, i*places))
			}
			low := 2*far + 1e-6
			high := max(2.8, low+1e-6)
			d.limit[i] = low + (high-low)*d.limit[i]
		}
	}
}

// way is the distance between two places of the arrays.
func (d *variantDraw) way(a, b int) float64 {
	dx, dy := d.x[a]-d.x[b], d.y[a]-d.y[b]
	return math.Sqrt(float64(dx*dx) + float64(dy*dy))
}

// single is a number as float32 keeps it.
func single(x float64) float64 { return float64(float32(x)) }

// problem puts instance i together.
func (d *variantDraw) problem(i int, name string, capacity int32) *vrp.Problem {
	places := d.depots + d.n
	p := &vrp.Problem{Name: name, Capacity: capacity, Metric: vrp.Exact, X: make([]float64, places), Y: make([]float64, places), Demand: make([]int32, places)}
	for j := range places {
		p.X[j], p.Y[j] = single(d.x[i*places+j]), single(d.y[i*places+j])
	}
	copy(p.Demand[d.depots:], d.linehaul[i*d.n:][:d.n])
	if d.v.Backhauls {
		p.Pickup = make([]int32, places)
		copy(p.Pickup[d.depots:], d.backhaul[i*d.n:][:d.n])
		if !d.v.Mixed {
			p.Backhauls = vrp.BackhaulsLast
		}
	}
	if d.v.Windows {
		p.Windows, p.Service = make([][]vrp.Window, places), make([]float64, places)
		for j := range places {
			p.Windows[j] = []vrp.Window{{From: 0, To: single(lastReturn)}}
			if c := j - d.depots; c >= 0 {
				at := i*d.n + c
				p.Windows[j][0] = vrp.Window{From: single(d.start[at]), To: single(d.start[at] + d.width[at])}
				p.Service[j] = single(d.service[at])
			}
		}
	}
	if d.depots == 1 && !d.v.Limit {
		p.Open = d.v.Open
		return p
	}
	if d.depots > 1 {
		p.Depots = d.depots
	}
	p.Capacity = 0
	for k := range d.depots {
		t := vrp.NewVehicleType(capacity)
		t.Start, t.End = k, k
		if d.v.Open {
			t.End = vrp.None
		}
		if d.v.Limit {
			t.MaxDistance = single(d.limit[i])
		}
		p.Fleet = append(p.Fleet, t)
	}
	return p
}
