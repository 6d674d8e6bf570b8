package search

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/vrp"
	"haul/internal/vrp/testset"
)

// few is a problem of some customers of one of RouteFinder's, nearer to each other and with
// windows so much wider that many orders of many sets of them are routes.
func few(t *testing.T, name string, instance, customers int, wider float64) *vrp.Problem {
	t.Helper()
	set, err := testset.RouteFinder(name, 50)
	if err != nil {
		t.Fatal(err)
	}
	p := *set.Problems[instance]
	n := p.DepotCount() + customers
	p.Demand, p.X, p.Y, p.Service = slices.Clone(p.Demand[:n]), slices.Clone(p.X[:n]), slices.Clone(p.Y[:n]), slices.Clone(p.Service[:n])
	for v := range n {
		p.X[v], p.Y[v] = 0.3*p.X[v], 0.3*p.Y[v]
	}
	far := 0.0
	for v := p.DepotCount(); v < n; v++ {
		for d := range p.DepotCount() {
			far = max(far, math.Hypot(p.X[v]-p.X[d], p.Y[v]-p.Y[d]))
		}
	}
	if p.Pickup != nil {
		p.Pickup = slices.Clone(p.Pickup[:n])
		for v := p.DepotCount(); v < n; v += 2 { // half of them, or few routes have two pickups
			p.Demand[v], p.Pickup[v] = 0, max(p.Demand[v], p.Pickup[v])
		}
	}
	p.Windows = slices.Clone(p.Windows[:n])
	for v := p.DepotCount(); v < n; v++ {
		w := p.Windows[v][0]
		p.Windows[v] = []vrp.Window{{From: max(0, w.From-wider), To: w.To + wider}}
		p.Service[v] += wider // so that no route comes back
	}
	p.Fleet, p.Open, p.Vehicles = slices.Clone(p.Types()), false, 0
	for i := range p.Fleet {
		p.Fleet[i].Capacity = []int32{16} // of 40: some routes are full
		if !math.IsInf(p.Fleet[i].MaxDistance, 1) {
			p.Fleet[i].MaxDistance = 2.4 * far // hardly more than there and back
			if strings.Contains(name, "ovrp") {
				p.Fleet[i].MaxDistance = 1.3 * far
			}
		}
	}
	return &p
}

// allRoutes is every order of every set of customers that a vehicle may drive, judged by the
// validator, with its cost.
func allRoutes(t *testing.T, p *vrp.Problem, kind int32) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	var line []int32
	var used uint
	var grow func()
	grow = func() {
		for v := p.DepotCount(); v < len(p.Demand); v++ {
			if used>>v&1 != 0 {
				continue
			}
			line = append(line, int32(v))
			used |= 1 << v
			s := vrp.Solution{Routes: [][]int32{line}, Types: []int32{kind}}
			if broken(p, s) == nil {
				e, err := vrp.Evaluate(p, s)
				if err != nil {
					t.Fatal(err)
				}
				out[fmt.Sprint(line)] = e.Distance
			}
			grow()
			used &^= 1 << v
			line = line[:len(line)-1]
		}
	}
	grow()
	return out
}

