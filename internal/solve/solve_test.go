package solve_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"haul/internal/search"
	"haul/internal/solve"
	"haul/internal/vrp"
)

// ring is n customers around a depot, two to a vehicle.
func ring(n int) *vrp.Problem {
	p := &vrp.Problem{Name: "ring", Capacity: 2, Demand: []int32{0}, X: []float64{0}, Y: []float64{0}}
	for i := range n {
		p.Demand, p.X, p.Y = append(p.Demand, 1), append(p.X, float64(1+i%5)), append(p.Y, float64(i/5-2))
	}
	return p
}

// TestDefaults: nobody names a method, one below each limit, at it and one above.
func TestDefaults(t *testing.T) {
	limited := ring(5)
	limited.Vehicles = 3
	for _, c := range []struct {
		name string
		p    *vrp.Problem
		want string
	}{
		{"11", ring(11), solve.Exact},
		{"12", ring(12), solve.Exact},
		{"13", ring(13), solve.Search},
		{"a limit that exact does not know", limited, solve.Search},
	} {
		m, err := solve.Choose(c.p, "", nil)
		if err != nil || m.Name != c.want {
			t.Errorf("%s: %v, %v; want %s", c.name, m, err, c.want)
		}
	}
	for n, want := range map[int]string{21: solve.Exact, 22: solve.Exact, 23: solve.Savings} {
		if m, err := solve.ForMany("", n); err != nil || m.Name != want {
			t.Errorf("many of %d: %v, %v; want %s", n, m, err, want)
		}
	}
}

// TestRefusals: every surface gets this wording.
func TestRefusals(t *testing.T) {
	open := ring(5)
	open.Open = true
	many := ring(13)
	many.Open = true
	windows := ring(5)
	windows.Priority = make([]int, 6)
	bare := ring(3)
	bare.Metric, bare.Weights, bare.X, bare.Y = vrp.Explicit, make([]float64, 16), nil, nil
	bounds := solve.Bounds{solve.Exact: 18, solve.Policy: 4}
	for _, c := range []struct {
		name   string
		p      *vrp.Problem
		method string
		bounds solve.Bounds
		want   string
	}{
		{"at the table's limit", ring(22), solve.Exact, nil, ""},
		{"above it", ring(23), solve.Exact, nil, "exact takes up to 22 customers, these are 23: use search"},
		{"at the caller's limit", ring(18), solve.Exact, bounds, ""},
		{"above the caller's", ring(19), solve.Exact, bounds, "exact takes up to 18 customers, these are 19: use search"},
		{"a limit that raises nothing", ring(23), solve.Exact, solve.Bounds{solve.Exact: 99}, "exact takes up to 22 customers"},
		{"a policy at the caller's", ring(4), solve.Policy, bounds, ""},
		{"a policy above it", ring(5), solve.Policy, bounds, "policy takes up to 4 customers, these are 5: use exact"},
		{"open routes", open, solve.Exact, bounds, "exact knows no limit but the capacity, or one vehicle for all, and of few customers every part, and ring is not such a problem: its routes are open: use search"},
		{"open routes, named where nothing is bounded", open, solve.Exact, nil, ""},
		{"open routes of too many for that", many, solve.Exact, nil, "its routes are open: use search"},
		{"open routes and savings", open, solve.Savings, nil, "its routes are open: use search"},
		{"open routes and a policy", open, solve.Policy, nil, ""},
		{"priorities and a policy", windows, solve.Policy, nil, "between coordinates, and ring is not such a problem: it has priorities: use search"},
		{"no coordinates", bare, solve.Both, nil, "it has no coordinates: use exact"},
		{"a name", ring(3), "magic", nil, `unknown method "magic": use exact, search or savings`},
		{"a part that the search alone knows", windows, solve.Exact, bounds, "ring is not such a problem: it has priorities: use search"},
		{"the search knows it", windows, "", nil, ""},
	} {
		_, err := solve.Choose(c.p, c.method, c.bounds)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		var no *solve.Refusal
		if err != nil && (!errors.As(err, &no) || no.Unknown != (c.method == "magic")) {
			t.Errorf("%s: %#v", c.name, err)
		}
	}
	if _, err := solve.ForMany(solve.Exact, 23); err == nil || !strings.Contains(err.Error(), "use savings") {
		t.Errorf("many by exact: %v", err)
	}
	if err := solve.Known("policy", "policy"); err != nil {
		t.Errorf("a name that the caller adds: %v", err)
	}
	if err := solve.Known("policy"); err == nil {
		t.Error("a policy is named by what it is, not as a method")
	}
}

