package main

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// manyVRP is n customers on a circle.
func manyVRP(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "NAME : many\nTYPE : CVRP\nDIMENSION : %d\nEDGE_WEIGHT_TYPE : EUC_2D\nCAPACITY : 10\nNODE_COORD_SECTION\n1 0 0\n", n+1)
	for i := range n {
		angle := 2 * math.Pi * float64(i) / float64(n)
		fmt.Fprintf(&b, "%d %.0f %.0f\n", i+2, 1000*math.Cos(angle), 1000*math.Sin(angle))
	}
	b.WriteString("DEMAND_SECTION\n1 0\n")
	for i := range n {
		fmt.Fprintf(&b, "%d 2\n", i+2)
	}
	return b.String() + "DEPOT_SECTION\n1\n-1\nEOF\n"
}

func TestSolveGenerated(t *testing.T) {
	args := []string{"solve", "--customers", "6", "--capacity", "30", "--count", "300", "--json"}
	with := func(more ...string) map[string]any { return object(t, append(args[:len(args):len(args)], more...)...) }
	exact := with("--method", "exact", "--workers", "1")
	for _, key := range []string{"instances", "mean_cpc", "se_cpc", "seconds", "method", "instances_per_second"} {
		if _, ok := exact[key]; !ok {
			t.Errorf("the object has no %q", key)
		}
	}
	if _, ok := exact["gap"]; ok {
		t.Error("a gap without --best-known")
	}
	// The published mean of this distribution; the seed is fixed, so the bound of four standard
	// errors cannot fail by chance.
	mean, se := exact["mean_cpc"].(float64), exact["se_cpc"].(float64)
	if math.Abs(mean-0.466568) > 4*se {
		t.Errorf("mean CPC %v ± %v lies far from 0.466568", mean, se)
	}
	if again := with("--workers", "2"); again["mean_cpc"] != exact["mean_cpc"] || again["method"] != "exact" {
		t.Errorf("the number of workers or the default method shows: %v and %v", again, exact)
	}
	savings := with("--method", "savings", "--best-known", fmt.Sprint(mean))
	gap := savings["gap"].(float64)
	if want := savings["mean_cpc"].(float64)/mean - 1; math.Abs(gap-want) > 1e-9 || gap < -1e-9 {
		t.Errorf("gap %v, want %v and not below 0", gap, want)
	}
	if moved := with("--seed", "7"); moved["mean_cpc"] == exact["mean_cpc"] {
		t.Error("the seed has no effect")
	}
	if uniform := with("--distribution", "uniform"); uniform["demand_range"].([]any)[1] != 9.0 {
		t.Errorf("uniform draws demands %v, want Kool's 1 to 9", uniform["demand_range"])
	}
	if large := object(t, "solve", "--customers", "40", "--count", "2", "--json"); large["method"] != "savings" {
		t.Errorf("40 customers default to %v", large["method"])
	}
	if one := object(t, "solve", "--count", "1", "--json"); one["se_cpc"] != nil {
		t.Errorf("one instance has the standard error %v", one["se_cpc"])
	}
}

func TestSampleAgreesWithItsDefinition(t *testing.T) {
	values := []float64{0.41, 0.39, 0.47, 0.3}
	var s sample
	sum, sumSq := 0.0, 0.0
	for _, v := range values {
		s.add(v)
		sum += v
	}
	for _, v := range values {
		sumSq += (v - sum/4) * (v - sum/4)
	}
	if se := *s.standardError(); math.Abs(s.mean-sum/4) > 1e-12 || math.Abs(se-math.Sqrt(sumSq/3/4)) > 1e-12 {
		t.Errorf("mean %v ± %v", s.mean, se)
	}
}

func TestSolveGeneratedInWords(t *testing.T) {
	r := haul(t, "solve", "--customers", "5", "--count", "50", "--best-known", "0.5")
	for _, want := range []string{"50 grid instances", "mean CPC", "±", "standard error", "gap", "instances/s"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("the report does not say %q: %s", want, r.stdout)
		}
	}
	if r.code != exitDone || r.stderr != "" {
		t.Errorf("exit %d, stderr %q: a bar in a pipe?", r.code, r.stderr)
	}
}