// At any prices and fines, the pricer lists exactly the routes below a reduced cost that the
// validator lets pass, and its cheapest ending is the cheapest of them.
func TestPricerListsEveryRoute(t *testing.T) {
	never := func() bool { return false }
	names := []string{"vrptw", "vrpbltw", "vrpmbltw", "ovrpbtw", "mdvrptw", "mdovrpmbtw", "ovrpltw", "vrpmbtw"}
	for i := range 4 * len(names) {
		name := names[i%len(names)]
		p := few(t, name, 3+i, 6, 0.4)
		c := flatten(t, p)
		if !c.provable() {
			t.Fatalf("%s: its routes have no prices", name)
		}
		s := newStream(4, uint64(i))
		for kind := range c.kinds {
			all := allRoutes(t, p, int32(kind))
			if len(all) < 10 {
				t.Fatalf("%s kind %d has %d routes: too few to tell", name, kind, len(all))
			}
			x := newPricer(c.model, kind)
			if x == nil || x.again {
				t.Fatalf("%s: a route may come back to a customer", name)
			}
			for draw := range 40 {
				at := &tariff{price: make([]float64, 6), cuts: make([]uint64, 6)}
				for v := range at.price {
					at.price[v] = 0.4 * s.unit()
				}
				for k := range draw % 4 {
					at.fines = append(at.fines, 0.2*s.unit())
					for range 3 {
						at.cuts[s.below(6)] |= 1 << k
					}
				}
				below := 0.6*s.unit() - 0.3
				want, least := map[string]bool{}, math.Inf(1)
				for key, way := range all {
					reduced := way
					var odd uint64
					for _, v := range ints(t, key) {
						v -= int32(p.DepotCount())
						reduced -= at.price[v]
						for k, fine := range at.fines {
							if at.cuts[v]>>k&1 != 0 {
								if odd ^= 1 << k; odd>>k&1 == 0 {
									reduced += fine
								}
							}
						}
					}
					least = min(least, reduced)
					if math.Abs(reduced-below) < 1e-6 {
						below += 1e-5
					}
					want[key] = reduced < below
				}
				if !x.fill(at, false, never) {
					t.Fatal("it stopped")
				}
				got := math.Inf(1)
				for v := range x.at {
					for _, id := range x.at[v] {
						if cost, ok := x.whole(&x.ends[id]); ok {
							got = min(got, cost)
						}
					}
				}
				if math.Abs(got-least) > 1e-6 {
					t.Errorf("%s kind %d: the cheapest route costs %g, the pricer's %g", name, kind, least, got)
				}
				found := 0
				x.all(below, never, func(line []int32, dist int64) bool {
					stops := make([]int32, len(line))
					for i, v := range line {
						stops[i] = c.tasks[v]
					}
					key := fmt.Sprint(stops)
					if way, ok := all[key]; !ok || !want[key] || math.Abs(way-float64(float64(dist)*x.k.perDist)) > 1e-6 {
						t.Errorf("%s kind %d: route %s of %d is listed: %v %g", name, kind, key, dist, ok, way)
					}
					found++
					return true
				})
				for _, ok := range want {
					if ok {
						found--
					}
				}
				if found != 0 {
					t.Errorf("%s kind %d: %d routes too many or too few below %g", name, kind, found, below)
				}
			}
		}
	}
}

func ints(t *testing.T, key string) (out []int32) {
	t.Helper()
	at := int32(0)
	digits := false
	for _, r := range key + " " {
		if r >= '0' && r <= '9' {
			at, digits = 10*at+r-'0', true
		} else if digits {
			out = append(out, at)
			at, digits = 0, false
		}
	}
	return out
}

// A search that says so has found the least cost of all solutions, and says so of every problem as
// small as these.
func TestProvenIsTheOptimum(t *testing.T) {
	for i, name := range []string{"vrptw", "vrpbltw", "mdvrpmbtw", "ovrptw", "mdovrpbltw", "vrpmbltw"} {
		p := few(t, name, 20+i, 7, 0.4)
		depots := p.DepotCount()
		// The cheapest route of every set of customers, then the cheapest sets.
		least := make([]float64, 1<<7)
		for set := range least {
			least[set] = math.Inf(1)
		}
		for kind := range p.Types() {
			for key, way := range allRoutes(t, p, int32(kind)) {
				set := 0
				for _, v := range ints(t, key) {
					set |= 1 << (int(v) - depots)
				}
				least[set] = min(least[set], way)
			}
		}
		best := make([]float64, 1<<7)
		for set := 1; set < len(best); set++ {
			best[set] = math.Inf(1)
			for part := set; part > 0; part = (part - 1) & set {
				best[set] = min(best[set], least[part]+best[set&^part])
			}
		}
		var first *Result
		for _, workers := range []int{1, 3} {
			r, err := Solve(context.Background(), p, Options{Iterations: 2000, Seed: 2, Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			if !r.Proven || math.Abs(r.Cost-best[len(best)-1]) > 1e-5 || vrp.Validate(p, r.Solution) != nil {
				t.Errorf("%s: %g (proven: %v) of %g, %v", name, r.Cost, r.Proven, best[len(best)-1], vrp.Validate(p, r.Solution))
			}
			if first == nil {
				first = r
			} else if r.Iterations != first.Iterations || r.Cost != first.Cost {
				t.Errorf("%s: %d workers find %g in %d iterations, one %g in %d", name, workers, r.Cost, r.Iterations, first.Cost, first.Iterations)
			}
		}
	}
}
