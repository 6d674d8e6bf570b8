package policy

import (
	"fmt"
	"haul/internal/kernel"
	"haul/internal/rng"
	"haul/internal/run/runtest"
	"haul/internal/vrp"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestLimitsThatWereNotLearnedAreRefused: a policy takes problems of the rules of its training. A
// policy of CVRP refuses every other attribute by name. A policy with limits of a route's length
// takes those only, and no limits that include service times or rounded distances.
func TestLimitsThatWereNotLearnedAreRefused(t *testing.T) {
	for _, c := range []struct {
		name        string
		change      func(p *vrp.Problem)
		cvrp, cvrpl bool // taken
	}{
		{"plain", func(*vrp.Problem) {}, true, true},
		{"a limit of length", func(p *vrp.Problem) { p.MaxDuration = 90 }, false, true},
		{"with service", func(p *vrp.Problem) { p.MaxDuration, p.Service = 90, []float64{0, 1, 1, 1} }, false, false},
		{"of rounded ways", func(p *vrp.Problem) { p.MaxDuration, p.Metric = 90, vrp.Rounded }, false, false},
		{"windows too", func(p *vrp.Problem) {
			p.MaxDuration, p.Windows = 90, [][]vrp.Window{{vrp.Always}, {{From: 0, To: 50}}, {vrp.Always}, {vrp.Always}}
		}, false, false},
		{"open routes", func(p *vrp.Problem) { p.Open = true }, false, false},
		{"few vehicles", func(p *vrp.Problem) { p.Vehicles = 1 }, false, false},
		{"pickups", func(p *vrp.Problem) { p.Pickup = []int32{0, 1, 0, 0} }, false, false},
	} {
		for set, taken := range map[kernel.RuleSet]bool{kernel.CVRP: c.cvrp, kernel.CVRPL: c.cvrpl} {
			p := &vrp.Problem{Metric: vrp.Exact, Capacity: 9, Demand: []int32{0, 1, 2, 3}, X: []float64{10, 30, 14, 22}, Y: []float64{5, 9, 25, 11}}
			c.change(p)
			if err := routable(p, set); (err == nil) != taken {
				t.Errorf("%s by rules %v: %v", c.name, set, err)
			}
		}
	}
	path, _ := saved(t)
	policy, err := Load(openCPU(t, 1), path)
	if err != nil {
		t.Fatal(err)
	}
	limited := &vrp.Problem{Metric: vrp.Exact, MaxDuration: 90, Capacity: 9, Demand: []int32{0, 1, 2}, X: []float64{0, 1, 2}, Y: []float64{0, 1, 0}}
	if _, _, err := policy.Solve(t.Context(), limited, Decode{}); err == nil || !strings.Contains(err.Error(), "duration") {
		t.Errorf("one problem, a policy of CVRP and a limit of length: %v", err)
	}
	if _, err := policy.RouteMany(t.Context(), []*vrp.Problem{limited}, ManyOptions{}); err == nil || !strings.Contains(err.Error(), "a policy cannot route it: ") {
		t.Errorf("many problems, a policy of CVRP and a limit of length: %v", err)
	}
}

// TestSymmetriesDiffer: the eight images of a problem differ and have the same distances, and the
// decoder's program has the number of symmetries.
func TestSymmetriesDiffer(t *testing.T) {
	p := &vrp.Problem{Capacity: 9, Demand: []int32{0, 1, 2, 3}, X: []float64{10, 30, 14, 22}, Y: []float64{5, 9, 25, 11}}
	x, y, demand := make([]float32, 32), make([]float32, 32), make([]int32, 32)
	unitRows(p, kernel.CVRP, x, y, demand)
	seen := map[string]bool{}
	for k := range 8 {
		rowX, rowY := x[4*k:][:4], y[4*k:][:4]
		seen[fmt.Sprint(rowX, rowY)] = true
		if !slices.Equal(demand[4*k:][:4], p.Demand) {
			t.Errorf("image %d has demands %v", k, demand[4*k:][:4])
		}
		for i := range rowX {
			if rowX[i] < 0 || rowX[i] > 1 || rowY[i] < 0 || rowY[i] > 1 {
				t.Errorf("image %d leaves the unit square: %v, %v", k, rowX, rowY)
			}
			for j := range i {
				want := math.Hypot(p.X[i]-p.X[j], p.Y[i]-p.Y[j]) / 20 // 20 is the larger side
				if got := math.Hypot(float64(rowX[i]-rowX[j]), float64(rowY[i]-rowY[j])); math.Abs(got-want) > 1e-6 {
					t.Errorf("image %d: %d and %d are %v apart, want %v", k, i, j, got, want)
				}
			}
		}
	}
	if len(seen) != 8 {
		t.Errorf("%d different images of 8", len(seen))
	}
	dev := runtest.Watch(openCPU(t, 1))
	path, _ := saved(t)
	policy, err := Load(dev, path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		decode             string
		symmetries, starts int
		forced             bool
		choice             kernel.Choice
	}{{"greedy", 1, 1, false, kernel.Greedy}, {"pomo", 1, 5, true, kernel.Greedy}, {"pomo8", 8, 5, true, kernel.Greedy}, {"sample:3", 1, 3, false, kernel.Sample}} {
		d, err := ParseDecode(c.decode)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := policy.Evaluate(t.Context(), EvalOptions{Source: policy.Source(rng.TestInstances), Count: 6, Decode: d, Validate: true}); err != nil {
			t.Fatal(err)
		}
		prog := dev.Programs[len(dev.Programs)-1]
		g, r := runtest.Op[*kernel.Generate](t, prog.PerShard), runtest.Op[*kernel.Rollout](t, prog.PerShard)
		if g.Symmetries != c.symmetries || prog.Batch != 6*c.symmetries || r.Length.Cols() != c.starts || r.Forced != c.forced || r.Choice != c.choice || d.Routes(5) != c.starts*c.symmetries {
			t.Errorf("%s: %d symmetries in rows of %d, %d starts, forced %v, choice %d", c.decode, g.Symmetries, prog.Batch, r.Length.Cols(), r.Forced, r.Choice)
		}
	}
}
