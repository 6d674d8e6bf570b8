package policy

import (
	"math"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/vrp"
	"haul/internal/vrp/testset"
)

// TestVariantsAreKnown: the first instance of every public test set with one depot has the
// attributes of its name, and goes to the device with them; several depots are refused.
func TestVariantsAreKnown(t *testing.T) {
	known := 0
	for _, name := range testset.Variants() {
		set, err := testset.RouteFinder(name, 50)
		if err != nil {
			t.Fatal(err)
		}
		p := set.Problems[0]
		if strings.HasPrefix(name, "md") {
			if err := variedParts(p); err == nil || !strings.Contains(err.Error(), "several depots") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		known++
		a, err := attributesOf(p)
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
		if capacityOf(p) != 40 {
			t.Errorf("%s: capacity %d", name, capacityOf(p))
		}
		only, _ := vrp.ParseMix(name)
		if src := (vrp.Source{Mix: only}); !Learned(src, name) || Learned(src, "vrptw") != (name == "vrptw") {
			t.Errorf("%s: what is learned is not what was asked for", name)
		}
	}
	if all, err := vrp.ParseMix("all"); known != 24 || err != nil || !all.Has(vrp.TimeWindows|vrp.OpenRoutes) {
		t.Errorf("%d variants are known, all of them are %b, %v", known, all, err)
	}
	if kernel.Open != kernel.Attributes(vrp.OpenRoutes) || kernel.Windowed != kernel.Attributes(vrp.TimeWindows) || kernel.Mixed != kernel.Attributes(vrp.MixedBackhauls) {
		t.Error("the kernels' attributes have other bits")
	}
	if _, err := vrp.ParseMix("cvrp, vrpx"); err == nil || !strings.Contains(err.Error(), `"vrpx"`) {
		t.Errorf("an unknown name: %v", err)
	}
}
