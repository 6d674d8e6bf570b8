package policy

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"haul/internal/vrp"
)

// TestJoinOrdersRoutes: the order of a route's customers is improved if capacity is the only limit.
func TestJoinOrdersRoutes(t *testing.T) {
	round := func() *vrp.Problem {
		return &vrp.Problem{Capacity: 9, Demand: []int32{0, 1, 1, 1, 1, 1, 1}, X: []float64{0, 1, 2, 3, 3, 2, 1}, Y: []float64{0, 1, 1, 1, -1, -1, -1}}
	}
	for name, c := range map[string]struct {
		limit func(p *vrp.Problem)
		tour  []int32
		want  bool
	}{
		"turned":        {func(*vrp.Problem) {}, []int32{1, 5, 4, 3, 2, 6, 0}, true},
		"one elsewhere": {func(*vrp.Problem) {}, []int32{1, 3, 4, 2, 5, 6, 0}, true},
		"as short":      {func(*vrp.Problem) {}, []int32{1, 2, 3, 4, 5, 6, 0}, false},
		"two customers": {func(*vrp.Problem) {}, []int32{2, 1, 0, 3, 4, 0, 6, 5, 0}, false},
		"open routes":   {func(p *vrp.Problem) { p.Open = true }, []int32{1, 5, 4, 3, 2, 6, 0}, false},
		"a limit":       {func(p *vrp.Problem) { p.MaxDuration = 50 }, []int32{1, 5, 4, 3, 2, 6, 0}, false},
	} {
		p := round()
		c.limit(p)
		got := newRecombiner(p).join([][]int32{c.tour})
		if (got.Routes != nil) != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if best := p.Cost(vrp.FromTour([]int32{1, 2, 3, 4, 5, 6, 0})); c.want && (vrp.Validate(p, got) != nil || math.Abs(p.Cost(got)-best) > 1e-12) {
			t.Errorf("%s: %v costs %g, %g is there", name, got, p.Cost(got), best)
		}
	}
	// asymmetric distances
	j := newRecombiner(round())
	if j.dist[2]++; j.order == nil || newOrderer(j.dist, j.nodes, j.depots) != nil {
		t.Error("a way that is longer than the way back")
	}
}

// TestOrderedRoutes: random routes keep their customers, have the stated length, do not become
// longer, and no reversal or move shortens the result.
func TestOrderedRoutes(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		n := 1 + random.IntN(14)
		p := &vrp.Problem{Capacity: int32(n), Demand: make([]int32, n+1), X: make([]float64, n+1), Y: make([]float64, n+1)}
		for v := range n + 1 {
			p.X[v], p.Y[v] = random.Float64(), random.Float64()
			if v > 0 {
				p.Demand[v] = 1
			}
		}
		tour := make([]int32, n+1)
		for k, v := range random.Perm(n) {
			tour[k] = int32(v + 1)
		}
		j := newRecombiner(p)
		before := j.cut(tour).routes[0]
		got := j.order.ordered(before.clone())
		sol := j.solution(&splitTour{routes: []candidateRoute{got}})
		if err := vrp.Validate(p, sol); err != nil || math.Abs(p.Cost(sol)-got.length) > 1e-9 || got.length > before.length {
			t.Fatalf("%v became %v: %v, costs %g", before, got, err, p.Cost(sol))
		}
		if again := j.order.ordered(got.clone()); again.length < got.length-1e-8 {
			t.Fatalf("%v can be shorter: %v", got, again)
		}
	}
}

// TestOrderedRoutesAreNearlyBest: over many routes of six customers the total length is hardly
// above the optimum.
func TestOrderedRoutesAreNearlyBest(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	var sum, best float64
	for range 200 {
		p := &vrp.Problem{Capacity: 6, Demand: []int32{0, 1, 1, 1, 1, 1, 1}, X: make([]float64, 7), Y: make([]float64, 7)}
		for v := range p.X {
			p.X[v], p.Y[v] = random.Float64(), random.Float64()
		}
		j := newRecombiner(p)
		sum += j.order.ordered(j.cut([]int32{1, 2, 3, 4, 5, 6, 0}).routes[0]).length
		shortest := math.Inf(1)
		var visit func(at []int, length float64)
		visit = func(at []int, length float64) {
			if len(at) == 7 {
				shortest = min(shortest, length+j.distance(at[6], 0))
			}
			for v := 1; v < 7; v++ {
				if !slices.Contains(at, v) {
					visit(append(at, v), length+j.distance(at[len(at)-1], v))
				}
			}
		}
		visit([]int{0}, 0)
		best += shortest
	}
	if sum > 1.0002*best {
		t.Errorf("%g, %g times the best", sum, sum/best)
	}
}
