package files

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/vrp"
)

const solomonText = "C1\n\nVEHICLE\nNUMBER     CAPACITY\n  3         20\n\nCUSTOMER\nCUST NO.  XCOORD.   YCOORD.    DEMAND   READY TIME  DUE DATE   SERVICE   TIME\n \n" +
	"    0      40         50          0          0       1236          0   \n    1      45         68         10        912        967         90   \n"

const lilimText = "3\t20\t1\n0\t40\t50\t0\t0\t1236\t0\t0\t0\n1\t45\t68\t-10\t912\t967\t90\t2\t0\n2\t45\t70\t10\t825\t870\t90\t0\t1\n"

const cordeauText = "6 2 3 2\n500 80\n0 90\n 1 37 52 5   7 1 2 1 2 10 20\n 2 49 49 0  30 1 2 1 2 30 40\n 3 52 64 0  16 1 2 1 2 0 9\n4 20 20 0   0 0 0 0 100\n5 30 40 0   0 0 0 0 90\n"

const dialectText = `NAME: all
TYPE: MDVRPTW
EDGE_WEIGHT_TYPE: EUC_2D
DIMENSION: 5
VEHICLES: 3
VEHICLES_MAX_DURATION: 450
RELEASE_TIME: 3
NODE_COORD_SECTION
1 0 0
2 1 0
3 0 1
4 1 1
5 2 2
LINEHAUL_SECTION
1 0
2 0
3 4
4 0
5 1
BACKHAUL_SECTION
1 0
2 0
3 0
4 6
5 0
SERVICE_TIME_SECTION
1 0
2 0
3 20
4 2
5 0
TIME_WINDOW_SECTION
1 0 1000
2 0 900
3 1 500
4 2 600
5 0 9
PRIZE_SECTION
1 0
2 0
3 0
4 7
5 0
MUTUALLY_EXCLUSIVE_GROUP_SECTION
1 3 5
2 4
CAPACITY_SECTION
1 100
2 90
3 100
VEHICLES_DEPOT_SECTION
1 1
2 2
3 1
VEHICLES_RELOAD_DEPOT_SECTION
1 1 2
2
3 1 2
VEHICLES_ALLOWED_CLIENTS_SECTION
1 3 4 5
2 3
3 5 4 3
VEHICLES_FIXED_COST_SECTION
1 7
2 8
3 7
VEHICLES_UNIT_DISTANCE_COST_SECTION
1 2
2 3
3 2
DEPOT_SECTION
1
2
EOF
`

// formatted reads a text in whichever format it is.
func formatted(t testing.TB, text string, o Options) *vrp.Problem {
	t.Helper()
	p, err := ReadProblem(strings.NewReader(text), "a.txt", o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTextFormats(t *testing.T) {
	p := formatted(t, solomonText, Options{})
	want := &vrp.Problem{Name: "C1", Capacity: 20, Vehicles: 3, Demand: []int32{0, 10}, X: []float64{40, 45}, Y: []float64{50, 68}, Service: []float64{0, 90},
		Windows: [][]vrp.Window{{{From: 0, To: 1236}}, {{From: 912, To: 967}}}, Metric: vrp.Thousandths}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("Solomon: %s", diff)
	}
	p = formatted(t, lilimText, Options{Distance: DimacsDistance})
	want = &vrp.Problem{Name: "a", Capacity: 20, Vehicles: 3, Demand: []int32{0, 0, 0}, X: []float64{40, 45, 45}, Y: []float64{50, 68, 70}, Service: []float64{0, 90, 90}, Metric: vrp.Tenths,
		Windows: [][]vrp.Window{{{From: 0, To: 1236}}, {{From: 912, To: 967}}, {{From: 825, To: 870}}}, Shipments: []vrp.Shipment{{Pickup: 2, Delivery: 1, Amount: []int32{10}}}}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("Li and Lim: %s", diff)
	}
	p = formatted(t, cordeauText, Options{})
	a, b := vrp.NewVehicleType(80), vrp.NewVehicleType(90)
	a.Count, a.Numbers, a.MaxDuration = 2, []int32{0, 1}, 500
	b.Count, b.Numbers, b.Start, b.End = 2, []int32{2, 3}, 1, 1
	want = &vrp.Problem{Name: "a", Depots: 2, Demand: []int32{0, 0, 7, 30, 16}, X: []float64{20, 30, 37, 49, 52}, Y: []float64{20, 40, 52, 49, 64}, Service: []float64{0, 0, 5, 0, 0}, IDs: []string{"4", "5", "1", "2", "3"},
		Fleet: []vrp.VehicleType{a, b}, Metric: vrp.Thousandths,
		Windows: [][]vrp.Window{{{From: 0, To: 100}}, {{From: 0, To: 90}}, {{From: 10, To: 20}}, {{From: 30, To: 40}}, {{From: 0, To: 9}}}}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("Cordeau: %s", diff)
	}
}

