package lab

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"haul/internal/device"
)

func TestVerdictsAreComputed(t *testing.T) {
	for _, c := range []struct {
		name     string
		claim    Claim
		measured float64
		want     Verdict
		shown    string
	}{
		{"just as claimed", faster("", "", 193, 193), 193, Holds, "193×"},
		{"half the effect", faster("", "", 193, 193), 97, Holds, "97×"},
		{"less than half", faster("", "", 193, 193), 96.9, Overstated, "96.9×"},
		{"twice the effect", faster("", "", 2, 3), 5, Holds, "5×"},
		{"more than twice", faster("", "", 2, 3), 5.1, Understated, "5.10×"},
		{"the same", faster("", "", 2, 3), 1.02, NoEffect, "1.02×"},
		{"the other way round", faster("", "", 2, 3), 0.5, Contradicted, "0.5× (2× the other way round)"},
		{"a direction", direction("", ""), 1.031, Holds, "1.03×"},
		{"a direction, and far", direction("", ""), 1e6, Holds, "1,000,000×"},
		{"no direction", direction("", ""), 1.0, NoEffect, "1×"},
		{"against the direction", direction("", ""), 0.9, Contradicted, "0.9× (1.11× the other way round)"},
		{"a share saved", saves("", "", 0.10, 0.15), 1 / (1 - 0.12), Holds, "12.0 % less time"},
		{"a little less saved", saves("", "", 0.10, 0.15), 1 / (1 - 0.085), Holds, "8.5 % less time"},
		{"too little saved", saves("", "", 0.10, 0.15), 1 / (1 - 0.07), Overstated, "7.0 % less time"},
		{"more saved", saves("", "", 0.10, 0.15), 1 / (1 - 0.5), Understated, "50.0 % less time"},
		{"lost", saves("", "", 0.10, 0.15), 0.8, Contradicted, "25.0 % more time"},
		{"a time", takes("", "", 0.238), 0.2, Holds, "200 ms"},
		{"a shorter time", takes("", "", 0.238), 0.001, Overstated, "1 ms"},
		{"a longer time", takes("", "", 0.238), 1, Understated, "1 s"},
		{"a figure", figure("", "", "s", 6, 6), 6.01, Holds, "6.01 s"},
		{"a wrong figure", figure("", "", "×", 213, 213), 210.6, Wrong, "211×"},
		{"not a number", direction("", ""), math.NaN(), Contradicted, "NaN×"},
	} {
		var r Result
		r.finds(c.claim, c.measured)
		if f := r.Claims[0]; f.Verdict != c.want || f.Shown != c.shown {
			t.Errorf("%s: %v is %q, shown as %q; want %q, %q", c.name, c.measured, f.Verdict, f.Shown, c.want, c.shown)
		}
	}
}

// Before, the slack multiplied the whole ratio instead of its difference from 1: a claim of 9 %
// more held at 74 % more, and a claim of 1.5 to 2 times at 1.03.
func TestVerdictSlackIsOfTheEffect(t *testing.T) {
	adds9 := faster("", "", 1.09, 1.09)
	for _, c := range []struct {
		claim    Claim
		measured float64
		want     Verdict
	}{
		{adds9, 1.74, Understated}, {adds9, 1.19, Understated}, {adds9, 1.17, Holds}, {adds9, 1.05, Holds}, {adds9, 1.04, Overstated},
		{faster("", "", 1.5, 2), 1.031, Overstated}, {faster("", "", 1.5, 2), 1.24, Overstated}, {faster("", "", 1.5, 2), 1.26, Holds},
		{faster("", "", 1.5, 2), 3.1, Understated},
	} {
		if got := c.claim.verdict(c.measured); got != c.want {
			t.Errorf("claimed %g to %g, measured %g: %s, want %s", c.claim.Lo, c.claim.Hi, c.measured, got, c.want)
		}
	}
}