// A solution written for a file must pass the check, and its picture must be one.
func TestSolveFileThenCheck(t *testing.T) {
	dir := t.TempDir()
	square := write(t, "square.vrp", squareVRP)
	out, svg, pic := filepath.Join(dir, "x.sol"), filepath.Join(dir, "r.svg"), filepath.Join(dir, "r.png")
	for _, method := range []string{"exact", "savings"} {
		r := object(t, "solve", square, "--method", method, "--out", out, "--plot", svg, "--best-known", "68", "--json")
		if r["cost"] != 68.0 || r["routes"] != 2.0 || r["gap"] != 0.0 || r["method"] != method || r["valid"] != true {
			t.Errorf("%s: %v", method, r)
		}
		c := object(t, "solve", square, "--check", out, "--plot", pic, "--json")
		if c["valid"] != true || c["cost"] != 68.0 {
			t.Errorf("the written solution is judged %v", c)
		}
	}
	if text, err := os.ReadFile(svg); err != nil || !bytes.Contains(text, []byte("<svg")) {
		t.Errorf("no SVG: %v", err)
	}
	data, err := os.ReadFile(pic)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(data)); err != nil {
		t.Errorf("no PNG: %v", err)
	}
	exact := object(t, "solve", square, "--distance", "exact", "--json")
	if want := 40 + 20*math.Sqrt2; math.Abs(exact["cost"].(float64)-want) > 1e-9 {
		t.Errorf("unrounded cost %v, want %v", exact["cost"], want)
	}
}

func TestCheckJSONCarriesTheViolation(t *testing.T) {
	square := write(t, "square.vrp", squareVRP)
	good := write(t, "x.sol", squareSOL)
	if c := object(t, "solve", square, "--check", good, "--json"); c["valid"] != true {
		t.Errorf("%v", c)
	}
	r := haul(t, "solve", square, "--check", write(t, "x.sol", "Route #1: 1 2\n"), "--json")
	if r.code != exitFailed || !strings.Contains(r.stdout, `"valid":false`) || !strings.Contains(r.stdout, "customer 3 is never visited") {
		t.Errorf("exit %d, %s", r.code, r.stdout)
	}
}

func TestSameCost(t *testing.T) {
	for _, c := range []struct {
		stated, cost float64
		want         bool
	}{
		{68, 68, true}, {67, 68, false}, {68.5, 68, false}, {524.61, 524.6111, true}, {524.62, 524.6111, false}, {math.NaN(), 68, true},
	} {
		if got := sameCost(c.stated, c.cost); got != c.want {
			t.Errorf("stated %v, true %v: %v", c.stated, c.cost, got)
		}
	}
}

// A generated file, solved exactly and unrounded, must cost what the generated instance costs.
func TestGenWritesWhatSolveSolves(t *testing.T) {
	for _, c := range []struct {
		distribution string
		scale, slack float64
	}{{"grid", 100, 1e-6}, {"uniform", 1e6, 1e-5}} {
		dir := filepath.Join(t.TempDir(), "a", "folder")
		flags := []string{"--distribution", c.distribution, "--customers", "7", "--seed", "9", "--first", "5", "--count", "2", "--json"}
		g := object(t, append([]string{"gen", "--out", dir}, flags...)...)
		files := g["files"].([]any)
		if len(files) != 2 || g["instances"] != 2.0 {
			t.Fatalf("%v", g)
		}
		sum := 0.0
		for _, name := range files {
			r := object(t, "solve", filepath.Join(dir, name.(string)), "--method", "exact", "--distance", "exact", "--json")
			sum += r["cost"].(float64) / c.scale / 7
		}
		mean := object(t, append([]string{"solve", "--method", "exact"}, flags...)...)["mean_cpc"].(float64)
		if math.Abs(sum/2-mean) > c.slack {
			t.Errorf("%s: files cost %v a customer, instances %v", c.distribution, sum/2, mean)
		}
	}
}

func TestInterruptExits130(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	square := write(t, "square.vrp", squareVRP)
	for _, args := range [][]string{
		{"solve", "--count", "1000000000000"},
		{"solve", "--method", "savings", "--count", "1000000000000"},
		{"solve", square}, {"solve", square, "--method", "exact"},
		{"gen", "--count", "1000", "--out", t.TempDir()},
		{"bench", "cost"},
	} {
		var out, errs bytes.Buffer
		if code := execute(ctx, args, &out, &errs); code != exitInterrupted || errs.String() != "haul: interrupted\n" || out.Len() > 0 {
			t.Errorf("%v: exit %d, %q, %q", args, code, out.String(), errs.String())
		}
	}
}
