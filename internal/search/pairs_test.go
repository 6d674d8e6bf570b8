package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// draft is a problem under construction, with its random numbers.
type draft struct {
	*vrp.Problem
	s  *model.Stream
	at int // the first customer
}

func (d *draft) below(n int) int { return d.s.IntN(n) }

// customers calls f for each customer, with the given chance in percent.
func (d *draft) customers(percent int, f func(v int)) {
	for v := d.at; v < len(d.Demand); v++ {
		if d.below(100) < percent {
			f(v)
		}
	}
}

// times is a list with a number from 1 to most at some customers.
func (d *draft) times(percent, most int) []float64 {
	out := make([]float64, len(d.Demand))
	d.customers(percent, func(v int) { out[v] = float64(1 + d.below(most)) })
	return out
}

func (d *draft) windows() [][]vrp.Window {
	if d.Windows == nil {
		d.Windows = make([][]vrp.Window, len(d.Demand))
	}
	return d.Windows
}

// each edits all vehicle types.
func (d *draft) each(f func(t *vrp.VehicleType)) {
	for i := range d.Fleet {
		f(&d.Fleet[i])
	}
}

// amounts fills one number per dimension.
func (d *draft) amounts(most int) []int32 {
	out := make([]int32, 1+len(d.Dimensions))
	for i := range out {
		out[i] = int32(d.below(most + 1))
	}
	return out
}

