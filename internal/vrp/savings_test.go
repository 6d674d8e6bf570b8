package vrp

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haul/internal/rng"
)

func load(t testing.TB, name string) *Problem {
	t.Helper()
	p, err := LoadProblem("testdata/"+name+".vrp", ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func savings(t interface{ Fatal(...any) }, p *Problem, perturb int) Solution {
	s, err := SavingsWith(context.Background(), p, SavingsOptions{Perturb: perturb})
	if err != nil {
		t.Fatal(err)
	}
	if err := Validate(p, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSavingsNearBestKnown(t *testing.T) {
	for _, c := range []struct {
		name              string
		best              float64
		descent, searched float64 // allowed gaps: local optimum, default budget
	}{{"E-n22-k4", 375, 0.03, 0.01}, {"X-n101-k25", 27591, 0.06, 0.02}, {"E-n13-k4", 247, 0.03, 0.03}} {
		p := load(t, c.name)
		for perturb, limit := range map[int]float64{0: c.descent, DefaultPerturb(p.N()): c.searched} {
			cost := p.Cost(savings(t, p, perturb))
			if gap := cost/c.best - 1; gap > limit || gap < 0 {
				t.Errorf("%s with %d iterations: cost %g, %.2f %% over %g", c.name, perturb, cost, 100*gap, c.best)
			}
		}
	}
}

func TestSavingsDeterministic(t *testing.T) {
	p := load(t, "X-n101-k25")
	if diff := cmp.Diff(savings(t, p, 500), savings(t, p, 500)); diff != "" {
		t.Error(diff)
	}
}

// Whatever the metric, routes are valid, never worse for searching on, and never below the optimum.
func TestSavingsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, 9)
		first, last := p.Cost(savings(t, p, 0)), p.Cost(savings(t, p, 50))
		if last > first*(1+1e-9) {
			t.Fatalf("searching on worsened %g to %g", first, last)
		}
		best, _, err := OptimalSolutions(context.Background(), []*Problem{p}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if last < best[0]*(1-1e-6) {
			t.Fatalf("cost %g is below the optimum %g", last, best[0])
		}
	})
}

// Every move's delta is the change of cost that applying it makes, and the mirrors stay true.
func TestMoveDeltas(t *testing.T) {
	var kinds [moveHeads + 1]int
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, 14)
		table := newMetricTable(p)
		near, err := newNeighbours(context.Background(), table, searchNear)
		if err != nil {
			t.Fatal(err)
		}
		s := newTours(table, near)
		s.set(oneEach(p.N()))
		l := newDescent(s)
		for _, u := range rapid.SliceOfN(rapid.Int32Range(1, int32(p.N())), 1, 20).Draw(t, "u") {
			for _, v := range near.of(u) {
				// The best feasible move is made whether or not it helps, so that routes keep changing.
				l.best = move{delta: math.Inf(1)}
				if s.route[u] == s.route[v] {
					l.within(u, v)
				} else {
					l.between(u, v)
				}
				if l.best.kind == moveNone {
					continue
				}
				kinds[l.best.kind]++
				before := s.solution()
				l.apply(l.best)
				after := s.solution()
				if err := Validate(p, after); err != nil {
					t.Fatalf("%+v on %v: %v", l.best, before, err)
				}
				if got := p.Cost(after) - p.Cost(before); math.Abs(got-l.best.delta) > 1e-6 {
					t.Fatalf("%+v on %v changed the cost by %g", l.best, before, got)
				}
			}
		}
	})
	if slices.Contains(kinds[1:], 0) {
		t.Errorf("a kind of move was never tried: %v", kinds[1:])
	}
}

func oneEach(n int) Solution {
	var s Solution
	for v := 1; v <= n; v++ {
		s.Routes = append(s.Routes, []int32{int32(v)})
	}
	return s
}

// randomProblem is n customers on a fine grid in the unit square; some share a place.
func randomProblem(n int, index uint64) *Problem {
	p := &Problem{Capacity: 30, Metric: Exact, X: make([]float64, n+1), Y: make([]float64, n+1), Demand: make([]int32, n+1)}
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
	p := randomProblem(bruteNodes+300, 0)
	nb, err := newNeighbours(context.Background(), newMetricTable(p), 20)
	if err != nil {
		t.Fatal(err)
	}
	for v := 1; v <= p.N(); v++ {
		best := nearest{k: 20}
		for w := 1; w <= p.N(); w++ {
			if w != v {
				best.offer(int32(w), p.Dist(v, w))
			}
		}
		if diff := cmp.Diff(best.ids, nb.of(int32(v))); diff != "" {
			t.Fatalf("customer %d: %s", v, diff)
		}
	}
}

// Past the sizes that tabulate distances and offer all pairs, the same rules hold.
func TestSavingsLarge(t *testing.T) {
	p := randomProblem(matrixNodes+500, 1)
	table := newMetricTable(p)
	near, err := newNeighbours(context.Background(), table, savingsNear)
	if err != nil {
		t.Fatal(err)
	}
	start, end := p.Cost(clarkeWright(table, near)), p.Cost(savings(t, p, 500))
	if end >= start {
		t.Errorf("search did not improve on savings: %g to %g", start, end)
	}
}

func TestSavingsStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Savings(ctx, load(t, "X-n101-k25")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	p := smallProblem()
	p.Demand[2] = 11
	if _, err := Savings(context.Background(), p); err == nil || err.Error() != "savings: demand 11 of customer 2 is over the capacity 10" {
		t.Errorf("got %v", err)
	}
}

func BenchmarkSavings(b *testing.B) {
	for _, c := range []struct {
		name    string
		p       []*Problem
		perturb int
	}{
		{"N=10/descent", many(10), 0},
		{"N=10/default", many(10), DefaultPerturb(10)},
		{"N=100/descent", many(100), 0},
		{"X-n101-k25/default", []*Problem{load(b, "X-n101-k25")}, DefaultPerturb(100)},
	} {
		b.Run(c.name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if _, err := SavingsWith(context.Background(), c.p[i%len(c.p)], SavingsOptions{Perturb: c.perturb}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func many(n int) []*Problem {
	list := make([]*Problem, 64)
	for i := range list {
		list[i] = randomProblem(n, uint64(i))
	}
	return list
}