// TestExactOfParts: named for few customers, exact finds the optimum of windows and open routes, or
// says that there are no routes.
func TestExactOfParts(t *testing.T) {
	p := ring(6)
	p.Open, p.Windows = true, make([][]vrp.Window, 7)
	p.Windows[3] = []vrp.Window{{From: 0, To: 4}}
	m, err := solve.Choose(p, solve.Exact, nil)
	if err != nil {
		t.Fatal(err)
	}
	best, err := m.Solve(t.Context(), p, solve.Options{})
	if err != nil || !best.Optimal || vrp.Validate(p, best.Solution) != nil {
		t.Fatalf("%+v, %v", best, err)
	}
	found, err := solve.Find(solve.Search).Solve(t.Context(), p, solve.Options{Search: search.Options{Iterations: 2000, Seed: 1, Workers: 1}})
	if err != nil || found.Cost != best.Cost {
		t.Errorf("exact %v, search %v, %v", best.Cost, found.Cost, err)
	}
	p.Windows[3][0].To = 1
	if _, err := m.Solve(t.Context(), p, solve.Options{}); !errors.Is(err, solve.ErrNoRoutes) {
		t.Errorf("a window that nobody reaches: %v", err)
	}
}

// TestEveryMethod: each solves what it takes; the optimum is no more than any of them.
func TestEveryMethod(t *testing.T) {
	ctx, p := context.Background(), ring(9)
	asked := false
	o := solve.Options{Search: search.Options{Iterations: 2000, Seed: 1}, Route: func(_ context.Context, p *vrp.Problem) (vrp.Solution, string, error) {
		asked = true
		var s vrp.Solution
		for v := range p.N() {
			s.Routes = append(s.Routes, []int32{int32(v + 1)})
		}
		return s, "alone", nil
	}}
	var best, alone float64
	for _, name := range []string{solve.Exact, solve.Savings, solve.Search, solve.Policy, solve.Both} {
		m, err := solve.Choose(p, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.Solve(ctx, p, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.Method != name || r.Cost != p.Cost(r.Solution) || r.Optimal != (name == solve.Exact) {
			t.Errorf("%s: %+v", name, r)
		}
		switch name {
		case solve.Exact:
			best = r.Cost
		case solve.Policy:
			alone = r.Cost
		case solve.Both:
			if r.Start == nil || *r.Start != alone || r.Cost >= alone || r.Decode != "alone" {
				t.Errorf("the search did not go on from the policy's routes: %+v", r)
			}
		}
		if r.Cost < best-1e-9 {
			t.Errorf("%s costs %g, the optimum %g", name, r.Cost, best)
		}
	}
	if !asked {
		t.Error("nobody asked the policy")
	}
}

// TestInvalidRoutes: a method that leaves a customer out is not believed.
func TestInvalidRoutes(t *testing.T) {
	o := solve.Options{Route: func(context.Context, *vrp.Problem) (vrp.Solution, string, error) {
		return vrp.Solution{Routes: [][]int32{{1}}}, "greedy", nil
	}}
	if _, err := solve.Find(solve.Policy).Solve(context.Background(), ring(2), o); err == nil || !strings.Contains(err.Error(), "policy made invalid routes for ring") {
		t.Errorf("%v", err)
	}
}

// TestMany: solutions come in the problems' order, whoever solves them.
func TestMany(t *testing.T) {
	problems := []*vrp.Problem{ring(3), ring(7), ring(5)}
	for _, name := range []string{solve.Exact, solve.Savings} {
		m, _ := solve.ForMany(name, 7)
		told := 0
		all, err := m.SolveMany(context.Background(), problems, 2, func(done int) { told = done })
		if err != nil || told != len(problems) {
			t.Fatalf("%s: %v, told of %d", name, err, told)
		}
		for i, s := range all {
			if err := vrp.Validate(problems[i], s); err != nil {
				t.Errorf("%s: problem %d: %v", name, i, err)
			}
		}
	}
	if _, err := solve.Find(solve.Search).SolveMany(context.Background(), problems, 1, nil); err == nil {
		t.Error("the search has no budget for many")
	}
}

// TestAnActiveSearchIsInterrupted: routes that a policy returns after the context has ended are the
// best so far; where it returns an error, there are none.
func TestAnActiveSearchIsInterrupted(t *testing.T) {
	p := ring(2)
	for _, interrupt := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		found, err := solve.Find(solve.Policy).Solve(ctx, p, solve.Options{Route: func(context.Context, *vrp.Problem) (vrp.Solution, string, error) {
			if interrupt {
				cancel()
			}
			return vrp.Solution{Routes: [][]int32{{1, 2}}}, "eas", nil
		}})
		if err != nil || found.Interrupted != interrupt || found.Decode != "eas" || found.Cost != p.Cost(found.Solution) {
			t.Errorf("interrupted %v: %+v, %v", interrupt, found, err)
		}
	}
}