// mixedParts are what problems of TestEveryPairOfParts are mixed from. An entry may count on those
// before it.
var mixedParts = []struct {
	name string
	add  func(d *draft)
}{
	{"a second depot", func(*draft) {}}, // mixProblem numbers the places by it
	{"a second dimension", func(d *draft) {
		d.Dimensions = []vrp.Dimension{{Name: "weight", Delivery: make([]int32, len(d.Demand)), Pickup: make([]int32, len(d.Demand))}}
		d.customers(100, func(v int) { d.Dimensions[0].Delivery[v] = int32(d.below(4)) })
	}},
	{"a second vehicle type", func(d *draft) {
		t := vrp.NewVehicleType(int32(8 + d.below(8)))
		t.Count, t.FixedCost, t.Start, t.End = 1+d.below(2), float64(d.below(30)), d.below(d.DepotCount()), d.below(d.DepotCount())
		d.Fleet = append(d.Fleet, t)
	}},
	{"one vehicle of each type", func(d *draft) { d.each(func(t *vrp.VehicleType) { t.Count = 1 }) }},
	{"a capacity of the second dimension", func(d *draft) {
		d.each(func(t *vrp.VehicleType) {
			if d.Dimensions != nil {
				t.Capacity = append(slices.Clip(t.Capacity[:1]), int32(4+d.below(5)))
			}
		})
	}},
	{"reloads", func(d *draft) {
		d.each(func(t *vrp.VehicleType) {
			t.Reloads, t.Capacity[0] = []int{d.below(d.DepotCount())}, int32(5+d.below(4))
		})
	}},
	{"one reload at most", func(d *draft) {
		d.each(func(t *vrp.VehicleType) { t.Reloads, t.MaxReloads = []int{0}, 1 })
	}},
	{"another end", func(d *draft) { d.each(func(t *vrp.VehicleType) { t.End = d.below(d.DepotCount()) }) }},
	{"open ends", func(d *draft) { d.each(func(t *vrp.VehicleType) { t.End = vrp.None }) }},
	{"free starts", func(d *draft) { d.Fleet[0].Start = vrp.None }},
	{"a matrix without symmetry", func(d *draft) {
		n := len(d.Demand)
		d.Metric, d.Weights, d.X, d.Y = vrp.Explicit, make([]float64, n*n), nil, nil
		for i := range d.Weights {
			if i%(n+1) != 0 {
				d.Weights[i] = float64(1 + d.below(100))
			}
		}
	}},
	{"a profile with durations", func(d *draft) {
		n := len(d.Demand)
		p := vrp.Profile{Distance: make([]float64, n*n), Duration: make([]float64, n*n)}
		for i := range n * n {
			if i%(n+1) != 0 {
				p.Distance[i], p.Duration[i] = d.Dist(i/n, i%n), float64(1+d.below(60))
			}
		}
		d.Profiles = []vrp.Profile{p}
	}},
	{"a speed", func(d *draft) { d.Speed = float64(1+d.below(6)) / 2 }},
	{"service times", func(d *draft) { d.Service = d.times(70, 20) }},
	{"windows", func(d *draft) {
		w := d.windows()
		d.customers(60, func(v int) {
			from := float64(d.below(150))
			w[v] = []vrp.Window{{From: from, To: from + float64(5+d.below(100))}}
		})
	}},
	{"several windows", func(d *draft) {
		w := d.windows()
		d.customers(60, func(v int) {
			from := float64(d.below(60))
			w[v] = []vrp.Window{{From: from, To: from + 10}, {From: from + 40, To: from + 60}, {From: from + 90, To: from + 300}}
		})
	}},
	{"windows of depots", func(d *draft) {
		d.windows()[0] = []vrp.Window{{From: float64(d.below(20)), To: float64(150 + d.below(200))}}
	}},
	{"soft windows", func(d *draft) { d.Late = d.times(50, 4) }},
	{"setup times", func(d *draft) { d.Setup = d.times(60, 8) }},
	{"release times", func(d *draft) { d.Release = d.times(50, 60) }},
	{"pickups", func(d *draft) {
		d.Pickup = make([]int32, len(d.Demand))
		d.customers(40, func(v int) { d.Pickup[v] = int32(1 + d.below(5)) })
	}},
	{"pickups of the second dimension", func(d *draft) {
		if d.Dimensions != nil {
			d.customers(50, func(v int) { d.Dimensions[0].Pickup[v] = int32(d.below(3)) })
		}
	}},
	{"a shipment", func(d *draft) { d.ship(d.at, d.at+1) }},
	{"a second shipment", func(d *draft) {
		if n := len(d.Demand); n-2 > d.at+1 {
			d.ship(n-1, n-2)
		}
	}},
	{"last in first out", func(d *draft) { d.LIFO = true }},
	{"optional customers", func(d *draft) {
		d.Optional, d.Prize = make([]bool, len(d.Demand)), d.times(80, 80)
		d.customers(60, func(v int) { d.Optional[v] = true })
	}},
	{"a group", func(d *draft) { d.Groups = []vrp.Group{{Members: d.free(2)}} }},
	{"a required group", func(d *draft) {
		if d.Groups == nil {
			d.Groups = []vrp.Group{{Members: d.free(2)}}
		}
		d.Groups[0].Required = true
	}},
	{"skills", func(d *draft) {
		d.Needs = make([][]int32, len(d.Demand))
		d.Needs[len(d.Demand)-1] = []int32{3}
		d.Fleet[0].Skills = []int32{3}
	}},
	{"priorities", func(d *draft) {
		d.Priority = make([]int, len(d.Demand))
		d.customers(60, func(v int) { d.Priority[v] = d.below(4) })
	}},
	{"allowed customers", func(d *draft) {
		d.customers(75, func(v int) { d.Fleet[0].Allowed = append(d.Fleet[0].Allowed, int32(v)) })
	}},
	{"backhauls last", func(d *draft) { d.Backhauls = vrp.BackhaulsLast }},
	{"linehauls first", func(d *draft) { d.Backhauls = vrp.LinehaulFirst }},
	{"a limit of duration", func(d *draft) {
		d.each(func(t *vrp.VehicleType) { t.MaxDuration = float64(120 + d.below(200)) })
	}},
	{"a limit of distance", func(d *draft) {
		d.each(func(t *vrp.VehicleType) { t.MaxDistance = float64(120 + d.below(200)) })
	}},
	{"a limit of stops", func(d *draft) { d.each(func(t *vrp.VehicleType) { t.MaxStops = 2 + d.below(3) }) }},
	{"fixed costs", func(d *draft) { d.each(func(t *vrp.VehicleType) { t.FixedCost = float64(d.below(60)) }) }},
	{"costs of duration", func(d *draft) {
		d.each(func(t *vrp.VehicleType) { t.DurationCost, t.DistanceCost = float64(1+d.below(3)), float64(d.below(3)) })
	}},
	{"shifts", func(d *draft) {
		d.each(func(t *vrp.VehicleType) {
			t.Shift = vrp.Window{From: float64(d.below(30)), To: float64(200 + d.below(200))}
		})
	}},
	{"latest starts", func(d *draft) {
		d.each(func(t *vrp.VehicleType) { t.LatestStart = t.Shift.From + float64(d.below(60)) })
	}},
	{"a break", func(d *draft) {
		d.Fleet[0].Breaks = append(d.Fleet[0].Breaks, vrp.Break{Windows: []vrp.Window{{From: 10, To: 120}}, Duration: float64(1 + d.below(15))})
	}},
	{"a break that limits the load", func(d *draft) {
		d.Fleet[0].Breaks = append(d.Fleet[0].Breaks, vrp.Break{Windows: []vrp.Window{{From: 20, To: 260}}, Duration: 5, MaxLoad: []int32{int32(2 + d.below(6))}})
	}},
	{"initial loads", func(d *draft) {
		d.each(func(t *vrp.VehicleType) {
			t.InitialLoad = append(t.InitialLoad, d.amounts(3)...)
			for i := range t.InitialLoad {
				if i < len(t.Capacity) {
					t.InitialLoad[i] = min(t.InitialLoad[i], t.Capacity[i])
				}
			}
		})
	}},
	{"fewest vehicles", func(d *draft) { d.Objective = vrp.FewestVehicles }},
	{"the shortest longest route", func(d *draft) { d.Objective = vrp.ShortestRoute }},
}

