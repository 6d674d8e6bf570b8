package vrp

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haul/internal/rng"
)

func TestFillDependsOnSeedAndIndexAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := gridSource(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 30).Draw(t, "n"))
		src.Distribution = rapid.SampledFrom([]Distribution{Grid, Uniform}).Draw(t, "distribution")
		first := rapid.Uint64().Draw(t, "first")
		size := rapid.IntRange(1, 9).Draw(t, "batch")
		slot := rapid.IntRange(0, size-1).Draw(t, "slot")

		many, one := NewBatch(size, src.N, 0), NewBatch(1, src.N, 0)
		src.Fill(many, first)
		src.Fill(one, first+uint64(slot))
		if diff := cmp.Diff(one.Problem(0), many.Problem(slot)); diff != "" {
			t.Fatalf("slot %d of a batch differs from the instance alone (-alone +batch):\n%s", slot, diff)
		}
	})
}

// TestDrawOrder states the layout that a GPU kernel repeats, in terms of the words themselves.
func TestDrawOrder(t *testing.T) {
	for _, d := range []Distribution{Grid, Uniform} {
		src := gridSource(7, 5)
		src.Distribution = d
		b := NewBatch(3, 5, 0)
		src.Fill(b, 100)
		for j := range 6 {
			w := rng.At(7, 102, uint32(j), rng.Instances)
			x, y, demand := rng.Float(w[0]), rng.Float(w[1]), int32(1+rng.Below(w[2], 10))
			if d == Grid {
				x, y = float32(rng.Below(w[0], 101))/100, float32(rng.Below(w[1], 101))/100
			}
			if j == 0 {
				demand = 0
			}
			if at := 2*6 + j; b.X[at] != x || b.Y[at] != y || b.Demand[at] != demand {
				t.Errorf("%s: node %d is (%v, %v, %d), want (%v, %v, %d)", d, j, b.X[at], b.Y[at], b.Demand[at], x, y, demand)
			}
		}
	}
}

func TestPurposesDoNotShareInstances(t *testing.T) {
	src := gridSource(1, 10)
	a, b := NewBatch(1, 10, 0), NewBatch(1, 10, 0)
	src.Fill(a, 0)
	src.Purpose = rng.TestInstances
	src.Fill(b, 0)
	if cmp.Equal(a, b) {
		t.Error("two purposes of one seed give the same instance")
	}
}

// TestMoments compares each field's mean and variance with the distribution's own, within five
// standard errors: at a fixed seed the outcome is fixed, and a wrong range is off by far more.
func TestMoments(t *testing.T) {
	const instances, n = 4000, 10
	// The variance of k equally likely values, spaced by step, is step²(k²-1)/12.
	spread := func(k, step float64) float64 { return step * step * (k*k - 1) / 12 }
	for _, c := range []struct {
		d        Distribution
		variance float64
	}{{Grid, spread(101, 0.01)}, {Uniform, 1.0 / 12}} {
		src := gridSource(42, n)
		src.Distribution = c.d
		b := NewBatch(instances, n, 0)
		src.Fill(b, 0)
		var demands []float64
		for i, d := range b.Demand {
			if i%(n+1) != 0 {
				demands = append(demands, float64(d))
			}
		}
		checkMoments(t, string(c.d)+" x", floats(b.X), 0.5, c.variance)
		checkMoments(t, string(c.d)+" y", floats(b.Y), 0.5, c.variance)
		checkMoments(t, string(c.d)+" demand", demands, 5.5, spread(10, 1))
	}
}

func checkMoments(t *testing.T, name string, values []float64, mean, variance float64) {
	t.Helper()
	m, v := meanVariance(values)
	n := float64(len(values))
	if se := math.Sqrt(variance / n); math.Abs(m-mean) > 5*se {
		t.Errorf("%s: mean %v, want %v ± %v", name, m, mean, se)
	}
	// A variance estimate of a bounded flat law has a standard error below variance·sqrt(2/n).
	if se := variance * math.Sqrt(2/n); math.Abs(v-variance) > 5*se {
		t.Errorf("%s: variance %v, want %v ± %v", name, v, variance, se)
	}
}

func meanVariance(values []float64) (mean, variance float64) {
	for _, v := range values {
		mean += v
	}
	mean /= float64(len(values))
	for _, v := range values {
		variance += (v - mean) * (v - mean)
	}
	return mean, variance / float64(len(values)-1)
}

func floats(in []float32) []float64 {
	out := make([]float64, len(in))
	for i, v := range in {
		out[i] = float64(v)
	}
	return out
}

func TestFillAllocatesNothing(t *testing.T) {
	src, b := gridSource(1, 10), NewBatch(16, 10, 0)
	if n := testing.AllocsPerRun(20, func() { src.Fill(b, 3) }); n != 0 {
		t.Errorf("Fill allocates %v times", n)
	}
}

func TestFileProblem(t *testing.T) {
	for _, c := range []struct {
		d     Distribution
		scale float64
	}{{Grid, 100}, {Uniform, 1e6}} {
		src := gridSource(42, 10)
		src.Distribution = c.d
		b := NewBatch(1, 10, 0)
		src.Fill(b, 7)
		p := src.FileProblem(7)
		if want := fmt.Sprintf("haul-%s-n10-s42-i7", c.d); p.Name != want {
			t.Errorf("name %q, want %q", p.Name, want)
		}
		if want := fmt.Sprintf("haul seed=42 index=7 scale=%.0f", c.scale); p.Comment != want {
			t.Errorf("comment %q, want %q", p.Comment, want)
		}
		if p.Metric != Rounded || p.Capacity != 30 {
			t.Errorf("metric %v, capacity %d, want EUC_2D's and 30", p.Metric, p.Capacity)
		}
		for j := range p.X {
			if want := math.Round(float64(b.X[j]) * c.scale); p.X[j] != want {
				t.Errorf("%s: x of node %d is %v, want %v", c.d, j, p.X[j], want)
			}
		}
		if diff := cmp.Diff(b.Demand, p.Demand); diff != "" {
			t.Errorf("demands differ (-batch +file):\n%s", diff)
		}
	}
}

func TestSourceCheck(t *testing.T) {
	if err := gridSource(1, 10).Check(); err != nil {
		t.Fatalf("a good source is refused: %v", err)
	}
	for _, c := range []struct {
		name, want string
		spoil      func(*Source)
	}{
		{"no customers", "customers is 0", func(s *Source) { s.N = 0 }},
		{"no capacity", "capacity is 0", func(s *Source) { s.Capacity = 0 }},
		{"zero demand", "starts below 1", func(s *Source) { s.DemandMin = 0 }},
		{"reversed demands", "reversed", func(s *Source) { s.DemandMin, s.DemandMax = 9, 3 }},
		{"demand over capacity", "passes capacity 30", func(s *Source) { s.DemandMax = 31 }},
		{"no grid", "coordinate range is 0", func(s *Source) { s.CoordRange = 0 }},
		{"unknown distribution", `"ring"`, func(s *Source) { s.Distribution = "ring" }},
	} {
		src := gridSource(1, 10)
		c.spoil(&src)
		err := src.Check()
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", c.name, err, c.want)
		}
	}
}
