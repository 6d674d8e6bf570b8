package policy

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/plan"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/stats"
	"haul/internal/vrp"

	"github.com/google/go-cmp/cmp"
)

// TestEvaluate: routes do not depend on the batch size, more routes are never worse, none beats the
// optimum, and the validator accepts all.
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
			o := EvalOptions{Source: src, First: 5, Count: count, Decode: d, Validate: true, KeepTours: true}
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
	e, err := p.Evaluate(t.Context(), EvalOptions{Source: src, Count: 9, Decode: Greedy, Validate: true})
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

// TestEvaluateKeepsWhatIsDone: an interrupted evaluation returns the results of the first
// instances, for every decoder.
func TestEvaluateKeepsWhatIsDone(t *testing.T) {
	p := loadSaved(t)
	for _, decode := range []string{"greedy", "sgbs:2,2", "eas:2"} {
		o := EvalOptions{Source: p.Source(rng.TestInstances), Count: 5, Batch: 2, Decode: parsed(t, decode), KeepTours: true}
		all, err := p.Evaluate(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, after := range []int{0, 2, 4} {
			ctx, cancel := context.WithCancel(t.Context())
			o.Progress = func(done int) {
				if done == after {
					cancel()
				}
			}
			if after == 0 {
				cancel()
			}
			some, err := p.Evaluate(ctx, o)
			cancel()
			if !errors.Is(err, context.Canceled) || some == nil && after > 0 {
				t.Fatalf("%s, interrupted after %d: %v, %v", decode, after, some, err)
			}
			if some == nil {
				continue
			}
			if n := len(some.Lengths); n != after || len(some.Tours) != n || !slices.Equal(some.Lengths, all.Lengths[:n]) {
				t.Errorf("%s, interrupted after %d: %v of %v, %d tours", decode, after, some.Lengths, all.Lengths, len(some.Tours))
			}
		}
	}
}

func TestValidate(t *testing.T) {
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
		if err := validate(b, 0, c.tour, c.length); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestTemperatureOfADecoder: at a temperature near zero nearly every sample is the most likely
// node. At a high one other routes result. Both hold for generated instances and given problems.
// The policy has learned so little that some nodes are equally likely to the third digit.
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

// TestMemoryIsForeseen: the estimate before compiling a program of many nodes is most of the memory
// that it then has, tables of pairs included. A GPU has them for all instances of a batch.
func TestMemoryIsForeseen(t *testing.T) {
	path, _ := saved(t, "model.pointer_pairs=true", "model.pointer_distance=0.5")
	dev := openCPU(t, 2)
	p, err := Load(dev, path)
	if err != nil {
		t.Fatal(err)
	}
	const n = 2000
	program := func(batch int) *plan.Plan {
		pl := plan.New("solve", dev, batch, n+1, p.model.Layout())
		recordRoutes(pl, p.model, p.model.Encode(pl, 0, pl.Given(kernel.Rules{Capacity: 30}, n+1), false), Greedy, n, 1)
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

// TestBatchesOfManyNodes: tables of pairs of nodes limit a batch, since a GPU has one per instance.
func TestBatchesOfManyNodes(t *testing.T) {
	for n, want := range map[int]int{20: 1024, 100: 1024, 500: 1024, 1000: 266, 1023: 256, 5000: 10, 100_000: 1} {
		if got := evalBatch(n, kernel.CVRP, Greedy); got != want {
			t.Errorf("%d instances of %d customers at a time, want %d", got, n, want)
		}
	}
	if got := evalBatch(1000, kernel.CVRP, Decode{Symmetries: 8}); got != 266/8 {
		t.Errorf("%d instances of 1000 customers under 8 symmetries at a time, want %d", got, 266/8)
	}
}

func TestResultsThatNoHostKeeps(t *testing.T) {
	if err := FitsHost(EvalOptions{Source: vrp.Source{N: 10}, Count: math.MaxInt}); err == nil || !strings.Contains(err.Error(), "keeping the results of") {
		t.Errorf("%v", err)
	}
}