// ship makes two customers the halves of a shipment.
func (d *draft) ship(from, to int) {
	s := vrp.Shipment{Pickup: int32(from), Delivery: int32(to), Amount: make([]int32, 1+len(d.Dimensions))}
	for i := range s.Amount {
		s.Amount[i] = int32(1 + d.below(4))
	}
	d.Shipments = append(d.Shipments, s)
}

// free lists customers at the end that are in no shipment.
func (d *draft) free(count int) (out []int32) {
	for v := len(d.Demand) - 1; v >= d.at && len(out) < count; v-- {
		if !slices.ContainsFunc(d.Shipments, func(s vrp.Shipment) bool { return int(s.Pickup) == v || int(s.Delivery) == v }) {
			out = append(out, int32(v))
		}
	}
	return out
}

// settle takes out what contradicts: halves of shipments have no amounts of their own and are both
// optional or neither, and with backhauls last a customer has a delivery or a pickup.
func (d *draft) settle() {
	for _, s := range d.Shipments {
		for _, v := range []int32{s.Pickup, s.Delivery} {
			d.Demand[v] = 0
			if d.Pickup != nil {
				d.Pickup[v] = 0
			}
		}
		if d.Optional != nil {
			d.Optional[s.Delivery] = d.Optional[s.Pickup]
		}
	}
	if d.Backhauls == vrp.Mixed {
		return
	}
	for v := d.at; v < len(d.Demand); v++ {
		if d.Pickup == nil || d.Pickup[v] == 0 {
			if d.Dimensions != nil && d.Dimensions[0].Pickup != nil {
				d.Dimensions[0].Pickup[v] = 0
			}
			continue
		}
		d.Demand[v] = 0
		if d.Dimensions != nil {
			d.Dimensions[0].Delivery[v] = 0
		}
	}
}

// mixProblem is problem i: the parts of pair i, any other with a chance of 1 in 12, and two to
// five customers.
func mixProblem(i int) (*vrp.Problem, []string) {
	s := model.NewStream(0x9a125, uint64(i))
	n := len(mixedParts)
	pair := i % (n * (n - 1) / 2)
	first := 0
	for pair >= n-1-first {
		pair -= n - 1 - first
		first++
	}
	second := first + 1 + pair
	has := make([]bool, n)
	for k := range has {
		has[k] = k == first || k == second || s.IntN(12) == 0
	}
	depots := 1
	if has[0] {
		depots = 2
	}
	places := depots + 2 + s.IntN(4)
	d := &draft{Problem: &vrp.Problem{Name: strconv.Itoa(i), Depots: depots, Demand: make([]int32, places), X: make([]float64, places), Y: make([]float64, places), Metric: vrp.Exact}, s: &s, at: depots}
	for v := range places {
		d.X[v], d.Y[v] = float64(s.IntN(50)), float64(s.IntN(50))
		if v >= depots {
			d.Demand[v] = int32(1 + s.IntN(5))
		}
	}
	t := vrp.NewVehicleType(int32(8 + s.IntN(8)))
	t.Count = 1 + s.IntN(3)
	d.Fleet = []vrp.VehicleType{t}
	var names []string
	for k, part := range mixedParts {
		if has[k] {
			part.add(d)
			names = append(names, part.name)
		}
	}
	d.settle()
	return d.Problem, names
}

// optimumOf is the cost of the best routes by enumeration; ok is false where there are none.
func optimumOf(ctx context.Context, p *vrp.Problem) (best *vrp.Evaluation, err error) {
	if p.Objective == vrp.ShortestRoute || p.N() <= 3 {
		best, _ = bruteForce(p)
		return best, nil
	}
	s, _, err := vrp.OptimalParts(ctx, p)
	if errors.Is(err, vrp.ErrNoRoutes) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return vrp.Evaluate(p, s)
}

