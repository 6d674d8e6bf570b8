package policy

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
)

// A prepared program gives each problem the routes that a new program would give it, in any order
// and repeatedly.
func TestStepperForgetsWhatItSolved(t *testing.T) {
	p := loadSaved(t)
	src := p.Source(rng.TestInstances)
	batch := vrp.NewBatch(3, src.N, src.Capacity)
	src.Fill(batch, 0)
	for _, name := range []string{"greedy", "pomo8", "sample:4"} {
		d, err := ParseDecode(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.Prepare(src.N, src.Capacity, d)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{0, 1, 2, 1, 0, 0} {
			want, wantCost, err := p.Solve(t.Context(), batch.Problem(i), d)
			if err != nil {
				t.Fatal(err)
			}
			got, cost, err := s.Solve(t.Context(), batch.Problem(i))
			if diff := cmp.Diff(want, got); err != nil || diff != "" || cost != wantCost {
				t.Errorf("%s: instance %d: %v, cost %g, want %g: %s", name, i, err, cost, wantCost, diff)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSolve(t *testing.T) {
	p := loadSaved(t)
	for _, file := range []string{"E-n13-k4.vrp", "E-n22-k4.vrp", "X-n101-k25.vrp"} {
		prob, err := files.LoadProblem(filepath.Join("..", "vrp", "testdata", file), files.Options{})
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
	scaled := &vrp.Problem{Name: "odd", Capacity: 5, Demand: []int32{0, 6}, X: []float64{1, 1}, Y: []float64{2, 2}}
	if _, _, err := p.Solve(t.Context(), scaled, Greedy); err == nil || !strings.Contains(err.Error(), "customer 1 demands 6") {
		t.Errorf("a demand over capacity: %v", err)
	}
	scaled.Demand[1] = 5
	if sol, cost, err := p.Solve(t.Context(), scaled, Greedy); err != nil || cost != 0 || len(sol.Routes) != 1 {
		t.Errorf("all in one place: %v, %g, %v", sol, cost, err)
	}
}

// TestRoutesAreOnTheHostToo: the host holds a copy of the device's routes, which counts as memory.
func TestRoutesAreOnTheHostToo(t *testing.T) {
	available, known := run.AvailableMemory()
	if !known {
		t.Skip("this system does not tell its available memory")
	}
	// a device holds n routes of 2n actions, and two numbers for each pair of nodes
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