func TestDialect(t *testing.T) {
	a, b := vrp.NewVehicleType(100), vrp.NewVehicleType(90)
	a.Count, a.Numbers, a.Reloads, a.FixedCost, a.DistanceCost, a.MaxDuration = 2, []int32{0, 2}, []int{0, 1}, 7, 2, 450
	b.Count, b.Numbers, b.Start, b.End, b.Allowed, b.FixedCost, b.DistanceCost, b.MaxDuration = 1, []int32{1}, 1, 1, []int32{2}, 8, 3, 450
	want := &vrp.Problem{Name: "all", Depots: 2, Demand: []int32{0, 0, 4, 0, 1}, Pickup: []int32{0, 0, 0, 6, 0}, X: []float64{0, 1, 0, 1, 2}, Y: []float64{0, 0, 1, 1, 2}, Service: []float64{0, 0, 20, 2, 0}, Metric: vrp.Rounded,
		Windows: [][]vrp.Window{{{From: 0, To: 1000}}, {{From: 0, To: 900}}, {{From: 1, To: 500}}, {{From: 2, To: 600}}, {{From: 0, To: 9}}}, Release: []float64{0, 0, 3, 3, 3},
		Prize: []float64{0, 0, 0, 7, 0}, Optional: []bool{false, false, false, true, false}, Groups: []vrp.Group{{Members: []int32{2, 4}, Required: true}}, Fleet: []vrp.VehicleType{a, b}}
	if diff := cmp.Diff(want, formatted(t, dialectText, Options{})); diff != "" {
		t.Error(diff)
	}
	if p := formatted(t, strings.Replace(dialectText, "MDVRPTW", "VRPB", 1), Options{}); p.Backhauls != vrp.LinehaulFirst {
		t.Error("a VRPB whose linehauls need not come first")
	}
	if p := formatted(t, dialectText, Options{Distance: ExactDistance}); p.Metric != vrp.Thousandths {
		t.Errorf("exact distances where times limit: metric %d", p.Metric)
	}
	tsp := formatted(t, "NAME: t\nTYPE: TSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: GEO\nNODE_COORD_SECTION\n1 38.24 20.42\n2 39.57 26.15\n3 40.56 25.32\nEOF\n", Options{})
	if tsp.Vehicles != 1 || tsp.Dist(0, 1) != 509 || tsp.Limited() != nil || vrp.Validate(tsp, vrp.Solution{Routes: [][]int32{{1, 2}}}) != nil {
		t.Errorf("%+v", tsp)
	}
	atsp := formatted(t, "NAME: t\nTYPE: ATSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX\nEDGE_WEIGHT_SECTION\n9999 1 2\n3 9999 4\n5 6 9999\nEOF\n", Options{})
	if got := atsp.Cost(vrp.Solution{Routes: [][]int32{{1, 2}}}); got != 10 {
		t.Errorf("a tour of %g, want 10", got)
	}
	if _, err := ReadProblem(strings.NewReader("TYPE: TSP\nDIMENSION: 2000000000\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX\nEDGE_WEIGHT_SECTION\n1 2\nEOF\n"), "a.tsp", Options{}); err == nil {
		t.Error("a false DIMENSION")
	}
}