// mixFault solves problem i, from nothing and from routes of which some are fixed, and says what is
// wrong with the results. decided is false where enumeration takes too long.
func mixFault(ctx context.Context, i int) (decided, optimal bool, fault error) {
	p, names := mixProblem(i)
	says := func(format string, args ...any) error {
		return fmt.Errorf("problem %d (%s): %s", i, strings.Join(names, ", "), fmt.Sprintf(format, args...))
	}
	if err := p.Check(); err != nil {
		return false, false, nil // a mix that contradicts itself
	}
	if p.Objective == vrp.ShortestRoute && p.N() > 4 {
		p.Objective = vrp.MinCost
	}
	r, err := Solve(ctx, p, Options{Iterations: 1500, Seed: 1})
	if err != nil {
		return true, false, says("%v", err)
	}
	if bad := broken(p, r.Solution); bad != nil {
		return true, false, says("%v", bad)
	}
	if err := fixedFault(ctx, p, r); err != nil {
		return true, false, says("%v", err)
	}
	best, err := optimumOf(ctx, p)
	if err != nil {
		return true, false, says("enumeration: %v", err)
	}
	if best == nil {
		if len(r.Unserved) == 0 {
			return true, false, says("the search serves what no routes can")
		}
		return true, true, nil
	}
	e, err := vrp.Evaluate(p, r.Solution)
	if err != nil {
		return true, false, says("%v", err)
	}
	if len(r.Unserved) == 0 && e.Better(best, p.Objective) {
		return true, false, says("found %v at %g, the enumeration %g", r.Solution, e.Cost, best.Cost)
	}
	worse := func() bool { return len(r.Unserved) > 0 || best.Better(e, p.Objective) }
	if worse() && r.Proven {
		return true, false, says("proven at %g, the enumeration finds %g", e.Cost, best.Cost)
	}
	// A result that is not proven, or that lists required customers as unserved, says that there
	// may be better ones.
	return true, !worse(), nil
}

// fixedFault solves again from routes of which a beginning is fixed each, and looks for them.
func fixedFault(ctx context.Context, p *vrp.Problem, r *Result) error {
	if len(r.Solution.Routes) == 0 {
		return nil
	}
	fixed := make([]int32, len(r.Solution.Routes))
	for i, route := range r.Solution.Routes {
		fixed[i] = int32(i%3) - 1
		if fixed[i] > int32(len(route)) {
			fixed[i] = -1
		}
	}
	again, err := Solve(ctx, p, Options{Iterations: 100, Seed: 2, Start: &r.Solution, Fixed: fixed})
	if err != nil {
		if strings.Contains(err.Error(), "less than a unit") {
			return nil
		}
		return fmt.Errorf("with fixed routes: %w", err)
	}
	taken := make([]bool, len(again.Solution.Routes))
	for i, route := range r.Solution.Routes {
		n := int(fixed[i])
		if n < 0 {
			n = len(route)
		}
		if n == 0 {
			continue
		}
		at := -1
		for k, o := range again.Solution.Routes {
			if !taken[k] && len(o) >= n && slices.Equal(o[:n], route[:n]) && (fixed[i] >= 0 || len(o) == n) && kindOf(again.Solution, k) == kindOf(r.Solution, i) {
				at = k
			}
		}
		if at < 0 {
			return fmt.Errorf("route %v is fixed for %d stops, and is not among %v", route, fixed[i], again.Solution.Routes)
		}
		taken[at] = true
	}
	return nil
}

// TestEveryPairOfParts: small problems with each pair of parts, and others mixed in, end with valid
// routes that cost what the best of all routes do. HAUL_PAIRS sets how many, HAUL_PAIRS_FROM the
// first; the parts of all pairs stand in the first n(n-1)/2.
func TestEveryPairOfParts(t *testing.T) {
	count, from := 400, 0
	if testing.Short() {
		count = 100
	}
	for name, v := range map[string]*int{"HAUL_PAIRS": &count, "HAUL_PAIRS_FROM": &from} {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			*v = n
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	next, decided, optimal := from, 0, 0
	pairs := len(mixedParts) * (len(mixedParts) - 1) / 2
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= from+count {
					return
				}
				at := i
				if count < pairs { // a sample of all pairs
					at = i * 7919 % math.MaxInt32
				}
				did, best, fault := mixFault(t.Context(), at)
				mu.Lock()
				if did {
					decided++
				}
				if best {
					optimal++
				}
				if fault != nil {
					t.Error(fault)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if worse := decided - optimal; worse > 2+decided/200 {
		t.Errorf("%d of %d problems end without proof, or with customers unserved, and the best are better", worse, decided)
	}
	if decided < count/2 {
		t.Errorf("of %d problems %d were decided", count, decided)
	}
	t.Logf("%d pairs of parts; %d problems, of which %d were decided and %d optimal", pairs, count, decided, optimal)
}