// A better measurement never changes a verdict towards "contradicted".
func TestVerdictsAreMonotone(t *testing.T) {
	rank := map[Verdict]int{Contradicted: 0, NoEffect: 1, Overstated: 2, Holds: 3, Understated: 4}
	rapid.Check(t, func(t *rapid.T) {
		lo := rapid.Float64Range(1.031, 300).Draw(t, "lo")
		c := faster("", "", lo, lo*rapid.Float64Range(1, 3).Draw(t, "width"))
		a := rapid.Float64Range(0.001, 1000).Draw(t, "a")
		b := a * rapid.Float64Range(1, 100).Draw(t, "more")
		if rank[c.verdict(a)] > rank[c.verdict(b)] {
			t.Fatalf("claimed %v: %v %s, %v %s", c, a, c.verdict(a), b, c.verdict(b))
		}
	})
}

func TestArithmeticIsExact(t *testing.T) {
	type line struct {
		Measured float64
		Verdict  Verdict
	}
	for name, want := range map[string][]line{
		"arithmetic-001": {{193.027, Holds}, {210.595, Wrong}, {1.77625, Wrong}, {1.03843, Wrong}, {2.18182, Holds}, {2.90909, Holds}},
		"arithmetic-002": {{3200, Holds}, {6400, Wrong}, {240.4, Holds}, {6.01, Holds}, {23.1154, Wrong}, {12.5208, Wrong}, {1.14313, Wrong}, {1.09392, Wrong}},
		"arithmetic-003": {{32.3396, Holds}, {47.674, Wrong}, {11.8, Wrong}, {19.25, Wrong}, {16.8, Holds}, {21, Wrong}},
		"arithmetic-004": {{80, Holds}, {10240, Wrong}, {22.5, Wrong}, {90, Wrong}, {15, Wrong}, {0.75, Wrong}, {0.28, Holds}, {0.1, Holds}, {14, Wrong}, {35, Holds},
			{194.444, Holds}, {5.55556, Holds}, {13.8889, Wrong}},
	} {
		list, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		results, err := Run(context.Background(), list, Options{Device: "cpu"}, func(Result) {})
		if err != nil {
			t.Fatal(err)
		}
		var got []line
		for _, f := range results[0].Claims {
			got = append(got, line{f.Measured, f.Verdict})
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-5, 0)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestEveryWayCostsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, err := newRoutes(rapid.IntRange(1, 40).Draw(t, "batch"), rapid.IntRange(1, 60).Draw(t, "customers"))
		if err != nil {
			t.Fatal(err)
		}
		out := make([]float32, r.batch.B)
		for name, way := range map[string]func([]float32){"matrix": r.byMatrix, "operations": r.byOperations, "batched": r.batched} {
			way(out)
			if err := r.check(name, out); err != nil {
				t.Fatal(err)
			}
		}
		out[0]++
		if r.check("spoilt", out) == nil {
			t.Fatal("a wrong cost passed the check")
		}
	})
}

