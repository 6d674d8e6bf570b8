package policy

import (
	"math"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/vrp"
	"haul/internal/vrp/testset"
)

// TestVariantsAreKnown: the first instance of every public test set has the attributes of its name,
// and the device receives them.
func TestVariantsAreKnown(t *testing.T) {
	known := 0
	for _, name := range testset.Variants() {
		set, err := testset.RouteFinder(name, 50)
		if err != nil {
			t.Fatal(err)
		}
		p := set.Problems[0]
		known++
		a, err := p.Variant()
		if err != nil || a.String() != name {
			t.Errorf("%s is taken for %s, %v", name, a, err)
		}
		own := variedOf(p, 1)
		if own.Attributes != kernel.Attributes(a) || math.IsInf(float64(own.Limit), 1) != (a&vrp.LimitedLength == 0) || (own.Windows == nil) != (a&vrp.TimeWindows == 0) {
			t.Errorf("%s goes to the device as %+v", name, own)
		}
		if ends := !math.IsInf(float64(own.End), 1); ends != (a&vrp.TimeWindows != 0) {
			t.Errorf("%s: vehicles are back by %v; instances that are drawn with windows have an end", name, own.End)
		}
		if p.Load() != 40 {
			t.Errorf("%s: capacity %d", name, p.Load())
		}
		only, _ := vrp.ParseMix(name)
		if src := (vrp.Source{Mix: only}); !Learned(src, name) || Learned(src, "vrptw") != (name == "vrptw") {
			t.Errorf("%s: what is learned is not what was asked for", name)
		}
	}
	if all, err := vrp.ParseMix("all, mdall"); known != 48 || err != nil || !all.Has(vrp.TimeWindows|vrp.OpenRoutes) {
		t.Errorf("%d variants are known, all of them are %b, %v", known, all, err)
	}
	if kernel.Open != kernel.Attributes(vrp.OpenRoutes) || kernel.Windowed != kernel.Attributes(vrp.TimeWindows) || kernel.Mixed != kernel.Attributes(vrp.MixedBackhauls) || kernel.Several != kernel.Attributes(vrp.SeveralDepots) {
		t.Error("the kernels' attributes have other bits")
	}
	if _, err := vrp.ParseMix("cvrp, vrpx"); err == nil || !strings.Contains(err.Error(), `"vrpx"`) {
		t.Errorf("an unknown name: %v", err)
	}
}

// TestRoutesThatBreakARule: the shortest solution that the validator accepts is the result.
func TestRoutesThatBreakARule(t *testing.T) {
	p := &vrp.Problem{Name: "two", Capacity: 2, Vehicles: 1, X: []float64{0, 1, 1}, Y: []float64{0, 0, 1}, Demand: []int32{0, 1, 1}}
	actions, lengths := []int32{1, 0, 2, 0, 1, 2, 0, 0}, []float32{3, 3.5} // two vehicles, one
	var r Routed
	if err := r.take(p, actions, lengths); err != nil || len(r.Solution.Routes) != 1 {
		t.Fatalf("%v, %v", r, err)
	}
	var none Routed
	if err := none.take(p, actions[:4], lengths[:1]); err == nil || !strings.Contains(err.Error(), "all of its routes take more than 1: leave the policy out to search") {
		t.Errorf("two vehicles of one: %v", err)
	}
	if err := r.take(p, actions[:4], lengths[:1]); err != nil || len(r.Solution.Routes) != 1 {
		t.Errorf("a later round that finds nothing: %v, %v", r, err)
	}
}
