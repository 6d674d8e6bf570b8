package policy

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/kernel/host"
	"haul/internal/kernel/reference"
	"haul/internal/rng"
	"haul/internal/vrp"
)

// TestSeveralDepotsBeforeTheValidator makes 2,400 random solutions, 50 of each of 48 variants, by
// the devices' rules. None has a dead end, all are valid, and each has the length of its edges.
// Routes start at every depot, and the first vehicle's depot is both chosen and left to the
// default.
func TestSeveralDepotsBeforeTheValidator(t *testing.T) {
	c, err := config.Load("quick", []string{"problem.attributes=all, mdall", "problem.distribution=uniform"})
	if err != nil {
		t.Fatal(err)
	}
	draw := rand.New(rand.NewPCG(1, 2))
	left, chose, went := map[int32]int{}, 0, 0
	for _, name := range SourceOf(c, 0).Mix.Names() {
		src := SourceOf(c, rng.TestInstances)
		src.N = 12
		src.Mix, _ = vrp.ParseMix(name)
		b := vrp.NewBatch(50, src.N, src.Capacity)
		src.Fill(b, 5)
		set := kernel.MDVRP
		wide := len(set.Columns())
		for i := range b.B {
			p := b.Problem(i)
			x, y, words := make([]float32, set.Nodes(src.N)), make([]float32, set.Nodes(src.N)), make([]int32, set.Nodes(src.N)*wide)
			unitRows(p, set, x, y, words)
			tour := reference.NewTour(kernel.Rules{Set: set, Capacity: p.Load()}, words)
			visits, length := []int32{0}, 0.0
			for !tour.Done() {
				allowed := tour.Allowed()
				if len(allowed) == 0 || len(visits) > set.MaxSteps(src.N) {
					t.Fatalf("%s: after %v nothing is allowed", name, visits)
				}
				next := allowed[draw.IntN(len(allowed))]
				from, to := tour.Leg(next)
				length += float64(host.Leg(x[from], y[from], x[to], y[to]))
				tour.Visit(next)
				visits = append(visits, int32(next))
			}
			sol := p.FromVisits(visits)
			if err := vrp.Validate(p, sol); err != nil {
				t.Fatalf("%s: %v: %v", name, visits, err)
			}
			if cost := p.Cost(sol); math.Abs(cost-length) > 1e-4 {
				t.Fatalf("%s: %v costs %v, its legs %v", name, visits, cost, length)
			}
			if err := b.Validate(i, visits); err != nil {
				t.Fatalf("%s: %v: %v", name, visits, err)
			}
			if p.DepotCount() > 1 {
				for _, kind := range sol.Types {
					left[kind]++
				}
				if visits[1] == 0 || int(visits[1]) > src.N {
					chose++
				} else {
					went++
				}
			}
		}
	}
	if left[0] == 0 || left[1] == 0 || left[2] == 0 || chose == 0 || went == 0 {
		t.Errorf("vehicles left from %v; the first chose a depot %d times and went at once %d times", left, chose, went)
	}
}

// TestNobodyIsLeftByALimit: customers that no vehicle reaches within the limit (in a given problem,
// or by rounding) are still served, each from its nearest depot, and the validator reports them.
func TestNobodyIsLeftByALimit(t *testing.T) {
	p := &vrp.Problem{Metric: vrp.Exact, Depots: 3, X: []float64{0, 1, 0, 0.5, 0.6, 0}, Y: []float64{0, 0, 1, 0.5, 0.4, 0.9}, Demand: []int32{0, 0, 0, 1, 1, 1}}
	for d := range 3 {
		v := vrp.NewVehicleType(9)
		v.Start, v.End, v.MaxDistance = d, d, 0.3
		p.Fleet = append(p.Fleet, v)
	}
	set := kernel.MDVRP
	x, y, words := make([]float32, 6), make([]float32, 6), make([]int32, 6*len(set.Columns()))
	unitRows(p, set, x, y, words)
	tour, visits := reference.NewTour(kernel.Rules{Set: set, Capacity: 9}, words), []int32{0}
	for !tour.Done() && len(visits) <= set.MaxSteps(3) {
		allowed := tour.Allowed()
		if len(allowed) == 0 {
			t.Fatalf("after %v nothing is allowed", visits)
		}
		visits = append(visits, int32(allowed[len(allowed)-1]))
		tour.Visit(allowed[len(allowed)-1])
	}
	if err := vrp.Validate(p, p.FromVisits(visits)); !tour.Done() || err == nil || !strings.Contains(err.Error(), "the limit is 0.3") {
		t.Errorf("%v: %v", visits, err)
	}
}

// TestDepotsThatWereNotLearned: a policy of one depot refuses several with a one-line error. A
// policy of several takes problems with one to three depots, and refuses variants that it has not
// learned.
func TestDepotsThatWereNotLearned(t *testing.T) {
	problem := func(depots int) *vrp.Problem {
		p := &vrp.Problem{Metric: vrp.Exact, Depots: depots, X: make([]float64, depots+2), Y: make([]float64, depots+2), Demand: make([]int32, depots+2)}
		for j := range p.X {
			p.X[j], p.Y[j] = float64(j), float64(j*j%5)
		}
		for d := range depots {
			v := vrp.NewVehicleType(9)
			v.Start, v.End = d, d
			p.Fleet = append(p.Fleet, v)
		}
		return p
	}
	for _, c := range []struct {
		mix    string
		depots int
		says   string
	}{
		{"all", 1, ""}, {"all", 2, "it has several depots, which the policy has not learned"},
		{"cvrp, mdcvrp", 1, ""}, {"cvrp, mdcvrp", 2, ""}, {"cvrp, mdcvrp", 3, ""},
		{"cvrp, mdcvrp", 4, "it has 4 depots, and no policy here has learned more than 3"},
		{"mdcvrp", 1, "it is of the variant cvrp, and the policy has learned mdcvrp"},
		{"cvrp, mdovrp", 3, "it is of the variant mdcvrp, and the policy has learned cvrp, mdovrp"},
	} {
		s, err := config.Load("quick", []string{"problem.attributes=" + c.mix})
		if err != nil {
			t.Fatal(err)
		}
		if err := Takes(s, problem(c.depots)); (err == nil) != (c.says == "") || err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s, %d depots: %v", c.mix, c.depots, err)
		}
	}
	for _, name := range []string{"mdvrp", "md", "mdallx"} {
		if _, err := config.Load("quick", []string{"problem.attributes=" + name}); err == nil {
			t.Errorf("%s is taken for a variant", name)
		}
	}
}
