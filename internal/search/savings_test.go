package search

import (
	"haul/internal/vrp"
	"haul/internal/vrp/files"

	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haul/internal/rng"
	"haul/internal/search/construct"
	"haul/internal/search/model"
	"haul/internal/search/neighbour"
)

func savings(t interface{ Fatal(...any) }, p *vrp.Problem, perturb int) vrp.Solution {
	s, err := savingsFor(context.Background(), p, perturb)
	if err != nil {
		t.Fatal(err)
	}
	if err := vrp.Validate(p, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSavingsNearBestKnown(t *testing.T) {
	for _, c := range []struct {
		name             string
		best             float64
		joined, searched float64 // allowed gaps: without iterations, default budget
	}{{"E-n22-k4", 375, 0.08, 0.01}, {"X-n101-k25", 27591, 0.08, 0.02}, {"E-n13-k4", 247, 0.2, 0.03}} {
		p := load(t, c.name, files.Options{})
		for perturb, limit := range map[int]float64{0: c.joined, perturbAtMost: c.searched} {
			cost := p.Cost(savings(t, p, perturb))
			if gap := cost/c.best - 1; gap > limit || gap < 0 {
				t.Errorf("%s with %d iterations: cost %g, %.2f %% over %g", c.name, perturb, cost, 100*gap, c.best)
			}
		}
	}
}

func TestSavingsDeterministic(t *testing.T) {
	p := load(t, "X-n101-k25", files.Options{})
	if diff := cmp.Diff(savings(t, p, 500), savings(t, p, 500)); diff != "" {
		t.Error(diff)
	}
}

// Whatever the metric, routes are valid, never worse for searching on, and never below the optimum.
func TestSavingsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawSmall(t, 9)
		first, last := p.Cost(savings(t, p, 0)), p.Cost(savings(t, p, 50))
		if last > first*(1+1e-9) {
			t.Fatalf("searching on worsened %g to %g", first, last)
		}
		best, _, err := vrp.OptimalSolutions(context.Background(), []*vrp.Problem{p}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if last < best[0]*(1-1e-6) {
			t.Fatalf("cost %g is below the optimum %g", last, best[0])
		}
	})
}

// randomProblem is n customers on a fine grid in the unit square; some share a place.
func randomProblem(n int, index uint64) *vrp.Problem {
	p := &vrp.Problem{Capacity: 30, Metric: vrp.Exact, X: make([]float64, n+1), Y: make([]float64, n+1), Demand: make([]int32, n+1)}
	for i := range n + 1 {
		w := rng.At(7, index, uint32(i), rng.Instances)
		p.X[i], p.Y[i] = float64(rng.Below(w[0], 100))/100, float64(rng.Below(w[1], 100))/100
		if i > 0 {
			p.Demand[i] = int32(1 + rng.Below(w[2], 9))
		}
	}
	return p
}

func TestNeighboursTreeAgreesWithScan(t *testing.T) {
	p := randomProblem(model.BruteNodes+300, 0)
	nb, err := neighbour.NewNeighbours(context.Background(), model.NewMetricTable(p), 20)
	if err != nil {
		t.Fatal(err)
	}
	for v := 1; v <= p.N(); v++ {
		var all []neighbour.Neighbour
		for w := 1; w <= p.N(); w++ {
			if w != v {
				all = append(all, neighbour.Neighbour{V: int32(w), Cost: p.Dist(v, w)})
			}
		}
		slices.SortFunc(all, neighbour.ByCost)
		var want []int32
		for _, w := range all[:20] {
			want = append(want, w.V)
		}
		if diff := cmp.Diff(want, nb.Of(int32(v))); diff != "" {
			t.Fatalf("customer %d: %s", v, diff)
		}
	}
}

// Past the sizes that tabulate distances and offer all pairs, the same rules hold.
func TestSavingsLarge(t *testing.T) {
	p := randomProblem(model.MatrixNodes+500, 1)
	table := model.NewMetricTable(p)
	near, err := neighbour.NewNeighbours(context.Background(), table, model.SavingsNear)
	if err != nil {
		t.Fatal(err)
	}
	joined, _ := construct.Savings(t.Context(), table, near)
	start, end := p.Cost(joined), p.Cost(savings(t, p, 500))
	if end >= start {
		t.Errorf("search did not improve on savings: %g to %g", start, end)
	}
}

func TestSavingsStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Savings(ctx, load(t, "X-n101-k25", files.Options{})); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	p := &vrp.Problem{Name: "small", Capacity: 10, Metric: vrp.Rounded, X: []float64{0, 3, 6, 1}, Y: []float64{0, 4, 8, 1}, Demand: []int32{0, 5, 6, 7}}
	p.Demand[2] = 11
	if _, err := Savings(context.Background(), p); err == nil || err.Error() != "savings: demand 11 of customer 2 is over the capacity 10" {
		t.Errorf("got %v", err)
	}
}

func BenchmarkSavings(b *testing.B) {
	for _, c := range []struct {
		name    string
		p       []*vrp.Problem
		perturb int
	}{
		{"N=10/descent", many(10), 0},
		{"N=10/default", many(10), 200},
		{"N=100/descent", many(100), 0},
		{"X-n101-k25/default", []*vrp.Problem{load(b, "X-n101-k25", files.Options{})}, 20000},
	} {
		b.Run(c.name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if _, err := savingsFor(context.Background(), c.p[i%len(c.p)], c.perturb); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func many(n int) []*vrp.Problem {
	list := make([]*vrp.Problem, 64)
	for i := range list {
		list[i] = randomProblem(n, uint64(i))
	}
	return list
}

// atDepot has two pairs of customers on either side of the depot, 1 and 2 against 6 and 7, and four
// at the depot itself.
func atDepot() *vrp.Problem {
	return &vrp.Problem{Capacity: 10, Metric: vrp.Rounded, Demand: []int32{0, 3, 3, 1, 1, 1, 3, 3, 1},
		X: []float64{0, 10, 10, 0, 0, 0, -10, -10, 0}, Y: []float64{0, 0, 5, 0, 0, 0, 0, -5, 0}}
}

// Customers at the depot's place had routes of their own, which cost nothing and need a vehicle
// each.
func TestSavingsGiveNoVehicleToCustomersAtTheDepot(t *testing.T) {
	p := atDepot()
	for _, perturb := range []int{0, 2000} {
		s := savings(t, p, perturb)
		if len(s.Routes) != 2 || p.Cost(s) != 52 {
			t.Errorf("%d iterations: %d routes at %v, want 2 at 52: %v", perturb, len(s.Routes), p.Cost(s), s.Routes)
		}
	}
}

// drawSmall is a plain problem of any metric that tables and coordinates have.
func drawSmall(t *rapid.T, maxN int) *vrp.Problem {
	n := rapid.IntRange(1, maxN).Draw(t, "n")
	p := &vrp.Problem{Capacity: rapid.Int32Range(9, 30).Draw(t, "capacity"), Metric: vrp.Metric(rapid.IntRange(0, 3).Draw(t, "metric"))}
	p.Demand = append([]int32{0}, rapid.SliceOfN(rapid.Int32Range(0, 9), n, n).Draw(t, "demand")...)
	if p.Metric != vrp.Explicit {
		coord := rapid.Float64Range(-1000, 1000)
		p.X, p.Y = rapid.SliceOfN(coord, n+1, n+1).Draw(t, "x"), rapid.SliceOfN(coord, n+1, n+1).Draw(t, "y")
		return p
	}
	// In thousandths: legs below 2^-55 of the longest are none to the exact method.
	weight := rapid.Map(rapid.Float64Range(0, 1e6), func(w float64) float64 { return math.Round(1000*w) / 1000 })
	p.Weights = rapid.SliceOfN(weight, (n+1)*(n+1), (n+1)*(n+1)).Draw(t, "weights")
	if rapid.Bool().Draw(t, "symmetric") {
		for i := range n + 1 {
			p.Weights[i*(n+1)+i] = 0
			for j := range i {
				p.Weights[i*(n+1)+j] = p.Weights[j*(n+1)+i]
			}
		}
	}
	return p
}
