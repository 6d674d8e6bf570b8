package prove

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"

	"haul/internal/search/model"
)

// At any prices and fines, the pricer lists exactly the routes below a reduced cost that the
// validator lets pass, and its cheapest ending is the cheapest of them.
func TestPricerListsEveryRoute(t *testing.T) {
	never := func() bool { return false }
	names := []string{"vrptw", "vrpbltw", "vrpmbltw", "ovrpbtw", "mdvrptw", "mdovrpmbtw", "ovrpltw", "vrpmbtw"}
	for i := range 4 * len(names) {
		name := names[i%len(names)]
		p := Few(t, name, 3+i, 6, 0.4)
		m := model.Compile(p)
		s := model.NewStream(4, uint64(i))
		for kind := range m.Types {
			all := AllRoutes(t, p, int32(kind))
			if len(all) < 10 {
				t.Fatalf("%s kind %d has %d routes: too few to tell", name, kind, len(all))
			}
			x := newPricer(m, kind)
			if x == nil || x.again {
				t.Fatalf("%s: a route may come back to a customer", name)
			}
			for draw := range 40 {
				at := &duals{price: make([]float64, 6), cuts: make([]uint64, 6)}
				for v := range at.price {
					at.price[v] = 0.4 * s.Float()
				}
				for k := range draw % 4 {
					at.fines = append(at.fines, 0.2*s.Float())
					for range 3 {
						at.cuts[s.IntN(6)] |= 1 << k
					}
				}
				below := 0.6*s.Float() - 0.3
				want, least := map[string]bool{}, math.Inf(1)
				for key, way := range all {
					reduced := way
					var odd uint64
					for _, v := range Ints(t, key) {
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
						stops[i] = m.Tasks[v]
					}
					key := fmt.Sprint(stops)
					if way, ok := all[key]; !ok || !want[key] || math.Abs(way-float64(float64(dist)*x.k.PerDist)) > 1e-6 {
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

// Among random columns, cuts and branches find the cheapest choice, and no choice costs less than
// the bound at any time. Columns of two and three tasks leave fractions.
func TestProverChoosesTheBest(t *testing.T) {
	const n = 12
	never := func() bool { return false }
	branched, cut := 0, 0
	for draw := range 150 {
		s := model.NewStream(9, uint64(draw))
		x := &Prover{m: &model.Compiled{Leg: 1}, byKey: map[uint64]int32{}, stop: never, same: 1e-6}
		alone := make([]float64, n)
		for i := range alone {
			alone[i] = 20
			x.Routes = append(x.Routes, Listed{[]int32{int32(i)}, -1})
		}
		x.lp = newLP(alone, 1e-7)
		least := make([]float64, 1<<n)
		for set := range least {
			least[set] = math.Inf(1)
			if bits.OnesCount(uint(set)) == 1 {
				least[set] = 20
			}
		}
		for range 40 + 20*(draw%8) {
			set := 0
			for range 2 + s.IntN(4) {
				set |= 1 << s.IntN(n)
			}
			var line []int32
			for v := range int32(n) {
				if set>>v&1 != 0 {
					line = append(line, v)
				}
			}
			cost := float64(draw%3+len(line)) + s.Float()
			least[set] = min(least[set], cost)
			x.Offer(line, 0, cost, s.IntN(2) == 0)
		}
		cheapest := func() float64 {
			best := make([]float64, 1<<n)
			for set := 1; set < len(best); set++ {
				best[set] = math.Inf(1)
				for part := set; part > 0; part = (part - 1) & set {
					best[set] = min(best[set], least[part]+best[set&^part])
				}
			}
			return best[len(best)-1]
		}
		want := cheapest()
		x.primal(never)
		if e := x.error(); e > 1e-7 {
			t.Errorf("draw %d: the basis is off by %g", draw, e)
		}
		for j := range int32(len(x.Cost)) {
			if r := x.reduced(j); r < -1e-6 {
				t.Errorf("draw %d: column %d is worth %g more than its prices", draw, j, -r)
			}
		}
		for _, y := range x.price[:n] {
			if y < -1e-6 {
				t.Errorf("draw %d: a task's price is %g", draw, y)
			}
		}
		if x.bound() > want+1e-6 {
			t.Errorf("draw %d: the bound is %g, the best costs %g", draw, x.bound(), want)
		}
		root := x.bound()
		// Just above the best there is one solution to be found, just below none.
		if x.close(want - 1e-4) {
			cut++
		} else {
			if x.bound() > want+1e-6 {
				t.Errorf("draw %d: with cuts the bound is %g, the best costs %g", draw, x.bound(), want)
			}
			if found, _, all := x.branch(want - 1e-4); !all || found != nil {
				t.Errorf("draw %d: a choice below %g: %v", draw, want, found)
			}
			branched++
		}
		y := &Prover{m: x.m, byKey: map[uint64]int32{}, stop: never, same: 1e-6, Routes: nil}
		y.lp = newLP(alone, 1e-7)
		for i := range alone {
			y.Routes = append(y.Routes, Listed{[]int32{int32(i)}, -1})
		}
		for set, cost := range least {
			var line []int32
			for v := range int32(n) {
				if set>>v&1 != 0 {
					line = append(line, v)
				}
			}
			if len(line) > 0 && cost < 20 {
				y.Offer(line, 0, cost, false)
			}
		}
		above := []float64{0.01, 0.2, 1}[draw%3]
		fewer := func() {
			if draw%2 == 0 {
				// All others are only found when they are wanted.
				y.Active = slices.DeleteFunc(y.Active, func(j int32) bool { return !y.in[j] })
				y.use(y.Active, nil)
			}
		}
		y.primal(never)
		fewer()
		if y.close(want + above) {
			t.Fatalf("draw %d: nothing below %g", draw, want+above)
		}
		fewer()
		found, cost, all := y.branch(want + above)
		if !all || found == nil || math.Abs(cost+y.same-want) > 1e-5 {
			t.Errorf("draw %d: the best choice costs %g, found %g (root %g)", draw, want, cost, root)
		}
		covered, tasks := 0, 0
		for _, j := range found {
			for _, v := range y.Routes[j].line {
				covered |= 1 << v
				tasks++
			}
		}
		if covered != 1<<n-1 || tasks != n {
			t.Errorf("draw %d: the choice leaves somebody out, or has him twice", draw)
		}
	}
	if branched < 20 || cut < 20 {
		t.Errorf("%d draws needed branches, %d were closed by cuts: too few to tell", branched, cut)
	}
}
