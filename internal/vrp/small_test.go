package vrp

import (
	"strings"
	"testing"
)

// TestAMixHasItsVariants, and no others.
func TestAMixHasItsVariants(t *testing.T) {
	m, err := ParseMix("cvrp, ovrptw")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range variants() {
		if got, want := m.Has(a), a == 0 || a == OpenRoutes|TimeWindows; got != want {
			t.Errorf("%s: %v", a, got)
		}
	}
}

// TestLimitsOfABatch are kept by instance.
func TestLimitsOfABatch(t *testing.T) {
	b := NewBatch(3, 2, 5)
	b.limit(1, 7)
	b.limit(2, 8)
	if b.Limit[0] != 0 || b.Limit[1] != 7 || b.Limit[2] != 8 {
		t.Errorf("%v", b.Limit)
	}
}

// TestScalesAreReadFromComments of files that Haul wrote; others have none.
func TestScalesAreReadFromComments(t *testing.T) {
	for comment, want := range map[string]int{"haul seed=1 index=2 scale=1000000": 1000000, "haul seed=1": 0, "scale=5": 0, "": 0} {
		if got, ok := (&Problem{Comment: comment}).Scale(); got != want || ok != (want > 0) {
			t.Errorf("%q: %d, %v", comment, got, ok)
		}
	}
}

// TestLoadsNameTheirDimension where there are several.
func TestLoadsNameTheirDimension(t *testing.T) {
	p := &Problem{Demand: []int32{0, 1}, X: make([]float64, 2), Y: make([]float64, 2), Fleet: []VehicleType{NewVehicleType(5, 5)},
		Dimensions: []Dimension{{Name: "volume", Delivery: []int32{0, 9}}}}
	err := Validate(p, Solution{Routes: [][]int32{{1}}})
	if err == nil || !strings.Contains(err.Error(), `it carries 9 of "volume", the capacity is 5`) {
		t.Errorf("%v", err)
	}
}

// TestVariantsOfProblems: open routes are told from closed ones, windows and limits from none.
func TestVariantsOfProblems(t *testing.T) {
	plain := func() *Problem {
		return &Problem{Capacity: 5, Demand: []int32{0, 1, 2}, X: make([]float64, 3), Y: make([]float64, 3), Metric: Exact}
	}
	for want, change := range map[Attributes]func(p *Problem){
		0:           func(*Problem) {},
		OpenRoutes:  func(p *Problem) { p.Open = true },
		TimeWindows: func(p *Problem) { p.Windows = [][]Window{nil, {{From: 1, To: 2}}, nil} },
	} {
		p := plain()
		change(p)
		if got, err := p.Variant(); err != nil || got != want {
			t.Errorf("%s is taken for %s, %v", want, got, err)
		}
	}
}

// A mix names every variant rightly, or is refused.
func TestUnknownVariantsAreNamed(t *testing.T) {
	for _, text := range []string{"", "cvrp, vrpx", "vrpx, cvrp"} {
		if m, err := ParseMix(text); err == nil || !strings.Contains(err.Error(), "there is no variant") {
			t.Errorf("%q: %v, %v", text, m, err)
		}
	}
}
