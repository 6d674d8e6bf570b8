package routing

import (
	"math"
	"strings"
	"testing"
)

// TestEvaluateVariants: a policy that was trained on a mix routes the test sets of what it has
// learned, each as it would alone, and refuses the others by name.
func TestEvaluateVariants(t *testing.T) {
	path, _ := saved(t, "baseline.type=pomo", "problem.attributes=cvrp, ovrpmbl, vrptw", "problem.distribution=uniform")
	dev := openCPU(t, 1)
	eval := func(flags evalFlags) (any, error) {
		flags["testset"], flags["customers"] = testsetRouteFinder, 50
		r, err := Recipe{}.Evaluate(t.Context(), evaluation(t, dev, path, flags))
		if err != nil {
			return nil, err
		}
		return r.Object(), nil
	}
	result, err := eval(evalFlags{"variant": "all", "first": 7, "count": 3})
	if err != nil {
		t.Fatal(err)
	}
	all := result.(*ByVariant)
	if len(all.Variants) != 3 || len(all.Left) != 45 {
		t.Fatalf("%d variants were routed, %d left out", len(all.Variants), len(all.Left))
	}
	sum := 0.0
	for i, name := range all.names {
		alone, err := eval(evalFlags{"variant": name, "first": 7, "count": 3})
		if err != nil {
			t.Fatal(err)
		}
		if c := alone.(*Compared); c.MeanCost != all.Variants[i].MeanCost || c.Instances != 3 {
			t.Errorf("%s: %v alone, %v of all", name, c.MeanCost, all.Variants[i].MeanCost)
		}
		sum += all.Variants[i].MeanCost
	}
	if math.Abs(sum/3-all.MeanCost) > 1e-9 {
		t.Errorf("the mean of %v is stated as %v", sum/3, all.MeanCost)
	}
	for want, flags := range map[string]evalFlags{
		"it is of the variant vrpl, and the policy has learned cvrp, ovrpmbl, vrptw": {"variant": "vrpl", "count": 2},
		"several depots":                     {"variant": "mdcvrp", "count": 2},
		`RouteFinder has no variant "vrpx"`:  {"variant": "vrpx"},
		"--first is 1000":                    {"variant": "vrptw", "first": 1000},
		"has 1 instances from number 999 on": {"variant": "vrptw", "first": 999, "count": 2},
		"--out is for one variant":           {"variant": "all", "count": 2, "out": t.TempDir()},
		"--split is about --testset kool":    {"variant": "cvrp", "split": "test"},
		"no such file or directory":          {"variant": "cvrp", "count": 2, "reference": "no/such.npz"},
	} {
		if _, err := eval(flags); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want %q", flags, err, want)
		}
	}
}

// TestEvaluateSeveralDepots: a policy of all 48 variants routes all of them, and none is left out.
func TestEvaluateSeveralDepots(t *testing.T) {
	path, _ := saved(t, "baseline.type=pomo", "problem.attributes=all, mdall", "problem.distribution=uniform")
	flags := evalFlags{"testset": testsetRouteFinder, "customers": 50, "variant": "all", "count": 1}
	r, err := Recipe{}.Evaluate(t.Context(), evaluation(t, openCPU(t, 1), path, flags))
	if err != nil {
		t.Fatal(err)
	}
	all := r.Object().(*ByVariant)
	if len(all.Variants) != 48 || len(all.Left) != 0 || all.names[24] != "mdcvrp" {
		t.Fatalf("%d variants were routed, %v left out", len(all.Variants), all.Left)
	}
}
