package vrp

import "testing"

// The clock looked for a start past a window by less than the window forgives, and never came back.
func TestBeginEndsWithSeveralWindows(t *testing.T) {
	k := NewVehicleType(9)
	p := &Problem{Demand: []int32{0, 1}, X: []float64{0, 3}, Y: []float64{0, 4}, Fleet: []VehicleType{k},
		Windows: [][]Window{nil, {{0, 20000}, {20050, 20090}}}}
	e, err := Evaluate(p, Solution{Routes: [][]int32{{1}}})
	if err != nil || e.Duration != 10 {
		t.Errorf("duration %v, want 10: %v", e, err)
	}
}

// Breaks were placed as if the vehicle left before what it carries was released.
func TestBreaksComeAfterTheRelease(t *testing.T) {
	k := NewVehicleType(9)
	k.Breaks = []Break{{Windows: []Window{{20, 90}}, Duration: 5}}
	p := &Problem{Demand: []int32{0, 1}, X: []float64{0, 57}, Y: []float64{0, 0}, Fleet: []VehicleType{k}, Release: []float64{0, 34}}
	if all := Violations(p, Solution{Routes: [][]int32{{1}}}); len(all) > 0 {
		t.Errorf("it can rest at the depot from 34 on: %v", all)
	}
}

// TestEarliestOfEqualStarts: of starts that make a route equally long, the earliest is taken.
func TestEarliestOfEqualStarts(t *testing.T) {
	p := line(1)
	p.Windows = [][]Window{nil, {{20, 21}, {40, 41}, {60, 61}}}
	e, err := Evaluate(p, Solution{Routes: [][]int32{{1}}})
	if err != nil || e.Routes[0].Start != 10 || e.Routes[0].Duration != 20 {
		t.Errorf("%+v, %v: it leaves at 10", e, err)
	}
}
