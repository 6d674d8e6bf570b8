package policy_test

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"haul/internal/config"
	"haul/internal/device"
	"haul/internal/recipe"
	"haul/internal/run"
	"haul/vrp"
	"haul/vrp/policy"
)

// trained is the folder of a run that was over in a blink.
func trained(t *testing.T) string {
	t.Helper()
	c, err := config.Load("tiny_1", []string{"problem.num_customers=5", "training.num_batches_per_epoch=2", "training.batch_size=8", "training.num_epochs=1",
		"training.validation_instances=10", "model.hidden_dim=16", "model.num_heads=2", "model.num_layers=1", "baseline.eval_batches=1"})
	if err != nil {
		t.Fatal(err)
	}
	dev, err := device.Open("cpu", device.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	dir, err := run.OpenDir(filepath.Join(t.TempDir(), "run"), false, false)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	task, err := recipe.All[0].Open(c, noFlags{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Run(t.Context(), run.Options{Recipe: recipe.All[0], Task: task, Settings: c, Device: dev, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	return dir.Path()
}

func problem(t *testing.T, n int) *vrp.Problem {
	t.Helper()
	coords, demands := make([][2]float64, n+1), make([]int, n+1)
	for i := range coords {
		coords[i] = [2]float64{100 * math.Cos(float64(i*i)), 50 * math.Sin(float64(3*i))}
		demands[i] = min(i, 1) * (1 + i%3)
	}
	p, err := vrp.New(coords, demands, 8)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Routes are valid at sizes it never saw, and goroutines get what one alone gets.
func TestPolicySolves(t *testing.T) {
	pi, err := policy.Load(trained(t), policy.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pi.Close()
	if pi.Customers() != 5 || pi.Parameters() < 100 {
		t.Errorf("%d customers, %d parameters", pi.Customers(), pi.Parameters())
	}
	ctx := context.Background()
	for _, n := range []int{1, 5, 23} {
		p := problem(t, n)
		greedy, err := pi.Solve(ctx, p, "")
		if err != nil {
			t.Fatal(err)
		}
		starts, err := pi.Solve(ctx, p, "pomo8")
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Validate(greedy.Routes); err != nil {
			t.Errorf("%d customers: %v", n, err)
		}
		if err := p.Validate(starts.Routes); err != nil {
			t.Errorf("%d customers with all starts: %v", n, err)
		}
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				again, err := pi.Solve(ctx, p, "greedy")
				if err != nil || again.Cost != greedy.Cost {
					t.Errorf("%d customers, side by side: %v, %v; alone %v", n, again, err, greedy.Cost)
				}
			})
		}
		group.Wait()
	}
}

func TestPolicyRefuses(t *testing.T) {
	dir := trained(t)
	pi, err := policy.Load(filepath.Join(dir, "best.safetensors"), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pi.Solve(t.Context(), problem(t, 5), "beam"); err == nil || !strings.Contains(err.Error(), "beam") {
		t.Errorf("decode beam: %v", err)
	}
	limited, err := vrp.NewLimited([][2]float64{{0, 0}, {1, 1}}, []int{0, 1}, 1, vrp.Limits{Vehicles: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pi.Solve(t.Context(), limited, ""); err == nil || !strings.Contains(err.Error(), "a fleet of 1") {
		t.Errorf("a limited fleet: %v", err)
	}
	for range 2 {
		if err := pi.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := pi.Solve(t.Context(), problem(t, 5), ""); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("after Close: %v", err)
	}
	for path, options := range map[string]policy.Options{filepath.Join(dir, "config.yaml"): {}, filepath.Join(dir, "missing"): {}, dir: {Device: "tpu"}} {
		if _, err := policy.Load(path, options); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s on %q: %v, want one line", path, options.Device, err)
		}
	}
}

// noFlags is a command line without any.
type noFlags struct{}

func (noFlags) Changed(string) bool  { return false }
func (noFlags) String(string) string { return "" }
func (noFlags) Int(string) int       { return 0 }
func (noFlags) Float(string) float64 { return 0 }

// TestShipped: what comes with Haul solves a problem of its own size, and a name that is none is
// refused.
func TestShipped(t *testing.T) {
	for _, name := range policy.Names() {
		p, err := policy.Shipped(name, policy.Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.Solve(t.Context(), problem(t, min(p.Customers(), 20)), "pomo")
		if err != nil || len(s.Routes) == 0 {
			t.Errorf("%s: %v, %v", name, s, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := policy.Shipped("nosuch", policy.Options{}); err == nil {
		t.Error("a policy that is none was loaded")
	}
}
