package draw

import (
	"bytes"
	"strings"
	"testing"

	"haul/internal/vrp"
)

// timedProblem has two depots, windows, a break, and a customer that is not served.
func timedProblem() (*vrp.Problem, vrp.Solution) {
	van := vrp.NewVehicleType(9)
	van.Name, van.Count = "van", 2
	van.Breaks = []vrp.Break{{Windows: []vrp.Window{{From: 5, To: 40}}, Duration: 4}}
	van.Shift = vrp.Window{From: 0, To: 90}
	bike := vrp.NewVehicleType(3)
	bike.Start, bike.End = 1, vrp.None
	return &vrp.Problem{Name: "timed", Depots: 2, Demand: []int32{0, 0, 2, 3, 1, 2}, X: []float64{0, 20, 5, 9, 18, 60}, Y: []float64{0, 10, 5, 0, 3, 40},
		Service: []float64{0, 0, 3, 2, 1, 1}, Windows: [][]vrp.Window{nil, nil, {{From: 20, To: 30}}, nil, {{From: 8, To: 12}}, nil},
		Fleet: []vrp.VehicleType{van, bike}}, vrp.Solution{Routes: [][]int32{{2, 3}, {4}}, Types: []int32{0, 1}}
}

// TestTimeBars: if routes have times, a bar per vehicle is below the map, with the vehicle's name.
// The picture of a plain problem has no bars.
func TestTimeBars(t *testing.T) {
	p, s := timedProblem()
	var timed, plain bytes.Buffer
	if err := Routes(&timed, SVG, p, s, "search"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 van", "2 route", "time: driving a line"} {
		if !strings.Contains(timed.String(), want) {
			t.Errorf("the picture has no %q", want)
		}
	}
	if strings.Contains(timed.String(), "capacity") {
		t.Error("a fleet's capacity is that of its types")
	}
	q := &vrp.Problem{Name: "plain", Capacity: 9, Demand: p.Demand, X: p.X, Y: p.Y}
	if err := Routes(&plain, SVG, q, vrp.Solution{Routes: [][]int32{{1, 2, 3, 4, 5}}}, ""); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plain.String(), "driving") {
		t.Error("a plain problem has no times")
	}
	// All times are zero: the axis still has a width.
	p.Windows, p.Service, p.Fleet[0].Breaks = nil, nil, nil
	clear(p.X)
	clear(p.Y)
	if err := Routes(&timed, PNG, p, s, ""); err != nil {
		t.Fatal(err)
	}
	s.Types[0] = 7
	if err := Routes(&timed, SVG, p, s, ""); err == nil {
		t.Error("there is no such vehicle type")
	}
}
