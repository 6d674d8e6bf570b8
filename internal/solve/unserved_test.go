package solve_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"haul/internal/search"
	"haul/internal/solve"
	"haul/internal/vrp"
)

// TestReasons: who is not served is told why, in the validator's words.
func TestReasons(t *testing.T) {
	p := &vrp.Problem{Name: "line", Capacity: 2, Metric: vrp.Exact, Vehicles: 1,
		Demand: []int32{0, 1, 1, 1, 1, 1}, X: []float64{0, 1, 2, 3, 4, 50}, Y: make([]float64, 6),
		Windows:  [][]vrp.Window{nil, nil, nil, nil, nil, {{From: 0, To: 10}}},
		Optional: []bool{false, false, false, false, true, false}, Prize: make([]float64, 6),
		Groups: []vrp.Group{{Members: []int32{1, 2}, Required: true}}}
	why := solve.Reasons(p, vrp.Solution{Routes: [][]int32{{1}}})
	for v, want := range map[int32]string{2: "another one of its group", 3: "more time", 4: "costs more than its prize", 5: "its window closes at 10: late by 40"} {
		if !strings.Contains(why[v], want) {
			t.Errorf("%d: %q, want %q", v, why[v], want)
		}
	}
	full := solve.Reasons(p, vrp.Solution{Routes: [][]int32{{1, 4}}})
	if !strings.Contains(full[3], "it carries 3, the capacity is 2") {
		t.Errorf("%q", full[3])
	}
	if got := solve.Reasons(p, vrp.Solution{Routes: [][]int32{{1, 2, 3, 4, 5}}}); got != nil {
		t.Errorf("nobody is left: %v", got)
	}
	// The halves of a shipment share their reason.
	p.Shipments, p.Groups = []vrp.Shipment{{Pickup: 1, Delivery: 5, Amount: []int32{1}}}, nil
	why = solve.Reasons(p, vrp.Solution{Routes: [][]int32{{2, 3}}})
	if why[1] == "" || why[1] != why[5] {
		t.Errorf("%q and %q", why[1], why[5])
	}
}

// TestCustomersWhoFitAreServed: limits that are touched to the last digit are no reason to leave
// anybody out, alone, beside others or with the other half of a shipment. The search counts in
// fixed point, which cannot tell that, and the customers were told to give it more time.
func TestCustomersWhoFitAreServed(t *testing.T) {
	x, y := []float64{0, 0.1, 0.4, 0.7, 0.3}, []float64{0, 0.3, 0.2, 0.9, 0.8}
	for name, edit := range map[string]func(p *vrp.Problem){
		"windows": func(p *vrp.Problem) {
			p.Windows = make([][]vrp.Window, 5)
			for v := 1; v < 5; v++ {
				p.Windows[v] = []vrp.Window{{From: 0, To: p.Dist(0, v)}}
			}
		},
		"a length": func(p *vrp.Problem) {
			p.Fleet = []vrp.VehicleType{vrp.NewVehicleType(), vrp.NewVehicleType()}
			for i := range p.Fleet {
				p.Fleet[i].Capacity, p.Fleet[i].MaxDistance = []int32{2}, 2*p.Dist(0, 3)
			}
		},
		"a shipment": func(p *vrp.Problem) {
			p.Shipments, p.Demand = []vrp.Shipment{{Pickup: 1, Delivery: 3, Amount: []int32{1}}}, []int32{0, 0, 1, 0, 1}
			p.Windows = [][]vrp.Window{nil, {{To: p.Dist(0, 1)}}, nil, {{To: p.Dist(0, 1) + p.Dist(1, 3)}}, nil}
		},
	} {
		p := &vrp.Problem{Name: name, Capacity: 2, Metric: vrp.Exact, Demand: []int32{0, 1, 1, 1, 1}, X: x, Y: y}
		if edit(p); p.Fleet != nil {
			p.Capacity = 0
		}
		m, err := solve.Choose(p, solve.Search, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.Solve(t.Context(), p, solve.Options{Search: search.Options{Iterations: 300, Workers: 1}})
		if err != nil || r.Missing > 0 {
			t.Errorf("%s: %v %+v", name, err, r)
		}
	}
}

// TestBothWithoutAPolicysRoutes: where all routes of a policy take more vehicles than there are,
// the search begins without them and says so; any other fault of theirs ends the solve.
func TestBothWithoutAPolicysRoutes(t *testing.T) {
	p := ring(8)
	p.Vehicles = 4
	broken := vrp.Validate(p, vrp.Solution{Routes: [][]int32{{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}}})
	for _, why := range []error{fmt.Errorf("routed: %w", broken), errors.New("no card")} {
		o := solve.Options{Search: search.Options{Iterations: 300, Workers: 1},
			Route: func(context.Context, *vrp.Problem) (vrp.Solution, string, error) {
				return vrp.Solution{}, "greedy", why
			}}
		m, err := solve.Choose(p, solve.Both, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.Solve(t.Context(), p, o)
		switch fleet := errors.Is(why, broken); {
		case fleet && (err != nil || r.Method != solve.Search || r.Decode != "" || r.Note != "all of the policy's routes take more than the 4 vehicles: the search began without them" || len(r.Solution.Routes) > 4):
			t.Errorf("%v: %+v", err, r)
		case !fleet && err == nil:
			t.Errorf("%v is passed over", why)
		}
	}
}
