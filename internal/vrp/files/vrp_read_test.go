package files

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"haul/internal/vrp"

	"github.com/google/go-cmp/cmp"
)

// small is a whole file in the plainest form; the tests bend it.
const small = `NAME : small
COMMENT : four nodes
TYPE : CVRP
DIMENSION : 4
EDGE_WEIGHT_TYPE : EUC_2D
CAPACITY : 10
NODE_COORD_SECTION
1 0 0
2 3 4
3 6 8
4 1 1
DEMAND_SECTION
1 0
2 5
3 6
4 7
DEPOT_SECTION
 1
 -1
EOF
`

func smallProblem() *vrp.Problem {
	return &vrp.Problem{Name: "small", Comment: "four nodes", Capacity: 10, Metric: vrp.Rounded,
		X: []float64{0, 3, 6, 1}, Y: []float64{0, 4, 8, 1}, Demand: []int32{0, 5, 6, 7}}
}

func read(t *testing.T, text string, o Options) *vrp.Problem {
	t.Helper()
	p, err := ReadProblem(strings.NewReader(text), "f.vrp", o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestReadProblemForms(t *testing.T) {
	sections := strings.SplitAfterN(small, "CAPACITY : 10\n", 2)
	for name, text := range map[string]string{
		"plain":           small,
		"CRLF":            strings.ReplaceAll(small, "\n", "\r\n"),
		"CR alone":        strings.ReplaceAll(small, "\n", "\r"),
		"tabs":            strings.ReplaceAll(strings.Replace(small, " ", "\t", 1), " : ", "\t:\t"),
		"tabbed records":  strings.NewReplacer("2 3 4", "2\t3\t4", "3 6\n", "3\t6\t\n", " -1", "\t-1\t").Replace(small),
		"trailing blanks": strings.ReplaceAll(small, "\n", "\t \n\n"),
		"colon attached":  strings.ReplaceAll(small, " : ", ": "),
		"no colon":        strings.ReplaceAll(small, " : ", " "),
		"quotes":          strings.Replace(small, "four nodes", `"four nodes"`, 1),
		"no EOF":          strings.Replace(small, "EOF\n", "", 1),
		"no last newline": strings.TrimSpace(small),
		"BOM":             "\ufeff" + small,
		"after EOF":       small + "anything",
		"decimals":        strings.Replace(strings.Replace(small, "4 7\n", "4 7.000\n", 1), ": 10\n", ": 10.0\n", 1),
		"sections first":  strings.Replace(sections[1], "EOF\n", "", 1) + sections[0],
		"lower case keys": strings.Replace(small, "CAPACITY", "capacity", 1),
		"no -1 but EOF":   strings.Replace(small, " -1\n", "", 1),
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(smallProblem(), read(t, text, Options{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadProblemMetrics(t *testing.T) {
	for _, c := range []struct {
		kind  string
		exact bool
		want  vrp.Metric
		d     float64 // from (0,0) to (1,1)
	}{
		{"EUC_2D", false, vrp.Rounded, 1}, {"CEIL_2D", false, vrp.Ceil, 2},
		{"EUC_2D", true, vrp.Exact, 1.4142135623730951}, {"CEIL_2D", true, vrp.Exact, 1.4142135623730951},
	} {
		p := read(t, strings.Replace(small, "EUC_2D", c.kind, 1), Options{Distance: exactly(c.exact)})
		if p.Metric != c.want || p.Dist(0, 3) != c.d {
			t.Errorf("%s exact=%v: metric %v distance %v", c.kind, c.exact, p.Metric, p.Dist(0, 3))
		}
	}
}

// A depot that is not the first node moves to 0; the others keep their order.
func TestReadProblemDepotElsewhere(t *testing.T) {
	text := strings.NewReplacer("\n 1\n", "\n 3\n", "1 0\n2 5\n3 6\n", "1 6\n2 5\n3 0\n").Replace(small)
	want := smallProblem()
	want.X, want.Y, want.Demand = []float64{6, 0, 3, 1}, []float64{8, 0, 4, 1}, []int32{0, 6, 5, 7}
	if diff := cmp.Diff(want, read(t, text, Options{})); diff != "" {
		t.Error(diff)
	}
}

func TestReadProblemExplicitFormats(t *testing.T) {
	matrix := []float64{0, 1, 2, 3, 1, 0, 4, 5, 2, 4, 0, 6, 3, 5, 6, 0}
	for format, numbers := range map[string]string{
		"FULL_MATRIX":    "0 1 2 3\n1 0 4 5\n2 4 0 6\n3 5 6 0",
		"LOWER_ROW":      "1\n2 4\n3 5 6",
		"LOWER_DIAG_ROW": "0\n1 0\n2 4 0\n3 5 6 0",
		"UPPER_ROW":      "1 2 3\n4 5\n6",
		"UPPER_DIAG_ROW": "0 1 2 3\n0 4 5\n0 6\n0",
		"LOWER_COL":      "1 2 3\n4 5\n6",
		"LOWER_DIAG_COL": "0 1 2 3\n0 4 5\n0 6\n0",
		"UPPER_COL":      "1\n2 4\n3 5 6",
		"UPPER_DIAG_COL": "0\n1 0\n2 4 0\n3 5 6 0",
	} {
		t.Run(format, func(t *testing.T) {
			text := strings.Replace(small, "EUC_2D", "EXPLICIT\nEDGE_WEIGHT_FORMAT: "+format+"\nDISPLAY_DATA_TYPE: TWOD_DISPLAY", 1)
			text = strings.Replace(text, "NODE_COORD_SECTION", "EDGE_WEIGHT_SECTION\n"+numbers+"\nDISPLAY_DATA_SECTION", 1)
			want := smallProblem()
			want.Metric, want.Weights = vrp.Explicit, matrix
			if diff := cmp.Diff(want, read(t, text, Options{})); diff != "" {
				t.Error(diff)
			}
			// Line breaks mean nothing among distances, and coordinates may be left out.
			text = strings.Replace(text, numbers, strings.Join(strings.Fields(numbers), " "), 1)
			a, b := strings.Index(text, "DISPLAY_DATA_SECTION"), strings.Index(text, "DEMAND_SECTION")
			want.X, want.Y = nil, nil
			if diff := cmp.Diff(want, read(t, text[:a]+text[b:], Options{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A matrix may differ from its transpose; the depot's row and column move together.
func TestReadProblemExplicitOneWay(t *testing.T) {
	const text = "TYPE: CVRP\nDIMENSION: 3\nCAPACITY: 2\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX\n" +
		"EDGE_WEIGHT_SECTION\n0 12 13\n21 0 23\n31 32 0\nDEMAND_SECTION\n1 1\n2 0\n3 1\nDEPOT_SECTION\n2\n-1\nEOF\n"
	p := read(t, text, Options{})
	if diff := cmp.Diff([]float64{0, 21, 23, 12, 0, 13, 32, 31, 0}, p.Weights); diff != "" {
		t.Error(diff)
	}
}

func TestReadProblemErrors(t *testing.T) {
	swap := func(old, text string) string {
		if !strings.Contains(small, old) {
			t.Fatalf("fixture lost %q", old)
		}
		return strings.Replace(small, old, text, 1)
	}
	explicit := func(format, numbers string) string {
		return strings.Replace(swap("EUC_2D", "EXPLICIT\nEDGE_WEIGHT_FORMAT: "+format), "NODE_COORD", "EDGE_WEIGHT_SECTION\n"+numbers+"\nNODE_COORD", 1)
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "f.vrp:1: the file is empty"},
		{"packed", "\x1f\x8b\b\x00", "f.vrp: this is packed by gzip: unpack it first"},
		{"UTF-16", "\xff\xfeN\x00", "f.vrp: this is text in UTF-16: save it as UTF-8"},
		{"a program", "\x7fELF\x00", "f.vrp: this is not a text file"},
		{"blank", "\n \n", "f.vrp:1: the file is empty"},
		{"cut coordinates", small[:strings.Index(small, "3 6 8")], "f.vrp:9: the file ends inside NODE_COORD_SECTION: 2 of 4 nodes"},
		{"cut record", small[:strings.Index(small, " 8\n4")], `f.vrp:10: NODE_COORD_SECTION: expected "node x y", found "3 6"`},
		{"cut demands", small[:strings.Index(small, "4 7")], "f.vrp:15: the file ends inside DEMAND_SECTION: 3 of 4 nodes"},
		{"cut depot", small[:strings.Index(small, " -1")], "f.vrp:18: the file ends inside DEPOT_SECTION, before its -1"},
		{"no demands", small[:strings.Index(small, "DEMAND")] + "EOF\n", "f.vrp:12: no DEMAND_SECTION"},
		{"no capacity", swap("CAPACITY : 10\n", ""), "f.vrp:19: no CAPACITY"},
		{"DIMENSION high", swap("DIMENSION : 4", "DIMENSION : 5"), "f.vrp:4: DIMENSION is 5 but NODE_COORD_SECTION on line 7 lists 4 nodes"},
		{"DIMENSION low", swap("DIMENSION : 4", "DIMENSION : 3"), "f.vrp:4: DIMENSION is 3 but NODE_COORD_SECTION on line 7 lists 4 nodes"},
		{"DIMENSION absurd", swap("DIMENSION : 4", "DIMENSION : 2000000000"), "f.vrp:4: DIMENSION is 2000000000 but NODE_COORD_SECTION on line 7 lists 4 nodes"},
		{"DIMENSION beyond", swap("DIMENSION : 4", "DIMENSION : 99999999999"), `f.vrp:4: DIMENSION "99999999999" is beyond 32 bits`},
		{"DIMENSION 1", swap("DIMENSION : 4", "DIMENSION : 1"), "f.vrp:4: DIMENSION is 1: expected a depot and at least one customer"},
		{"duplicate node", swap("3 6 8", "2 6 8"), "f.vrp:10: NODE_COORD_SECTION: node 2 is given twice, first on line 9"},
		{"unknown node", swap("3 6 8", "9 6 8"), "f.vrp:10: NODE_COORD_SECTION: node 9 is unknown: DIMENSION is 4"},
		{"over capacity", swap("4 7\n", "4 11\n"), "f.vrp:16: demand 11 of customer 3 (node 4) is over the capacity 10"},
		{"negative demand", swap("4 7\n", "4 -7\n"), "f.vrp:16: demand -7 of node 4 is negative"},
		{"broken demand", swap("4 7\n", "4 1.5\n"), `f.vrp:16: demand "1.5" of node 4 is not an integer`},
		{"large demand", swap("4 7\n", "4 3000000000\n"), `f.vrp:16: demand "3000000000" of node 4 is beyond 32 bits`},
		{"NaN", swap("3 6 8", "3 NaN 8"), `f.vrp:10: coordinate "NaN" of node 3 is not finite`},
		{"Inf", swap("3 6 8", "3 6 -Inf"), `f.vrp:10: coordinate "-Inf" of node 3 is not finite`},
		{"huge", swap("3 6 8", "3 6 1e999"), `f.vrp:10: coordinate "1e999" of node 3 is beyond 32 bits`},
		{"word", swap("3 6 8", "3 6 x"), `f.vrp:10: coordinate "x" of node 3 is not a number`},
		{"capacity 0", swap(": 10", ": 0"), "f.vrp:6: CAPACITY is 0: expected at least 1"},
		{"capacity negative", swap(": 10", ": -3"), "f.vrp:6: CAPACITY is -3: expected at least 1"},
		{"capacity broken", swap(": 10", ": 1.5"), `f.vrp:6: CAPACITY "1.5" is not an integer`},
		{"depot demand", swap("1 0\n2 5", "1 2\n2 5"), "f.vrp:13: the depot (node 1) has demand 2: expected 0"},
		{"two depots", swap(" 1\n -1", " 1\n 2\n -1"), "f.vrp:14: the depot (node 2) has demand 5: expected 0"},
		{"unknown depot", swap(" 1\n -1", " 7\n -1"), "f.vrp:18: depot 7 is not a node: DIMENSION is 4"},
		{"no depot", swap(" 1\n -1", " -1"), "f.vrp:17: DEPOT_SECTION names no depot"},
		{"type", swap("CVRP", "HCP"), `f.vrp:3: not supported: TYPE "HCP" (only ` + strings.Join(kinds, ", ") + ")"},
		{"weight type", swap("EUC_2D", "XRAY1"), `f.vrp:5: not supported: EDGE_WEIGHT_TYPE "XRAY1" (only EUC_2D, CEIL_2D, FLOOR_2D, GEO, ATT, EXPLICIT)`},
		{"negative service", swap("CAPACITY", "SERVICE_TIME : -1\nCAPACITY"), `f.vrp:6: SERVICE_TIME "-1" is negative`},
		{"limit 0", swap("CAPACITY", "DISTANCE : 0\nCAPACITY"), `f.vrp:6: DISTANCE "0" is not above 0`},
		{"limit too short", swap("CAPACITY", "DISTANCE : 19\nCAPACITY"), "f.vrp:11: customer 2 (node 3) alone takes 20 there and back, the limit of a route is 19"},
		{"service twice", swap("DEMAND_SECTION", "SERVICE_TIME : 1\nSERVICE_TIME_SECTION\n1 0\n2 1\n3 1\n4 1\nDEMAND_SECTION"), "f.vrp:13: SERVICE_TIME_SECTION contradicts SERVICE_TIME on line 12"},
		{"a solution for a problem", "Route #1: 1 2\nCost 5\n", "f.vrp:1: this is a solution (.sol), not a problem: give the .vrp file, and this one to haul check or with --start"},
		{"section", swap("DEMAND_SECTION", "TURN_SECTION\n1 2 3\nDEMAND_SECTION"), `f.vrp:12: not supported: "TURN_SECTION"`},
		{"windows of some", swap("DEMAND_SECTION", "TIME_WINDOW_SECTION\n1 2 3\nDEMAND_SECTION"), "f.vrp:12: TIME_WINDOW_SECTION lists 1 nodes: DIMENSION is 4"},
		{"windows of one value", swap("DEMAND_SECTION", "TIME_WINDOW_SECTION\n1 2\nDEMAND_SECTION"), `f.vrp:13: TIME_WINDOW_SECTION: expected a node and 2 values, found "1 2"`},
		{"window closed", swap("DEMAND_SECTION", "TIME_WINDOW_SECTION\n1 0 9\n2 3 2\n3 0 9\n4 0 9\nDEMAND_SECTION"), "f.vrp:14: TIME_WINDOW_SECTION: the window of node 2 closes at 2, before it opens at 3"},
		{"negative time", swap("DEMAND_SECTION", "RELEASE_TIME_SECTION\n1 0\n2 -3\n3 0\n4 0\nDEMAND_SECTION"), "f.vrp:14: RELEASE_TIME_SECTION: -3 of node 2 is negative"},
		{"prize twice", swap("DEMAND_SECTION", "PRIZE_SECTION\n1 0\n2 3\n2 0\n4 0\nDEMAND_SECTION"), "f.vrp:15: PRIZE_SECTION: node 2 is given twice, first on line 14"},
		{"capacities of some", swap("DEMAND_SECTION", "VEHICLES_DEPOT_SECTION\n1 1\n3 1\nDEMAND_SECTION"), "f.vrp:14: VEHICLES_DEPOT_SECTION: vehicle 3 is unknown: there are 2"},
		{"a depot that is none", swap("DEMAND_SECTION", "VEHICLES_DEPOT_SECTION\n1 1\n2 2\nDEMAND_SECTION"), "f.vrp:14: VEHICLES_DEPOT: node 2 is no depot"},
		{"a group of a depot", swap("DEMAND_SECTION", "MUTUALLY_EXCLUSIVE_GROUP_SECTION\n1 1 2\nDEMAND_SECTION"), "f.vrp:13: MUTUALLY_EXCLUSIVE_GROUP_SECTION: 1 in group 1 is no customer"},
		{"a shipment's window", "NAME : a\nTYPE : PDPTW\nDIMENSION : 3\nCAPACITY : 5\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 1 1\n3 2 2\nPICKUP_AND_DELIVERY_SECTION\n1 0 0 9 0 0 0\n2 1 7 4 2 0 3\n3 -1 0 9 2 2 0\nDEPOT_SECTION\n1\n-1\nEOF\n",
			"f.vrp:12: PICKUP_AND_DELIVERY_SECTION: the window of node 2 closes at 4, before it opens at 7"},
		{"a depot that ships", "NAME : a\nTYPE : PDPTW\nDIMENSION : 3\nCAPACITY : 5\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 1 1\n3 2 2\nPICKUP_AND_DELIVERY_SECTION\n1 0 0 9 0 2 0\n2 1 1 4 2 0 3\n3 -1 0 9 2 2 0\nDEPOT_SECTION\n1\n-1\nEOF\n",
			"f.vrp:11: PICKUP_AND_DELIVERY_SECTION: the depot has an amount of 0, the pickup 2 and the delivery 0: expected 0, it ships nothing"},
		{"shipments and demands", swap("DEMAND_SECTION", "PICKUP_AND_DELIVERY_SECTION\n1 0 0 9 0 0 0\nDEMAND_SECTION"), "f.vrp:14: DEMAND_SECTION beside PICKUP_AND_DELIVERY_SECTION on line 12: which of them holds is not said"},
		{"key", swap("CAPACITY", "BACKHAULS : 1\nCAPACITY"), `f.vrp:6: not supported: "BACKHAULS"`},
		{"key twice", swap("CAPACITY", "CAPACITY : 5\nCAPACITY"), "f.vrp:7: CAPACITY is given twice, first on line 6"},
		{"section twice", swap("DEMAND_SECTION", "NODE_COORD_SECTION\nDEMAND_SECTION"), "f.vrp:12: NODE_COORD_SECTION is given twice, first on line 7"},
		{"not a text file", "\x7fELF", `f.vrp:1: "\x7fELF": expected a keyword`},
		{"no distances", swap("EUC_2D", "EXPLICIT"), "f.vrp:20: no EDGE_WEIGHT_SECTION"},
		{"format", explicit("LOWER", "1 2 3"), `f.vrp:6: not supported: EDGE_WEIGHT_FORMAT "LOWER"`},
		{"few distances", explicit("LOWER_ROW", "1\n2 4"), "f.vrp:8: EDGE_WEIGHT_SECTION has 3 distances: LOWER_ROW with DIMENSION 4 takes 6"},
		{"negative distance", explicit("LOWER_ROW", "1\n2 -4"), `f.vrp:10: EDGE_WEIGHT_SECTION: distance "-4" is negative`},
		{"contradiction", swap("DEMAND", "EDGE_WEIGHT_SECTION\n1 2\nDEMAND"), "f.vrp:12: EDGE_WEIGHT_SECTION contradicts EDGE_WEIGHT_TYPE EUC_2D on line 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ReadProblem(strings.NewReader(c.text), "f.vrp", Options{})
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestLoadProblemRealFiles(t *testing.T) {
	cmt, err := LoadProblem("../testdata/CMT6.vrp", Options{Distance: ExactDistance})
	if err != nil || cmt.MaxDuration != 200 || cmt.Service[0] != 0 || cmt.Service[50] != 10 {
		t.Errorf("CMT6 has the limit %v and services %v (%v)", cmt.MaxDuration, cmt.Service, err)
	}
	if _, err := LoadProblem("../testdata/none.vrp", Options{}); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
	p, err := LoadProblem("../testdata/X-n101-k25.vrp", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "X-n101-k25" || p.N() != 100 || p.Capacity != 206 || !strings.HasPrefix(p.Comment, "Generated by Uchoa") {
		t.Errorf("name %q, %d customers, capacity %d, comment %q", p.Name, p.N(), p.Capacity, p.Comment)
	}
}

// The published optimum decides how the file's triangle is read.
func TestExplicitTriangleHasPublishedOptimum(t *testing.T) {
	p, err := LoadProblem("../testdata/E-n13-k4.vrp", Options{})
	if err != nil {
		t.Fatal(err)
	}
	costs, _, err := vrp.OptimalSolutions(context.Background(), []*vrp.Problem{p}, 1, nil)
	if err != nil || costs[0] != 247 {
		t.Errorf("optimum %v, want 247 (%v)", costs, err)
	}
}

// A file's number of vehicles limits the routes; it was read and forgotten once.
func TestVehiclesOfAFileLimitTheFleet(t *testing.T) {
	p := read(t, "VEHICLES : 3\n"+small, Options{})
	if p.Vehicles != 3 {
		t.Fatalf("%d vehicles", p.Vehicles)
	}
	p.Vehicles = 2
	var v *vrp.Violation
	if err := vrp.Validate(p, vrp.Solution{Routes: [][]int32{{1}, {2}, {3}}}); !errors.As(err, &v) || v.Rule != vrp.WithinFleet || !strings.Contains(v.Error(), "route 3, 2 vehicles") {
		t.Errorf("a route too many: %v", err)
	}
	if err := vrp.Validate(p, vrp.Solution{Routes: [][]int32{{1}, nil, {2}, nil, {3}}}); err == nil {
		t.Error("empty routes hide one")
	}
	for comment, want := range map[string]int{
		"(Augerat et al, No of trucks: 5, Optimal value: 784)": 5, "no. of trucks 12": 12, "four nodes": 0, "No of trucks: 99999999999999999999": 0,
	} {
		if got := (&vrp.Problem{Comment: comment}).Trucks(); got != want {
			t.Errorf("%q: %d trucks, want %d", comment, got, want)
		}
	}
}

// Control characters of a name reached the terminal.
func TestNamesHoldNoControlCharacters(t *testing.T) {
	p := read(t, strings.Replace(small, ": small", ": a\x1b[31mb\u202ec\x07", 1), Options{})
	if p.Name != "a\ufffd[31mb\ufffdc\ufffd" {
		t.Errorf("%q", p.Name)
	}
}

// Limits that are written are the limits that are read.
func TestLimitsReadBack(t *testing.T) {
	p := smallProblem()
	p.MaxDuration, p.Service, p.Vehicles = 60.5, []float64{0, 1, 2.25, 3}, 3
	var b bytes.Buffer
	if err := WriteProblem(&b, p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, read(t, b.String(), Options{})); diff != "" {
		t.Error(diff)
	}
	p.Open = true
	b.Reset()
	if err := WriteProblem(&b, p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, read(t, b.String(), Options{})); diff != "" {
		t.Error(diff)
	}
}

// exactly is the distance that leaves all digits, or what the file states.
func exactly(yes bool) Distance {
	if yes {
		return ExactDistance
	}
	return AsStated
}

// A file past the bound is told what the bound is.
func TestTooLargeNamesTheBound(t *testing.T) {
	if got := tooLarge("a.vrp").Error(); got != "a.vrp: larger than 512 MiB" {
		t.Error(got)
	}
}
