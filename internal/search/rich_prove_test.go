package search

import (
	"context"
	"math"
	"math/bits"
	"slices"
	"testing"

	"haul/internal/vrp"
	"haul/internal/vrp/testset"
)

// Among random columns, cuts and branches find the cheapest choice, and no choice costs less than
// the bound at any time. Columns of two and three tasks leave fractions.
func TestProverChoosesTheBest(t *testing.T) {
	const n = 12
	never := func() bool { return false }
	branched, cut := 0, 0
	for draw := range 150 {
		s := newStream(9, uint64(draw))
		x := &prover{m: &model{leg: 1}, byKey: map[uint64]int32{}, stop: never, same: 1e-6}
		alone := make([]float64, n)
		for i := range alone {
			alone[i] = 20
			x.routes = append(x.routes, listed{[]int32{int32(i)}, -1})
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
			for range 2 + s.below(4) {
				set |= 1 << s.below(n)
			}
			var line []int32
			for v := range int32(n) {
				if set>>v&1 != 0 {
					line = append(line, v)
				}
			}
			cost := float64(draw%3+len(line)) + s.unit()
			least[set] = min(least[set], cost)
			x.offer(line, 0, cost, s.below(2) == 0)
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
		for j := range int32(len(x.cost)) {
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
		y := &prover{m: x.m, byKey: map[uint64]int32{}, stop: never, same: 1e-6, routes: nil}
		y.lp = newLP(alone, 1e-7)
		for i := range alone {
			y.routes = append(y.routes, listed{[]int32{int32(i)}, -1})
		}
		for set, cost := range least {
			var line []int32
			for v := range int32(n) {
				if set>>v&1 != 0 {
					line = append(line, v)
				}
			}
			if len(line) > 0 && cost < 20 {
				y.offer(line, 0, cost, false)
			}
		}
		above := []float64{0.01, 0.2, 1}[draw%3]
		fewer := func() {
			if draw%2 == 0 {
				// All others are only found when they are wanted.
				y.active = slices.DeleteFunc(y.active, func(j int32) bool { return !y.in[j] })
				y.use(y.active, nil)
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
			for _, v := range y.routes[j].line {
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

// A proof does not depend on where it begins: other seeds, other first routes, the same cost. It is
// the same routes for the same seed, and what the search finds without it is never better.
func TestProofsAgree(t *testing.T) {
	for _, name := range []string{"vrptw", "mdvrpmbltw", "ovrpbtw"} {
		set, err := testset.RouteFinder(name, 50)
		if err != nil {
			t.Fatal(err)
		}
		p := set.Problems[2]
		var costs []float64
		for _, seed := range []uint64{1, 2, 1} {
			r, err := Solve(context.Background(), p, Options{Iterations: 15_000, Seed: seed, Workers: int(1 + seed)})
			if err != nil {
				t.Fatal(err)
			}
			if !r.Proven || r.Iterations >= 15_000 || vrp.Validate(p, r.Solution) != nil {
				t.Errorf("%s: proven %v after %d iterations, %v", name, r.Proven, r.Iterations, vrp.Validate(p, r.Solution))
			}
			costs = append(costs, r.Cost)
		}
		if math.Abs(costs[0]-costs[1]) > 1e-5 || costs[0] != costs[2] {
			t.Errorf("%s: %v", name, costs)
		}
		c := flatten(t, p)
		for range 4000 {
			c.step(richCold * c.leg)
		}
		if c.bestCost < costs[0]-1e-5 {
			t.Errorf("%s: %g is below a proven %g", name, c.bestCost, costs[0])
		}
	}
}

// Where a route might come back to a customer, where vehicles are few, or where routes are fixed,
// nothing is proven.
func TestNothingIsProven(t *testing.T) {
	for what, ask := range map[string]func(p *vrp.Problem, o *Options){
		"wide windows": func(p *vrp.Problem, o *Options) {
			for v := 1; v < len(p.Windows); v++ {
				p.Windows[v][0].To += 0.5
			}
		},
		"few vehicles": func(p *vrp.Problem, o *Options) { p.Fleet[0].Count = 2 },
		"fixed routes": func(p *vrp.Problem, o *Options) {
			r, err := Solve(context.Background(), p, Options{Iterations: 100})
			if err != nil {
				t.Fatal(err)
			}
			o.Start, o.Fixed = &r.Solution, make([]int32, len(r.Solution.Routes))
		},
	} {
		p := few(t, "vrptw", 5, 9, 0)
		o := Options{Iterations: 300, Partial: true}
		ask(p, &o)
		if r, err := Solve(context.Background(), p, o); err != nil || r.Proven || r.Iterations != 300 {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
}
