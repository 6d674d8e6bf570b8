package vrp

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"haul/internal/schema"
	"haul/internal/schema/schematest"
)

// vans is a model with windows, two vehicle types and a shipment.
func vans() Model {
	limit := 60.0
	return Model{Name: "vans", Coords: [][]float64{{0, 0}, {3, 4}, {6, 8}, {-3, 4}, {-6, 8}}, Demands: []int32{0, 2, 2, 0, 0},
		IDs: []string{"depot", "a", "b", "from", "to"}, Service: []float64{0, 1, 1, 1, 1}, Windows: [][]Span{{}, {{8, 12}}, {}, {{0}}, {}},
		Shipments: []Shipment{{Pickup: 3, Delivery: 4, Amount: []int32{1}}},
		Fleet:     []Vehicle{{Name: "van", Count: 1, Capacity: []int32{4}, MaxDuration: &limit}, {Name: "bike", Count: 2, Capacity: []int32{1}, FixedCost: 5}}}
}

func TestModelRoundTrip(t *testing.T) {
	p, err := NewProblem(vans())
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.Model()
	if err != nil {
		t.Fatal(err)
	}
	want := vans()
	want.Distance = "exact" // what "" means
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
	var b bytes.Buffer
	if err := p.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if q, err := ReadJSON(&b, "b"); err != nil || q.N() != 4 || q.Name() != "vans" {
		t.Errorf("%v, %v", q, err)
	}
}

// TestPart: the example of every part is a Model that gives the same problem again.
func TestPart(t *testing.T) {
	for i := range schema.Parts {
		part := &schema.Parts[i]
		t.Run(part.Name+"/model", func(t *testing.T) {
			text := schematest.Example(part)
			p, err := ReadJSON(strings.NewReader(text), "f")
			if err != nil {
				t.Fatal(err)
			}
			m, err := p.Model()
			if err != nil {
				t.Fatal(err)
			}
			q, err := NewProblem(m)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p.inner, q.inner, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			var a, b bytes.Buffer
			if err := errors.Join(p.WriteJSON(&a), q.WriteJSON(&b)); err != nil || a.String() != b.String() {
				t.Errorf("%v\n%s%s", err, a.String(), b.String())
			}
		})
	}
}

func TestPlanAndViolations(t *testing.T) {
	p, err := NewProblem(vans())
	if err != nil {
		t.Fatal(err)
	}
	routes := [][]int{{1, 2}, {3, 4}}
	plan, err := p.Plan(routes, []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	first := plan[0].Stops
	if len(first) != 4 || first[1].ID != "a" || first[1].Begin != 8 || first[1].Depart != 9 || first[1].Load[0] != 2 || plan[0].Vehicle != "van" || plan[1].Cost != 25+math.Hypot(3, 4)-5 {
		t.Errorf("%+v", plan)
	}
	if all, err := p.Violations(routes, []int{0, 1}); err != nil || all != nil {
		t.Errorf("%v, %v", all, err)
	}
	all, err := p.Violations([][]int{{2, 1}, {4, 3}}, []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	found := map[Rule]*Violation{}
	for _, v := range all {
		found[v.Rule] = v
	}
	if v := found[RuleWindow]; v == nil || v.Customer != 1 || v.Route != 1 || math.Abs(v.By-4) > 1e-9 {
		t.Errorf("%+v in %v", v, all)
	}
	if found[RuleShipments] == nil {
		t.Errorf("the delivery before its pickup passes: %v", all)
	}
	var v *Violation
	if err := p.Validate([][]int{{1}, {2}}); !errors.As(err, &v) || v.Rule == "" {
		t.Errorf("%v is no Violation", err)
	}
	for _, bad := range []struct {
		routes [][]int
		types  []int
		want   string
	}{{routes, []int{0}, "1 vehicle types for 2 routes"}, {routes, []int{0, 2}, "types are 0 to 1"}, {[][]int{{5}}, nil, "customers are 1 to 4"}} {
		if _, err := p.Plan(bad.routes, bad.types); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v, want %q", err, bad.want)
		}
	}
}

func TestBadModelsAreRefused(t *testing.T) {
	nan := vans()
	nan.Speed = math.NaN()
	short := vans()
	short.Service = []float64{0}
	shape, shut, halves, negative := vans(), vans(), vans(), vans()
	shape.Coords, shape.Distances = nil, [][]float64{{0, 1, 1, 1, 1}, {1, 0, 1, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, 0, 1}, {1, 1, 1, 1, 0}}
	shut.Windows[1] = []Span{{12, 8}}
	halves.Shipments[0].Delivery = 3
	negative.Service[2] = -5
	for want, m := range map[string]Model{"unsupported value: NaN": nan, "service has 1 entries for 5 places": short, "coords is empty": {},
		"distances[2] has 4 numbers for 5 places": shape, "windows[1][0] closes at 8, before it opens at 12": shut,
		`shipment 1 is picked up and delivered at customer "from"`: halves, "the service time of node 2 is -5": negative} {
		if _, err := NewProblem(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
