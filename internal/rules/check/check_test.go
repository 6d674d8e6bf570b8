package check

import (
	"math"
	"strings"
	"testing"

	"haul/internal/rng"
	"haul/internal/rules"
	"haul/internal/rules/eval"
	"haul/problems"
)

var quick = Options{Seed: 1, Instances: 1, Routes: 2}

// checked compiles and checks a built-in problem after replacing a text.
func checked(t *testing.T, name, old, text string) *Report {
	t.Helper()
	b, _ := problems.Find(name)
	source := string(b.Source())
	if strings.Count(source, old) != 1 && old != "" {
		t.Fatalf("%q is there %d times", old, strings.Count(source, old))
	}
	p, err := rules.Compile(name+".go", []byte(strings.Replace(source, old, text, 1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Check(p, quick)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestBuiltInProblemsPass: no finding in the built-in problems; their optima grow with the
// customers and the symmetries of the square hold.
func TestBuiltInProblemsPass(t *testing.T) {
	for _, b := range problems.All() {
		r := checked(t, b.Name, "", "")
		for _, f := range r.Findings {
			if b.Name != "tsp" || f.Error { // Fits allows all places that are left
				t.Errorf("%s: %s", b.Name, f.Text)
			}
		}
		if !r.Symmetric || len(r.Optima) < 3 || r.Routes != 2*len(Sizes) || r.Instances != len(Sizes) || r.DeadEnds > 0 {
			t.Errorf("%s: %+v", b.Name, r)
		}
	}
}

// TestFindings: what each fault in a file is answered by.
func TestFindings(t *testing.T) {
	for _, c := range []struct {
		name, old, text, finding string
		fails                    bool
	}{
		{"op", "return problem.Distance(at.Place, to.Place)+to.Home <= v.Left", "return false", "Fits allowed no customer at any step", true},
		{"op", "unvisited int32) bool { return true }", "unvisited int32) bool { return false }", "end because the vehicle may go nowhere; they cost 1,000", true},
		{"cvrp", "return to.Demand <= v.Left", "return to.Demand < 0", "allow no node at the start", true},
		{"op", "return at.Depot >= 0 }", "return false }", "has not ended after the 2 steps", true},
		{"op", "v.Left / in.Limit", "v.Left / (in.Limit - in.Limit)", "Context: number 0 is +Inf", true},
		{"op", "return -to.Prize", "return problem.Sqrt(-1 - to.Prize)", "the cost is NaN after the move to node", true},
		{"op", "n.Home = problem.Distance(n.Place, depot.Place)", "n.Home = problem.Sqrt(-1 - n.X)", "Home is NaN", true},
		{"op", "v.Left -= problem.Distance(at.Place, to.Place)", "v.Left -= at.X * to.X", "write float32(x*y)", false},
	} {
		r := checked(t, c.name, c.old, c.text)
		var all []string
		for _, f := range r.Findings {
			all = append(all, f.Text)
		}
		if text := strings.Join(all, "\n"); !strings.Contains(text, c.finding) || r.Failed() != c.fails {
			t.Errorf("%s instead of %s: failed %v, findings\n%s", c.text, c.old, r.Failed(), text)
		}
	}
	if r := checked(t, "op", "v.Left -= problem.Distance(at.Place, to.Place)", "v.Left -= float32(2 * problem.Abs(at.X-to.X))"); r.Symmetric {
		t.Error("a tour whose length is driven from east to west alone has the symmetries of the square")
	}
}

// TestEnumerate: the best tour through three places is the shortest of three, whatever random
// routes found, and a limit on routes is kept.
func TestEnumerate(t *testing.T) {
	b, _ := problems.Find("tsp")
	p, err := rules.Compile("tsp.go", b.Source(), nil)
	if err != nil {
		t.Fatal(err)
	}
	form := eval.New(p)
	for g := range uint64(20) {
		in := p.Draw(form, &rules.Drawing{Seed: 2, Purpose: rng.Instances}, g, 3)
		d := func(i, j int) float64 {
			x, y := in.Nodes[p.X], in.Nodes[p.Y]
			f := func(w uint32) float64 { return float64(math.Float32frombits(w)) }
			return math.Hypot(f(x[i])-f(x[j]), f(y[i])-f(y[j]))
		}
		want := min(d(0, 1)+d(1, 2)+d(2, 3)+d(3, 0), d(0, 2)+d(2, 1)+d(1, 3)+d(3, 0), d(0, 1)+d(1, 3)+d(3, 2)+d(2, 0))
		if got, routes := Enumerate(p, form, in, 1000); math.Abs(got-want) > 1e-5 || routes != 6 {
			t.Errorf("instance %d: %v by %d routes, want %v by 6", g, got, routes, want)
		}
		if _, routes := Enumerate(p, form, in, 5); routes != 5 {
			t.Errorf("%d routes, want 5", routes)
		}
	}
}
