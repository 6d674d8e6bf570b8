package routing

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/stats"
	"haul/internal/vrp"
	"haul/internal/vrp/testset"
)

// some are instances of the kind that the saved policy was trained on, and a few of other sizes and
// capacities.
func some(t *testing.T, p *Policy) []*vrp.Problem {
	t.Helper()
	src := p.Source(rng.TestInstances)
	var out []*vrp.Problem
	for i, kind := range []struct {
		n, count int
		capacity int32
	}{{src.N, 11, src.Capacity}, {13, 5, 40}, {13, 3, 25}, {1, 1, src.Capacity}} {
		src.N, src.Capacity = kind.n, kind.capacity
		b := vrp.NewBatch(kind.count, src.N, src.Capacity)
		src.Fill(b, uint64(100*i))
		for j := range kind.count {
			out = append(out, b.Problem(j))
			out[len(out)-1].Name = fmt.Sprintf("instance-%d", len(out)-1)
		}
	}
	return out
}

// TestRouteMany: problems of several sizes and capacities get the routes that each would get alone,
// in batches of any size, and more routes are never worse.
func TestRouteMany(t *testing.T) {
	p := loadSaved(t)
	problems := some(t, p)
	for _, name := range []string{"greedy", "pomo", "pomo8"} {
		d, err := ParseDecode(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, batch := range []int{0, 1, 4} {
			routed, err := p.RouteMany(t.Context(), problems, ManyOptions{Decode: d, Batch: batch})
			if err != nil {
				t.Fatal(err)
			}
			for i, prob := range problems {
				want, cost, err := p.Solve(t.Context(), prob, d)
				if diff := cmp.Diff(want, routed[i].Solution); err != nil || diff != "" || cost != routed[i].Cost || cost != prob.Cost(want) {
					t.Errorf("%s in batches of %d, %s: %v, %g alone and %g among others: %s", name, batch, prob.Name, err, cost, routed[i].Cost, diff)
				}
			}
		}
	}
	sampled := map[int][]Routed{}
	for _, batch := range []int{3, 5} {
		var err error
		if sampled[batch], err = p.RouteMany(t.Context(), problems[:11], ManyOptions{Decode: Decode{Samples: 4}, Batch: batch, Seed: 8}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(sampled[3], sampled[5]); diff != "" {
		t.Errorf("samples depend on the batch: %s", diff)
	}
	greedy, err := p.RouteMany(t.Context(), problems, ManyOptions{Decode: Greedy})
	if err != nil {
		t.Fatal(err)
	}
	longer, err := p.RouteMany(t.Context(), problems, ManyOptions{Decode: Greedy, Time: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	better := 0
	for i := range greedy {
		if longer[i].Cost > greedy[i].Cost {
			t.Errorf("%s: more time made it worse", problems[i].Name)
		}
		if longer[i].Cost < greedy[i].Cost {
			better++
		}
	}
	if better == 0 {
		t.Error("sampling for longer improved nothing")
	}
}

// TestUnitsDoNotMatter: the policy sees a share of the capacity and the unit square, whatever units
// a file has.
func TestUnitsDoNotMatter(t *testing.T) {
	p := loadSaved(t)
	src := p.Source(rng.TestInstances)
	src.N = 9
	b := vrp.NewBatch(1, src.N, src.Capacity)
	src.Fill(b, 3)
	plain := b.Problem(0)
	// fills the square, so that its frame is the square
	plain.X[1], plain.Y[1], plain.X[2], plain.Y[2] = 0, 0, 1, 1
	other := *plain
	other.Capacity *= 7
	other.X, other.Y, other.Demand = make([]float64, 10), make([]float64, 10), make([]int32, 10)
	for j := range plain.X {
		other.X[j], other.Y[j], other.Demand[j] = 4096*plain.X[j]-512, 4096*plain.Y[j]+1024, 7*plain.Demand[j]
	}
	d := Decode{Starts: true, Symmetries: 8}
	want, cost, err := p.Solve(t.Context(), plain, d)
	if err != nil {
		t.Fatal(err)
	}
	got, scaled, err := p.Solve(t.Context(), &other, d)
	if diff := cmp.Diff(want, got); err != nil || diff != "" || math.Abs(scaled/4096-cost) > 1e-9 {
		t.Errorf("%v, %g and %g: %s", err, cost, scaled, diff)
	}
	// The same places on the globe, far in the north and on both sides of the date line, where the
	// square is 0.02 degrees of latitude wide.
	globe := *plain
	globe.Metric, globe.X, globe.Y = vrp.GreatCircle, make([]float64, 10), make([]float64, 10)
	for j := range plain.X {
		globe.X[j] = math.Remainder(179.98+0.02*plain.X[j]/math.Cos(60*math.Pi/180), 360)
		globe.Y[j] = 59.99 + 0.02*plain.Y[j]
	}
	got, _, err = p.Solve(t.Context(), &globe, d)
	if legs := plain.Cost(got); err != nil || math.Abs(legs/cost-1) > 1e-3 {
		t.Errorf("%v: routes of %g where those of the same square are %g", err, legs, cost)
	}
	inside := &vrp.Problem{X: []float64{0.1, 0.9}, Y: []float64{0.2, 0.3}}
	corner := &vrp.Problem{X: []float64{0.1, 0.2}, Y: []float64{0.2, 0.25}}
	ours := &vrp.Problem{X: []float64{1e5, 9e5}, Y: []float64{2e5, 3e5}, Comment: "haul seed=1 index=2 scale=1000000"}
	for want, p := range map[[3]float64]*vrp.Problem{{0, 0, 1}: inside, {0.1, 0.2, 0.1}: corner, {0, 0, 1e6}: ours} {
		x, y, side := unitFrame(p, p.X, p.Y)
		if math.Abs(x-want[0])+math.Abs(y-want[1])+math.Abs(side-want[2]) > 1e-12 {
			t.Errorf("the frame of %v is (%g, %g) and %g, want %v", p, x, y, side, want)
		}
	}
}

// TestEvaluateInstances: the figures of a file of instances, worked out again from the routes; the
// folder holds them.
func TestEvaluateInstances(t *testing.T) {
	path, _ := saved(t)
	dev := openCPU(t, 1)
	p, err := LoadPolicy(dev, path)
	if err != nil {
		t.Fatal(err)
	}
	problems := some(t, p)[:11]
	dir := t.TempDir()
	var b bytes.Buffer
	if err := testset.Write(&b, ".npz", problems); err != nil {
		t.Fatal(err)
	}
	file, costs := filepath.Join(dir, "set.npz"), filepath.Join(dir, "best.csv")
	best, _, err := vrp.OptimalSolutions(t.Context(), problems, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	table := "reference\n"
	for _, c := range best {
		table += fmt.Sprintf("%v\n", c)
	}
	for path, text := range map[string]string{file: b.String(), costs: table} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "out")
	result, err := Recipe{}.Evaluate(t.Context(), evaluation(t, dev, path, evalFlags{"instances": file, "reference": costs, "out": out, "decode": "pomo"}))
	if err != nil {
		t.Fatal(err)
	}
	r := result.(*Compared)
	var lengths []float64
	for i, prob := range problems {
		_, cost, err := p.Solve(t.Context(), prob, Decode{Starts: true})
		if err != nil {
			t.Fatal(err)
		}
		lengths = append(lengths, cost)
		sol, stated, err := vrp.LoadSolution(filepath.Join(out, fmt.Sprintf("instance-%d.sol", i)))
		if err != nil || vrp.Validate(prob, sol) != nil || math.Abs(stated-cost) > 1e-2 {
			t.Errorf("instance %d: %v, cost %g stated as %g", i, err, cost, stated)
		}
	}
	mean, se := stats.MeanSE(lengths)
	gap, gapSE := stats.Gap(lengths, best)
	same(t, "the mean cost", r.MeanCost, mean)
	same(t, "its error", r.SECost, se)
	same(t, "the mean gap", *r.MeanGap, gap)
	same(t, "its error", *r.SEGap, gapSE)
	if gap < 0 || gap == 0 && gapSE == 0 || r.Instances != 11 || r.GapTo != "best.csv" || r.Routes != problems[0].N() {
		t.Errorf("%+v", r)
	}
	text, err := os.ReadFile(filepath.Join(out, "costs.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 12 || strings.Join(rows[0], ",") != "name,customers,routes,cost,reference,gap" || rows[3][3] != fmt.Sprint(lengths[2]) {
		t.Errorf("%v: %s", err, text)
	}
	for want, flags := range map[string]evalFlags{
		"give another folder":         {"instances": file, "out": out},
		"is about given instances":    {"reference": costs},
		"use one of them":             {"instances": file, "testset": "kool"},
		"leave them out":              {"instances": file, "customers": 20},
		"unknown test set":            {"testset": "solomon"},
		"10, 20, 50 or 100":           {"testset": "kool", "customers": 33},
		"unknown distance":            {"instances": file, "distance": "taxi"},
		"--count is 12":               {"instances": file, "count": 12},
		"--count is 0":                {"instances": file, "count": 0},
		"a time above 0":              {"instances": file, "time": "soon"},
		"generated instances are":     {"time": "1s"},
		"no such file":                {"instances": filepath.Join(dir, "nosuch.npz")},
		"instances are read from":     {"instances": costs},
		"at least 1 instance is need": {"count": 0},
	} {
		_, err := Recipe{}.Evaluate(t.Context(), evaluation(t, dev, path, flags))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q, got %v", flags, want, err)
		}
	}
}

// TestEvaluatePublicSet: Kool's set with its own capacity, and the published mean only beside all
// of it.
func TestEvaluatePublicSet(t *testing.T) {
	path, _ := saved(t)
	result, err := Recipe{}.Evaluate(t.Context(), evaluation(t, openCPU(t, 1), path, evalFlags{"testset": "kool", "customers": 20, "count": 5}))
	if err != nil {
		t.Fatal(err)
	}
	if r := result.(*Compared); r.Instances != 5 || r.Capacity != 30 || r.Customers != 20 || r.Published != nil || r.Set != "kool-20-test" {
		t.Errorf("%+v", r)
	}
	r := &Compared{}
	r.compare(&testset.Set{Published: 4}, []Routed{{Cost: 5}, {Cost: 3.4}})
	if r.Published == nil || math.Abs(*r.ToPublic-0.05) > 1e-12 || r.MeanGap != nil {
		t.Errorf("%+v", r)
	}
}

// TestInterruptedRouteMany stops between two batches.
func TestInterruptedRouteMany(t *testing.T) {
	p := loadSaved(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := p.RouteMany(ctx, some(t, p), ManyOptions{Decode: Greedy, Batch: 1, Progress: func(done int) {
		if done == 3 {
			cancel()
		}
	}})
	if err == nil || ctx.Err() == nil {
		t.Error("it went on")
	}
	limited := &vrp.Problem{Name: "short", Capacity: 5, Demand: []int32{0, 2}, X: []float64{0, 1}, Y: []float64{0, 1}, MaxDuration: 3}
	if _, err := p.RouteMany(t.Context(), []*vrp.Problem{limited}, ManyOptions{}); err == nil || !strings.Contains(err.Error(), "duration") {
		t.Error(err)
	}
	var _ run.Result = (*Compared)(nil)
}

// TestLargeDemandsAreShownSmaller: within what training held a problem is shown as it is; past it
// the mean demand is shown as far past training's as a policy bears, and no route is loaded by what
// is shown.
func TestLargeDemandsAreShownSmaller(t *testing.T) {
	s := shares{mean: 0.1, most: 0.18}
	for _, c := range []struct {
		demand   []int32
		capacity int32
		want     float32
	}{
		{[]int32{0, 1, 9}, 50, 50},                   // as in training
		{[]int32{0, 9, 9}, 50, 50},                   // a high mean, but nothing new
		{[]int32{0, 1, 1, 1, 1, 12}, 50, 50},         // something new, but a low mean
		{[]int32{0, 10, 10}, 20, 10 / (1.3 * 0.1)},   // half of the capacity each
		{[]int32{0, 20, 10}, 20, 15 / (1.3 * 0.1)},   // more
		{[]int32{0, 300, 10}, 500, 155 / (1.3 * .1)}, // in other units
	} {
		got := s.capacity(&vrp.Problem{Demand: c.demand, Capacity: c.capacity})
		if math.Abs(float64(got-c.want)) > 1e-3*float64(c.want) {
			t.Errorf("demands %v of %d are divided by %g, want %g", c.demand, c.capacity, got, c.want)
		}
	}
	p := loadSaved(t)
	large := &vrp.Problem{Name: "large", Capacity: 10, Demand: []int32{0, 9, 8, 10, 5, 5}, X: []float64{0, 1, 0, 1, 0.5, 0.2}, Y: []float64{0, 0, 1, 1, 0.5, 0.9}}
	sol, _, err := p.Solve(t.Context(), large, Decode{Starts: true, Symmetries: 8})
	if err != nil || len(sol.Routes) < 4 {
		t.Errorf("%v, %v", sol, err)
	}
}

// TestGivenAndDrawnAgree: instances that the host hands over get the routes of those that the
// device draws.
func TestGivenAndDrawnAgree(t *testing.T) {
	p := loadSaved(t)
	src := p.Source(rng.TestInstances)
	b := vrp.NewBatch(20, src.N, src.Capacity)
	src.Fill(b, 5)
	var problems []*vrp.Problem
	for i := range b.B {
		problems = append(problems, b.Problem(i))
	}
	d := Decode{Starts: true, Symmetries: 8}
	routed, err := p.RouteMany(t.Context(), problems, ManyOptions{Decode: d})
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := p.Evaluate(t.Context(), EvalOptions{Source: src, First: 5, Count: b.B, Decode: d})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range routed {
		if math.Abs(r.Cost/drawn.Lengths[i]-1) > 1e-5 {
			t.Errorf("instance %d: %g given, %g drawn", i, r.Cost, drawn.Lengths[i])
		}
	}
}
