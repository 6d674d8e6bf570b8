package testset

import (
	"math"
	"slices"
	"testing"

	"haul/internal/vrp"
)

// TestRouteFinder: sums and single numbers are NumPy's, drawn by the published generator's calls.
func TestRouteFinder(t *testing.T) {
	s, err := RouteFinder("mdovrpmbltw", 50)
	if err != nil {
		t.Fatal(err)
	}
	var starts, limits float64
	linehauls, backhauls := 0, 0
	for _, p := range s.Problems {
		limits += p.Fleet[0].MaxDistance
		for v := 3; v < len(p.Demand); v++ {
			starts += p.Windows[v][0].From
			linehauls += int(p.Demand[v])
			backhauls += int(p.Pickup[v])
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if math.Abs(starts-106359.34224983118) > 1e-6 || math.Abs(limits-2362.6969130039215) > 1e-9 || linehauls != 199309 || backhauls != 51084 {
		t.Errorf("starts %v, limits %v, %d linehauls, %d backhauls", starts, limits, linehauls, backhauls)
	}
	p := s.Problems[999]
	if p.X[0] != 0.09624643623828888 || p.Y[5] != 0.558503270149231 || !slices.Equal(p.Demand[3:11], []int32{4, 8, 0, 0, 8, 9, 3, 4}) || p.Pickup[5] != 7 ||
		p.Windows[5][0].From != 2.157097339630127 || p.Windows[5][0].To != 2.35559344291687 || p.Service[5] != 0.16643573343753815 || p.Fleet[2].MaxDistance != 2.125701904296875 {
		t.Errorf("%v %v %v %v %v %v", p.X[0], p.Y[5], p.Demand[3:11], p.Windows[5], p.Service[5], p.Fleet[2].MaxDistance)
	}
}

func TestVariants(t *testing.T) {
	names := Variants()
	slices.Sort(names)
	if len(slices.Compact(names)) != 48 {
		t.Errorf("%d variants: %v", len(names), names)
	}
	for _, name := range []string{"cvrp", "mdcvrp", "ovrp", "vrpb", "vrpmb", "vrpl", "vrptw", "ovrpmbltw", "mdvrpbtw"} {
		v, err := ParseVariant(name)
		if err != nil || v.String() != name {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
	for _, name := range []string{"", "vrp", "ocvrp", "vrptwl", "mdmdvrp"} {
		if v, err := ParseVariant(name); err == nil {
			t.Errorf("%q is %v", name, v)
		}
	}
	if _, err := RouteFinder("cvrp", 20); err == nil {
		t.Error("20 customers")
	}
	if p, err := RouteFinder("cvrp", 50); err != nil || p.Problems[0].Plain() != nil || p.Problems[0].Capacity != 40 {
		t.Error(err)
	}
}

// Rounded problems have whole thousandths alone, and leave the set's own as they are.
func TestRoundFillsThousandths(t *testing.T) {
	for _, name := range []string{"mdvrpbltw", "ovrptw", "cvrp", "vrpl"} {
		s, err := RouteFinder(name, 50)
		if err != nil {
			t.Fatal(err)
		}
		s.Cut(7, 2)
		s.Reference = []float64{float64(float32(12.345)), 9}
		was := s.Problems[0]
		x, window, limit := was.X[5], vrp.Window{}, math.Inf(1)
		if was.Windows != nil {
			window = was.Windows[9][0]
		}
		if was.Fleet != nil {
			limit = was.Fleet[0].MaxDistance
		}
		s.Round()
		p := s.Problems[0]
		whole := func(what string, x float64) {
			if y := 1000 * x; !math.IsInf(x, 0) && math.Abs(y-math.Round(y)) > 1e-9*math.Abs(y) {
				t.Errorf("%s: %s of %v", name, what, x)
			}
		}
		for v := range p.Demand {
			whole("a way", p.Dist(v, 3))
			if d := was.Dist(v, 3); math.Abs(d-p.Dist(v, 3)) > 0.0005+1e-9 {
				t.Errorf("%s: a way of %v is %v", name, d, p.Dist(v, 3))
			}
			if p.Service != nil {
				whole("a service", p.Service[v])
			}
			if p.Windows != nil {
				whole("a window", p.Windows[v][0].From)
				whole("a window", p.Windows[v][0].To)
			}
		}
		for _, k := range p.Fleet {
			whole("a limit", k.MaxDistance)
		}
		if s.Reference[0] != 12.345 || !s.Rounded() || p.Check() != nil {
			t.Errorf("%s: references %v, %v", name, s.Reference, p.Check())
		}
		if was.X[5] != x || was.Windows != nil && was.Windows[9][0] != window || was.Fleet != nil && was.Fleet[0].MaxDistance != limit || was.Metric != vrp.Exact {
			t.Errorf("%s: the set's own problem has changed", name)
		}
	}
}