func TestRecomputingGivesTheSameGradientInLessMemory(t *testing.T) {
	dev, err := device.Open("cpu", device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	s := newStack()
	stored, err := s.compile(dev, false)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.compile(dev, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := sameGradient(stored.grad, again.grad); err != nil {
		t.Error(err)
	}
	if again.bytes >= stored.bytes {
		t.Errorf("recomputing takes %d bytes, storing %d", again.bytes, stored.bytes)
	}
	again.grad[3] += 0.1
	if sameGradient(stored.grad, again.grad) == nil {
		t.Error("a wrong gradient passed the check")
	}
}

func TestFailuresStayApart(t *testing.T) {
	ran := false
	list := []Experiment{
		{Name: "fails", run: func(context.Context, *env, *Result) error { return errors.New("no luck") }},
		{Name: "panics", run: func(context.Context, *env, *Result) error { panic("bang") }},
		{Name: "card", GPU: true, run: func(context.Context, *env, *Result) error { t.Error("ran without a GPU"); return nil }},
		{Name: "works", run: func(_ context.Context, _ *env, r *Result) error { ran = true; r.row("s", 1, "one"); return nil }},
	}
	calls := 0
	results, err := Run(context.Background(), list, Options{Device: "cpu"}, func(Result) { calls++ })
	if err != nil {
		t.Fatal(err)
	}
	if !ran || calls != 4 || results[0].Error != "no luck" || !strings.HasPrefix(results[1].Error, "panic: bang") || !strings.Contains(results[2].Needs, "needs a GPU") {
		t.Errorf("ran %v, told %d: %+v", ran, calls, results)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ended, list[3:], Options{Device: "cpu"}, func(Result) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context gives %v", err)
	}
}

func TestUnknownNames(t *testing.T) {
	if _, err := Find("costs"); err == nil || !strings.Contains(err.Error(), "cost-cpu") {
		t.Errorf("%v names no experiment to use", err)
	}
	for _, name := range []string{"tpu", "", "cuda:x", "cuda:-1"} {
		if _, err := Run(context.Background(), nil, Options{Device: name}, nil); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("device %q: %v", name, err)
		}
	}
	seen := map[string]bool{}
	for _, x := range List() {
		if seen[x.Name] || x.Name == "all" || x.Title == "" || x.Reports == "" || x.run == nil {
			t.Errorf("experiment %+v", x)
		}
		seen[x.Name] = true
	}
}

func TestWinnerNamesTheLastCrossing(t *testing.T) {
	cells := []cell{{16, 10, 1, 2}, {32, 10, 3, 2}, {64, 10, 2, 2}, {128, 10, 4, 2}, {16, 50, 1, 2}, {32, 50, 1, 2}}
	want := "the GPU wins costs at N=10 from B=128 on; at N=50 nowhere in the grid"
	if got := winner("costs", cells); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCrossoverIsDrawnWithAndWithoutGPU(t *testing.T) {
	costs := []cell{{32, 10, 1e-6, 0}, {128, 10, 4e-6, 0}, {32, 100, 1e-5, 0}, {128, 100, 4e-5, 0}}
	steps := []cell{{16, 10, 1e-3, 0}, {64, 10, 4e-3, 0}, {16, 50, 1e-2, 0}, {64, 50, 4e-2, 0}}
	for _, gpu := range []float64{0, 1e-5} {
		for i := range costs {
			costs[i].gpu, steps[i].gpu = gpu, gpu
		}
		svg, err := plotCells(costs, steps)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(svg), "GPU, N=10"); got != (gpu > 0) || !strings.Contains(string(svg), "CPU, N=100") {
			t.Errorf("with GPU times %v the picture has a GPU curve: %v", gpu, got)
		}
	}
}

// Before, the axes showed exponents of 2 and 10 instead of values.
func TestCrossoverAxesAreInUnits(t *testing.T) {
	svg, err := plotCells([]cell{{32, 10, 1e-6, 2e-5}, {8192, 10, 1e-3, 3e-5}, {32, 100, 1e-5, 2e-5}, {8192, 100, 1e-2, 3e-5}},
		[]cell{{16, 10, 1e-3, 2e-4}, {256, 10, 4e-3, 3e-4}, {16, 50, 1e-2, 3e-4}, {256, 50, 9e-2, 2e-3}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">16<", ">8,192<", ">1 µs<", ">100 µs<", ">1 ms<", ">10 ms<", ">batch<"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the picture has no %s", want)
		}
	}
	if strings.Contains(string(svg), "power of") {
		t.Error("the picture speaks of powers")
	}
}

func TestPage(t *testing.T) {
	good := Result{Name: "good", Title: "It works | well", Seconds: 3, Notes: []string{"a note"}, Plot: []byte("<svg/>")}
	good.row("s", 2e-6, "a time")
	good.finds(direction("000", "left is faster"), 2)
	results := []Result{good, {Name: "bad", Title: "It fails", Error: "line one\nline two"}, {Name: "card", Title: "It waits", Needs: "needs a GPU: none"}}
	write := func() string {
		var b strings.Builder
		p := Page{Command: "haul lab run all", Machine: []string{"CPU: a machine"}}
		if err := p.Write(&b, results, func(name string) string { return "pictures/" + name + ".svg" }); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	page := write()
	if page != write() {
		t.Error("the same results give two pages")
	}
	for _, want := range []string{"`haul lab run all`", "CPU: a machine", "| 000 | left is faster | 2× | **holds** | [good](#good-it-works--well) |", "failed: line one; line two", "Claims put to the test: 1. Holds 1. Experiments that could not run: 2.",
		"needs a GPU: none", "| a time | 2 µs |", "](pictures/good.svg)", "## card: It waits", "- A note."} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	var text strings.Builder
	if err := good.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"claim     000: left is faster", "measured  2×", "verdict   holds", "2 µs"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	// a claim without an upper bound can be encoded
	if _, err := json.Marshal(good); err != nil {
		t.Error(err)
	}
}
