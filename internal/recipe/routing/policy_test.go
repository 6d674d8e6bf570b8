package routing

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/config"
	"haul/internal/plan"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/run/runtest"
	"haul/internal/stats"
	"haul/internal/vrp"
)

func TestParseDecode(t *testing.T) {
	for _, s := range []string{"greedy", "pomo", "pomo8", "pomo:1", "pomo8:1.25", "sample:16", "sample8:16", "sample:3,0.5", "sample8:3,2", "sgbs:4,4", "sgbs8:2,3"} {
		if d, err := ParseDecode(s); err != nil || d.String() != s {
			t.Errorf("%s: %v, %v", s, d, err)
		}
	}
	for _, s := range []string{"", "beam", "sample:", "sample:0", "sample:-1", "sample:1e9", "sample:99999999", "sgbs:", "sgbs:4", "sgbs:0,4", "sgbs:4,1", "sgbs:65,4", "sgbs:4,4,4", "sgbs16",
		"sample", "sample8", "sample8:", "sample:4,", "sample:4,0", "sample:4,-1", "sample:4,nan", "sample:4,1,1", "pomo:", "pomo8:", "pomo:0", "pomo:inf", "pomo:1e4", "pomo:hot", "pomo:1,2", "pomo88", "greedy8", "greedy:1"} {
		if _, err := ParseDecode(s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

// TestForever: with time left, routes are drawn from the same starts, or as many as there are
// customers; the most likely ones again would bring nothing.
func TestForever(t *testing.T) {
	for name, want := range map[string]Decode{
		"greedy":      {Samples: 7, Symmetries: 1},
		"pomo":        {Starts: true, Drawn: true, Symmetries: 1},
		"pomo8":       {Starts: true, Drawn: true, Symmetries: 8},
		"pomo8:2":     {Starts: true, Drawn: true, Symmetries: 8, Temperature: 2},
		"sample8:3,2": {Samples: 3, Symmetries: 8, Temperature: 2},
		"sgbs8":       {Starts: true, Drawn: true, Symmetries: 8, Expand: beamWidth},
	} {
		d, err := ParseDecode(name)
		if got := d.forever(7); err != nil || got != want {
			t.Errorf("%s: %+v, want %+v, %v", name, got, want, err)
		}
	}
}

func loadSaved(t *testing.T) *Policy {
	t.Helper()
	path, _ := saved(t)
	p, err := LoadPolicy(openCPU(t, 2), path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestEvaluate: no batch size changes a route, more routes are never worse, none beats the optimum,
// and all please the judge.
func TestEvaluate(t *testing.T) {
	p := loadSaved(t)
	const count = 37
	for _, purpose := range []rng.Purpose{rng.ValidInstances, rng.TestInstances} {
		src := p.Source(purpose)
		optimum := make([]float64, count)
		if err := vrp.OptimalCosts(t.Context(), src, 5, count, 1, optimum, nil); err != nil {
			t.Fatal(err)
		}
		mean := map[string]float64{}
		for _, name := range []string{"greedy", "pomo", "pomo8", "sample:1", "sample:8", "sample8:8", "pomo:1", "pomo8:1.5"} {
			d, err := ParseDecode(name)
			if err != nil {
				t.Fatal(err)
			}
			o := EvalOptions{Source: src, First: 5, Count: count, Decode: d, Judge: true, KeepTours: true}
			want, err := p.Evaluate(t.Context(), o)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, o.Batch = range []int{1, 8, 64} {
				got, err := p.Evaluate(t.Context(), o)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s in batches of %d: %.500s", name, o.Batch, diff)
				}
			}
			for i, l := range want.Lengths {
				if l < optimum[i]*(1-1e-5) {
					t.Errorf("%s: instance %d costs %g, the optimum is %g", name, i, l, optimum[i])
				}
			}
			mean[name], _ = stats.MeanSE(want.Lengths)
		}
		if !(mean["pomo8"] <= mean["pomo"] && mean["sample:8"] < mean["sample:1"]) {
			t.Errorf("more routes are worse: %v", mean)
		}
	}
}

func TestEvaluateOtherSizes(t *testing.T) {
	p := loadSaved(t)
	src := p.Source(rng.TestInstances)
	src.N, src.Capacity = 23, 40
	e, err := p.Evaluate(t.Context(), EvalOptions{Source: src, Count: 9, Decode: Greedy, Judge: true})
	if err != nil || len(e.Lengths) != 9 {
		t.Fatal(err)
	}
	src.Capacity = 3
	if _, err := p.Evaluate(t.Context(), EvalOptions{Source: src, Count: 9, Decode: Greedy}); err == nil {
		t.Error("a source with demands over capacity was accepted")
	}
	if _, err := p.Evaluate(t.Context(), EvalOptions{Source: p.Source(rng.TestInstances), Decode: Greedy}); err == nil {
		t.Error("no instances were evaluated")
	}
}

func TestJudge(t *testing.T) {
	b := &vrp.Batch{B: 1, N: 2, Capacity: 3, X: []float32{0, 1, 0}, Y: []float32{0, 0, 1}, Demand: []int32{0, 2, 2}}
	for _, c := range []struct {
		name   string
		tour   []int32
		length float32
		ok     bool
	}{
		{"right", []int32{0, 1, 0, 2, 0}, 4, true},
		{"over capacity", []int32{0, 1, 2, 0, 0}, 2 + math.Sqrt2, false},
		{"a customer left out", []int32{0, 1, 0, 0, 0}, 2, false},
		{"another length", []int32{0, 1, 0, 2, 0}, 3.9, false},
		{"no length", []int32{0, 1, 0, 2, 0}, float32(math.NaN()), false},
	} {
		if err := judge(b, 0, c.tour, c.length); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestTemperatureOfADecoder: where it is near nothing the most likely node is drawn at nearly every
// step, from the same starts, and where it is high other routes come of them; generated instances
// and given problems alike. The policy has learned so little that some nodes are as likely as
// others to the third digit.
func TestTemperatureOfADecoder(t *testing.T) {
	p := loadSaved(t)
	src := p.Source(rng.TestInstances)
	const count = 40
	problems := make([]*vrp.Problem, count)
	b := vrp.NewBatch(count, src.N, src.Capacity)
	src.Fill(b, 0)
	for i := range problems {
		problems[i] = b.Problem(i)
	}
	generated := func(decode string) float64 {
		d, err := ParseDecode(decode)
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Evaluate(t.Context(), EvalOptions{Source: src, Count: count, Decode: d})
		if err != nil {
			t.Fatal(err)
		}
		mean, _ := stats.MeanSE(e.Lengths)
		return mean
	}
	given := func(decode string) float64 {
		d, err := ParseDecode(decode)
		if err != nil {
			t.Fatal(err)
		}
		routed, err := p.RouteMany(t.Context(), problems, ManyOptions{Decode: d})
		if err != nil {
			t.Fatal(err)
		}
		costs := make([]float64, count)
		for i, r := range routed {
			costs[i] = r.Cost
		}
		mean, _ := stats.MeanSE(costs)
		return mean
	}
	for name, mean := range map[string]func(string) float64{"generated": generated, "given": given} {
		for _, same := range [][2]string{{"pomo", "pomo:0.001"}, {"pomo8", "pomo8:0.001"}, {"greedy", "sample:3,0.001"}} {
			if a, b := mean(same[0]), mean(same[1]); math.Abs(a-b) > 0.005*a {
				t.Errorf("%s: %s %v, %s %v", name, same[0], a, same[1], b)
			}
		}
		if likely, even := mean("pomo"), mean("pomo:100"); math.Abs(even-likely) < 0.02*likely {
			t.Errorf("%s: routes that are drawn evenly have %v, as the likely ones have: %v", name, even, likely)
		}
		if one, eight := mean("sample:6"), mean("sample8:6"); !(eight < one) {
			t.Errorf("%s: six samples have %v, and %v under eight symmetries", name, one, eight)
		}
	}
}

func TestSolve(t *testing.T) {
	p := loadSaved(t)
	for _, file := range []string{"E-n13-k4.vrp", "E-n22-k4.vrp", "X-n101-k25.vrp"} {
		prob, err := vrp.LoadProblem(filepath.Join("..", "..", "env", "cvrp", "testdata", file), vrp.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if prob.X == nil {
			if _, _, err := p.Solve(t.Context(), prob, Greedy); err == nil || !strings.Contains(err.Error(), "no coordinates") {
				t.Errorf("%s has no coordinates: %v", file, err)
			}
			continue
		}
		costs := map[string]float64{}
		for _, name := range []string{"greedy", "pomo", "pomo8", "pomo8:1", "sample:4", "sample8:4,2"} {
			d, err := ParseDecode(name)
			if err != nil {
				t.Fatal(err)
			}
			sol, cost, err := p.Solve(t.Context(), prob, d)
			if err != nil {
				t.Fatal(err)
			}
			if err := vrp.Validate(prob, sol); err != nil || cost != prob.Cost(sol) {
				t.Errorf("%s by %s: cost %g, %v", file, name, cost, err)
			}
			costs[name] = cost
		}
		if costs["pomo8"] > costs["pomo"] {
			t.Errorf("%s: symmetries made it worse: %v", file, costs)
		}
	}
	odd := &vrp.Problem{Name: "odd", Capacity: 5, Demand: []int32{0, 6}, X: []float64{1, 1}, Y: []float64{2, 2}}
	if _, _, err := p.Solve(t.Context(), odd, Greedy); err == nil || !strings.Contains(err.Error(), "customer 1 demands 6") {
		t.Errorf("a demand over capacity: %v", err)
	}
	odd.Demand[1] = 5
	if sol, cost, err := p.Solve(t.Context(), odd, Greedy); err != nil || cost != 0 || len(sol.Routes) != 1 {
		t.Errorf("all in one place: %v, %g, %v", sol, cost, err)
	}
}

// TestRoutesAreOnTheHostToo: the host has a copy of the routes that a device makes, so that what
// fits once need not fit.
func TestRoutesAreOnTheHostToo(t *testing.T) {
	available, known := run.AvailableMemory()
	if !known {
		t.Skip("this system does not tell its available memory")
	}
	// a device keeps n routes of 2n actions, and two numbers for each pair of nodes
	n := int(math.Sqrt(0.8 * float64(available) / 16))
	_, err := loadSaved(t).Prepare(n, 30, Decode{Starts: true})
	if err == nil || !strings.Contains(err.Error(), "of memory") || !strings.Contains(err.Error(), "use --decode greedy") {
		t.Errorf("%d routes twice: %v", n, err)
	}
	n = int(math.Sqrt(float64(available))) // one route; two numbers of 4 bytes for each pair of nodes
	if _, err := loadSaved(t).Prepare(n, 30, Greedy); err == nil || !strings.Contains(err.Error(), ": use --method search in place of a policy") {
		t.Errorf("%d customers: %v", n, err)
	}
}

// TestMemoryIsForeseen: what a program of many nodes is said to need before it is compiled is most
// of what it has then, tables of pairs included; a card makes them for all instances of a batch.
func TestMemoryIsForeseen(t *testing.T) {
	path, _ := saved(t, "model.pointer_pairs=true", "model.pointer_distance=0.5")
	dev := openCPU(t, 2)
	p, err := LoadPolicy(dev, path)
	if err != nil {
		t.Fatal(err)
	}
	const n = 2000
	program := func(batch int) *plan.Plan {
		pl := plan.New("solve", dev, batch, n+1, p.model.Layout())
		recordRoutes(pl, p.model, p.model.Encode(pl, 0, givenInstances(pl, n, 30), false), Greedy, n, 1)
		return pl
	}
	pl := program(2)
	foreseen := run.LeastMemory(dev, pl.Program())
	r, err := pl.Compile(dev, p.store)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if has := r.Memory(); float64(foreseen) < 0.9*float64(has) || foreseen > has {
		t.Errorf("%d bytes are foreseen, it has %d", foreseen, has)
	}
	const table = 4 * (n + 1) * 2016
	if each := run.LeastMemory(crowded{dev}, program(9).Program()) - run.LeastMemory(crowded{dev}, program(8).Program()); each < table || each > table+table/10 {
		t.Errorf("an instance more takes a card %d bytes, its table of pairs has %d", each, table)
	}
}

// TestBatchesOfManyNodes: what all pairs of an instance's nodes say to one another bounds a batch,
// since a card keeps it for each.
func TestBatchesOfManyNodes(t *testing.T) {
	for n, want := range map[int]int{20: 1024, 100: 1024, 500: 1024, 1000: 266, 1023: 256, 5000: 10, 100_000: 1} {
		if got := evalBatch(n, Greedy); got != want {
			t.Errorf("%d instances of %d customers at a time, want %d", got, n, want)
		}
	}
	if got := evalBatch(1000, Decode{Symmetries: 8}); got != 266/8 {
		t.Errorf("%d instances of 1000 customers under 8 symmetries at a time, want %d", got, 266/8)
	}
}

func TestReferencesAreCached(t *testing.T) {
	runtest.Folder(t)
	for _, n := range []int{6, 14} {
		src := SourceOf(tiny(t), rng.ValidInstances)
		src.N = n
		want, err := Reference(t.Context(), src, 20, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		got, err := Reference(dead, src, 20, 2, nil) // nothing can be solved: it must come from the cache
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		other := src
		other.Seed++
		if _, err := Reference(dead, other, 20, 2, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("another seed's costs came from somewhere: %v", err)
		}
		path, _ := referencePath(src, 20, want.Method)
		if err := os.WriteFile(path, []byte("junk"), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err = Reference(t.Context(), src, 20, 1, nil); err != nil || !cmp.Equal(want, got) {
			t.Errorf("a broken cache was not mended: %v", err)
		}
	}
	if ReferenceMethod(12) != Optimum || ReferenceMethod(13) != Search {
		t.Error("the limit of the exact method has moved")
	}
}

// TestStepFLOPs holds the formula to the documented size of a tiny_1 step.
func TestStepFLOPs(t *testing.T) {
	cfg, err := config.Load("tiny_1", nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newModel(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if g := float64(stepFLOPs(m, cfg, 128, 128*13)) / 1e9; g < 6 || g > 7 {
		t.Errorf("a tiny_1 step takes %.2f GFLOP, about 6.5 is documented", g)
	}
}

func TestTooLarge(t *testing.T) {
	if _, known := run.AvailableMemory(); !known {
		t.Skip("this system does not tell its available memory")
	}
	for _, set := range [][]string{{"training.batch_size=1048576", "problem.num_customers=100000"}, {"model.hidden_dim=16384", "model.num_layers=60"}, {"problem.num_customers=100000", "baseline.type=pomo"}} {
		o := options(tiny(t, set...), openCPU(t, 1))
		o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
		err := run.Run(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), "of memory") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", set, err)
		}
		if _, err := CompileStep(openCPU(t, 1), tiny(t, set...)); err == nil || !strings.Contains(err.Error(), "of memory") {
			t.Errorf("a step with %s: %v", set, err)
		}
	}
	if err := fitsInstances(EvalOptions{Source: vrp.Source{N: 10}, Count: math.MaxInt}); err == nil || !strings.Contains(err.Error(), "keeping the results of") {
		t.Errorf("%v", err)
	}
}