// TestSolutionsNameVehicles: routes of different vehicles are told by their line, and reloads by
// the depot's number.
func TestSolutionsNameVehicles(t *testing.T) {
	p := formatted(t, dialectText, Options{})
	s := vrp.Solution{Routes: [][]int32{{2}, nil, {4, 0, 3}}, Types: []int32{1, 0, 0}}
	var b bytes.Buffer
	if err := WriteSolution(&b, p, s, 5); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("Route #1: 4 0 3\nRoute #2: 2\nRoute #3:\nCost 5\n", b.String()); diff != "" {
		t.Error(diff)
	}
	back, cost, err := ReadSolution(&b, "a.sol", p)
	if diff := cmp.Diff(vrp.Solution{Routes: [][]int32{{4, 0, 3}, {2}}, Types: []int32{0, 1}}, back); diff != "" || cost != 5 || err != nil {
		t.Error(diff, cost, err)
	}
	if _, _, err := ReadSolution(strings.NewReader("Route #4: 2\n"), "a.sol", p); err == nil || err.Error() != "a.sol:1: route #4: the problem has the vehicles 1 to 3" {
		t.Error(err)
	}
	s.Types = []int32{1, 1, 1}
	if err := WriteSolution(&b, p, s, 5); err == nil || err.Error() != "write solution: route 3 is one more than there are vehicles of type 1" {
		t.Error(err)
	}
}

func TestTextErrors(t *testing.T) {
	for _, c := range []struct{ text, old, with, want string }{
		{solomonText, "912        967", "967        912", "a.txt:11: the window of place 1 closes at 912, before it opens at 967"},
		{solomonText, "    1      45", "    2      45", "a.txt:11: place 2: expected 1, places are numbered in order"},
		{solomonText, "68         10", "68         -1", "a.txt:11: the demand is -1: expected an integer from 0 on"},
		{solomonText, "967         90", "967", `a.txt:11: expected number x y demand ready due service, found "1      45         68         10        9"...`},
		{solomonText, "68         10", "68         30", "a.txt: demand 30 of customer 1 is over the capacity 20"},
		{lilimText, "-10\t912", "-9\t912", "a.txt:4: the halves of a shipment contradict: place 2 picks up 10 for place 1, which takes 9 from place 2"},
		{lilimText, "90\t2\t0", "90\t0\t0", "a.txt:3: place 1 names 0 as its pickup and 0 as its delivery: expected one of them"},
		{lilimText, "90\t0\t1", "90\t0\t7", "a.txt:4: place 2 is delivered at 7, which is no place"},
		{lilimText, "912\t967", "-912\t967", "a.txt:3: the ready time of place 1 is -912"},
		{cordeauText, "6 2 3 2", "1 2 3 2", "a.txt:1: not supported: kind 1 of Cordeau's (only 0 VRP, 2 MDVRP, 4 VRPTW and 6 MDVRPTW; the others have periods or sites)"},
		{cordeauText, "7 1 2 1 2", "7 2 2 1 2", "a.txt:4: not supported: place 1 is visited 2 times, by 2 combinations"},
		{cordeauText, "7 1 2 1 2", "7 1 1 1", "a.txt:4: not supported: place 1 may be served from some depots only"},
		{cordeauText, "10 20\n", "20 10\n", "a.txt:4: the window of place 1 closes at 10, before it opens at 20"},
		{cordeauText, "5 30 40 0   0 0 0 0 90\n", "", "a.txt:7: the file ends: expected place 5"},
		{cordeauText, "5 30 40 0   0 0 0 0 90\n", "5 30 40 0   0 0 0 0 90\nand more\n", `a.txt:9: unexpected "and more" behind the last place`},
		{cordeauText, "6 2 3 2", "6 2 2000000 2", "a.txt:1: 2 vehicles, 2000000 customers and 2 depots: expected at least 1 of each, and a line for each place"},
	} {
		if !strings.Contains(c.text, c.old) {
			t.Fatalf("the text lost %q", c.old)
		}
		_, err := ReadProblem(strings.NewReader(strings.Replace(c.text, c.old, c.with, 1)), "a.txt", Options{})
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// TestVehiclesThatCordeauCannotSay: a second kind of vehicle at a depot has no place in the format.
func TestVehiclesThatCordeauCannotSay(t *testing.T) {
	p := formatted(t, cordeauText, Options{})
	p.Fleet = append(p.Fleet, p.Fleet[0])
	if err := WriteCordeau(io.Discard, p); err == nil || !strings.Contains(err.Error(), "one kind of vehicle per depot") {
		t.Errorf("three kinds at two depots: %v", err)
	}
}
