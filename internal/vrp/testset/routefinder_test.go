package testset

import (
	"math"
	"slices"
	"testing"
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
