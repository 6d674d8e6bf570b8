package search

import (
	"testing"
	"time"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// optional is a problem of n customers in a row who may be left out, for a prize each.
func optional(n int, prize float64) *vrp.Problem {
	p := &vrp.Problem{Capacity: 30, Metric: vrp.Exact, Demand: make([]int32, n+1), X: make([]float64, n+1), Y: make([]float64, n+1),
		Prize: make([]float64, n+1), Optional: make([]bool, n+1)}
	for v := 1; v <= n; v++ {
		p.X[v], p.Demand[v], p.Prize[v], p.Optional[v] = float64(10+v), 1, prize, true
	}
	return p
}

// Once in forceEach times one to forceMost tasks that were left out go in first, and none that a
// route had; in a small problem that leaves out few, whoever was taken out or left out.
func TestForceLeftOut(t *testing.T) {
	for _, x := range []struct{ customers, served int }{{120, 60}, {90, 60}, {90, 90 - recallAll - 1}, {90, 90 - recallAll}} {
		m := compileNear(t.Context(), optional(x.customers, 100))
		c := newCandidate(m, model.NewStream(3, 1))
		var routes [][]int32
		for v := 1; v <= x.served; v += 20 {
			var r []int32
			for w := v; w < v+20 && w <= x.served; w++ {
				r = append(r, int32(w))
			}
			routes = append(routes, r)
		}
		c.set(routes, make([]int32, len(routes)), nil)
		if len(c.absent) != x.customers-x.served {
			t.Fatalf("%d are left out", len(c.absent))
		}
		seen := map[int]int{}
		const draws = 4000
		for range draws {
			c.begin()
			c.ruin(c)
			members := map[int32]bool{}
			for _, lead := range c.removed {
				members[lead] = true
			}
			total := len(members)
			k := c.forceAbsent()
			if seen[k]++; k == total {
				seen[k]--
				seen[-1]++
			} else {
				for _, lead := range c.removed[:k] {
					if c.removedFrom[lead] >= 0 {
						t.Fatalf("customer %d of a route is forced", lead)
					}
				}
			}
			for _, lead := range c.removed {
				delete(members, lead)
			}
			if len(members) > 0 || len(c.removed) != total {
				t.Fatalf("of %d to insert %d are lost", total, len(members))
			}
			c.undo()
		}
		few := x.customers <= model.SmallMost && x.customers-x.served <= recallAll
		for k, n := range seen {
			want := 0
			switch {
			case k == 0:
				want = draws - draws/forceEach
			case few && k == -1:
				want = draws / forceEach
			case !few && k > 0 && k <= forceMost:
				want = draws / forceEach / forceMost
			}
			if n < want*3/4 || n > want*5/4 {
				t.Errorf("%d of %d customers are served: %d are forced %d times of %d, %d expected", x.served, x.customers, k, n, draws, want)
			}
		}
		if len(seen) < 2 {
			t.Errorf("%d of %d customers are served: none is ever forced", x.served, x.customers)
		}
	}
}

// A search begins with routes that serve whoever fits, whether they pay or not, and has none at all
// to give where those do not and its time is over.
func TestBeginServesWhoFits(t *testing.T) {
	for _, prize := range []float64{0.5, 100} {
		p := optional(120, prize)
		d := &generalDriver{search: search{p: p, o: Options{Iterations: 100}, begun: time.Now()}, most: len(p.Demand), longest: model.Endless}
		d.m = compileNear(t.Context(), p)
		c := newCandidate(d.m, model.NewStream(1, 1))
		if err := d.begin(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if len(c.absent) > 0 {
			t.Errorf("prizes of %v: %d are left out at first", prize, len(c.absent))
		}
		if pays := prize > 1; pays != (len(d.best.Routes) > 0) {
			t.Errorf("prizes of %v: %d routes are the best", prize, len(d.best.Routes))
		}
	}
}
