package routing

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/policy"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/stats"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
	"haul/internal/vrp/testset"
)

// TestEvaluateInstances: the figures of a file of instances, worked out again from the routes; the
// folder holds them.
func TestEvaluateInstances(t *testing.T) {
	path, _ := saved(t)
	dev := openCPU(t, 1)
	p, err := policy.Load(dev, path)
	if err != nil {
		t.Fatal(err)
	}
	problems := drawn(p, 11)
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
		_, cost, err := p.Solve(t.Context(), prob, policy.Decode{Starts: true})
		if err != nil {
			t.Fatal(err)
		}
		lengths = append(lengths, cost)
		sol, stated, err := files.LoadSolution(filepath.Join(out, fmt.Sprintf("instance-%d.sol", i)), nil)
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

// TestEvaluatePublicSet: Kool's set is routed with the set's capacity. The published mean is
// reported only for the whole set.
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
	r.compare(&testset.Set{Published: 4}, []policy.Routed{{Cost: 5}, {Cost: 3.4}})
	if r.Published == nil || math.Abs(*r.ToPublic-0.05) > 1e-12 || r.MeanGap != nil {
		t.Errorf("%+v", r)
	}
}

// drawn are test instances of the kind that a policy was trained on.
func drawn(p *policy.Policy, count int) (out []*vrp.Problem) {
	src := p.Source(rng.TestInstances)
	b := vrp.NewBatch(count, src.N, src.Capacity)
	src.Fill(b, 0)
	for i := range count {
		out = append(out, b.Problem(i))
		out[i].Name = fmt.Sprintf("instance-%d", i)
	}
	return out
}

// TestEvaluateInterrupted: an interrupted active search reports the best routes so far for the
// instances that it has reached, with their number. The error says that it was cut short.
func TestEvaluateInterrupted(t *testing.T) {
	path, _ := saved(t)
	dev := openCPU(t, 1)
	p, err := policy.Load(dev, path)
	if err != nil {
		t.Fatal(err)
	}
	problems := drawn(p, 3)
	more := p.Source(rng.TestInstances)
	more.N, more.Capacity = 4, int32(p.Config.Problem.VehicleCapacity) // a second size, which is not begun
	b := vrp.NewBatch(2, more.N, more.Capacity)
	more.Fill(b, 0)
	problems = append(problems, b.Problem(0), b.Problem(1))
	dir := t.TempDir()
	for i, prob := range problems {
		prob.Name = fmt.Sprintf("instance-%d", i)
		var text bytes.Buffer
		if err := files.WriteProblem(&text, prob); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, prob.Name+".vrp"), text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e := evaluation(t, dev, path, evalFlags{"instances": dir, "distance": "exact", "decode": "eas:3"})
	e.Progress = func(done, of int) { cancel() }
	result, err := Recipe{}.Evaluate(ctx, e)
	if cut := new(run.CutShort); !errors.As(err, &cut) || !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, %v", result, err)
	}
	r := result.(*Compared)
	var text strings.Builder
	if err := r.Text(&text, func(s string) string { return s }); err != nil || !strings.Contains(text.String(), "the first 3 of 5 instances") {
		t.Errorf("%v: %s", err, text.String())
	}
	if !r.Interrupted || r.Instances != 3 || r.Of != 5 || r.Routes != 0 {
		t.Errorf("%+v", r)
	}
	if *r.Iterations != (policy.Iterations{Fewest: 1, Most: 1}) || !strings.Contains(text.String(), "1 iterations per instance") {
		t.Errorf("after the first of three iterations: %s, %s", r.Iterations, text.String())
	}
	if r.first.Name != "instance-0" || r.Customers != problems[0].N() {
		t.Errorf("the routes of instance-0 are those of %s, of %d customers each", r.first.Name, r.Customers)
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	if result, err := (Recipe{}).Evaluate(ended, e); result != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("before anything: %v, %v", result, err)
	}
}

// TestEvaluateDrawnInterrupted: an interrupted evaluation of drawn instances reports the finished
// ones, with the same costs as a whole evaluation.
func TestEvaluateDrawnInterrupted(t *testing.T) {
	path, _ := saved(t)
	dev := openCPU(t, 1)
	const done, count = 128, 200 // a batch of routes under eight symmetries, and more
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e := evaluation(t, dev, path, evalFlags{"count": count, "decode": "sample8:1"})
	e.Progress = func(done, of int) { cancel() }
	result, err := Recipe{}.Evaluate(ctx, e)
	if cut := new(run.CutShort); !errors.As(err, &cut) {
		t.Fatalf("%v, %v", result, err)
	}
	r := result.(*Evaluated)
	whole, err := Recipe{}.Evaluate(t.Context(), evaluation(t, dev, path, evalFlags{"count": done, "decode": "sample8:1"}))
	if err != nil {
		t.Fatal(err)
	}
	if w := whole.(*Evaluated); !r.Interrupted || r.Instances != done || r.Of != count || r.MeanCost != w.MeanCost || r.Gap != w.Gap || w.Interrupted {
		t.Errorf("%+v, a whole one has %+v", r, w)
	}
	var text strings.Builder
	if err := r.Text(&text, func(s string) string { return s }); err != nil || !strings.Contains(text.String(), "the first 128 of 200 instances") {
		t.Errorf("%v: %s", err, text.String())
	}
}
