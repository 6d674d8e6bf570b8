package files

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"haul/internal/vrp"
)

// TestUnitsOfOneAmount: the unit in the title of a demand is held to the vehicles' where the column
// is called demand, as where it is called anything else.
func TestUnitsOfOneAmount(t *testing.T) {
	const stops = "id,x,y,Demand (kg)\nd,0,0,\na,1,1,2\n"
	fleet := func(text string) Options { return Options{Fleet: &Input{"v.csv", []byte(text)}} }
	if p, err := readTable(stops, fleet("type,Capacity (kg)\nvan,3\n")); err != nil || p.Fleet[0].Capacity[0] != 3 {
		t.Errorf("the same unit: %v", err)
	}
	const want = `v.csv:1: column "Capacity (t)" counts "t", and the customers' amounts count "kg": use one unit`
	if _, err := readTable(stops, fleet("type,Capacity (t)\nvan,3\n")); err == nil || err.Error() != want {
		t.Errorf("another unit: %v", err)
	}
}

// TestShipmentsBesidePickups: what a shipment brings to a place is no pickup for the depot, where
// others have those too.
func TestShipmentsBesidePickups(t *testing.T) {
	p, err := readTable("id,x,y,demand,shipment,pickup\nd,0,0,,,\na,1,1,,s,3\nb,2,2,3,s,\nc,3,3,,,4\n", Options{Capacity: 10})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int32{0, 0, 0, 4}; !slices.Equal(p.Pickup, want) || len(p.Shipments) != 1 || p.Shipments[0].Amount[0] != 3 {
		t.Errorf("pickups %v, want %v; shipments %+v", p.Pickup, want, p.Shipments)
	}
	p, err = readTable("id,x,y,weight,volume,shipment,pickup_weight,pickup_volume\nd,0,0,,,,,\na,1,1,,,s,3,2\nb,2,2,3,2,s,,\nc,3,3,,,,4,5\n",
		Options{Fleet: input("v.csv", "type,capacity_weight,capacity_volume\nvan,10,10\n")})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int32{0, 0, 0, 5}; !slices.Equal(p.Dimensions[0].Pickup, want) || !slices.Equal(p.Shipments[0].Amount, []int32{3, 2}) {
		t.Errorf("pickups of the second dimension %v, want %v; shipments %+v", p.Dimensions[0].Pickup, want, p.Shipments)
	}
}

// TestHalvesOfShipmentsAreJudged: a mistake in a place that a table of shipments brings is named,
// and the shipment is not taken without it.
func TestHalvesOfShipmentsAreJudged(t *testing.T) {
	const stops = "id,x,y,demand\nd,0,0,\na,1,1,2\n"
	const head = "id,amount,pickup_x,pickup_y,delivery_x,delivery_y\n"
	o := func(row string) Options { return Options{Capacity: 9, Shipments: input("s.csv", head+row)} }
	if p, err := readTable(stops, o("s,2,5,5,6,6\n")); err != nil || len(p.Shipments) != 1 {
		t.Fatalf("%v", err)
	}
	for _, row := range []string{"s,2,x,5,6,6\n", "s,2,5,5,6,y\n", "s,2,,5,6,6\n"} {
		if _, err := readTable(stops, o(row)); err == nil || !strings.HasPrefix(err.Error(), "s.csv:2: ") {
			t.Errorf("%q: %v", row, err)
		}
	}
}

// TestSkillsByNumber: numbers keep their value, also beyond what ten bits hold; words are numbered
// in their order.
func TestSkillsByNumber(t *testing.T) {
	p, err := readTable("id,x,y,demand,skills\nd,0,0,,\na,1,1,2,1500 7\n", Options{Capacity: 9})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int32{7, 1500}; !slices.Equal(p.Needs[1], want) {
		t.Errorf("%v, want %v", p.Needs[1], want)
	}
	if p, err = readTable("id,x,y,demand,skills\nd,0,0,,\na,1,1,2,lift 7\n", Options{Capacity: 9}); err != nil || !slices.Equal(p.Needs[1], []int32{1, 2}) {
		t.Errorf("%v, %v", p.Needs, err)
	}
}

// TestTimesAreWrittenInTheirUnit: settings say in which unit a problem's times are.
func TestTimesAreWrittenInTheirUnit(t *testing.T) {
	for clock, want := range map[float64]string{60: "seconds", 1.0 / 60: "hours", 1: ""} {
		got := ""
		for _, row := range settingsOf(&vrp.Problem{Capacity: 5, Clock: clock}) {
			if row[0] == "times" {
				got = row[1]
			}
		}
		if got != want {
			t.Errorf("a clock of %g is written as %q, want %q", clock, got, want)
		}
	}
}

// TestSpeedsAreWrittenInKilometresPerHour, whatever unit a problem's times are in.
func TestSpeedsAreWrittenInKilometresPerHour(t *testing.T) {
	for clock, speed := range map[float64]float64{60: 10, 1: 600, 1.0 / 60: 36000} { // metres per second, minute and hour
		rows := settingsOf(&vrp.Problem{Capacity: 5, Clock: clock, Metric: vrp.GreatCircle, Speed: speed})
		if !slices.ContainsFunc(rows, func(row []string) bool { return slices.Equal(row, []string{"speed", "36"}) }) {
			t.Errorf("a clock of %g: %v", clock, rows)
		}
	}
}

// TestNumberFormats of cells: minutes alone are months, beside hours or seconds minutes.
func TestNumberFormats(t *testing.T) {
	for code, want := range map[string]cellFormat{
		"0.00": plainNumber, "General": plainNumber, `#,##0 "mm"`: plainNumber, `0 \m`: plainNumber, "[Red]0": plainNumber,
		"hh:mm": timeOfDay, "[h]:mm": timeOfDay, "mm:ss": timeOfDay,
		"mm": dateAndTime, "mmm": dateAndTime, "dd/mm/yyyy": dateAndTime, "yyyy": dateAndTime, "dd hh:mm": dateAndTime,
		"0;mm": plainNumber, "[Red]dd/mm": dateAndTime, "[$-409]hh:mm": timeOfDay,
	} {
		if got := formatOf(code); got != want {
			t.Errorf("%q is %v, want %v", code, got, want)
		}
	}
}

// TestReloadsThatTheDialectCannotSay are refused rather than written as others.
func TestReloadsThatTheDialectCannotSay(t *testing.T) {
	fleet := func(reloads [2][]int, most [2]int) *vrp.Problem {
		p := &vrp.Problem{Demand: []int32{0, 1}, X: make([]float64, 2), Y: make([]float64, 2)}
		for i := range 2 {
			v := vrp.NewVehicleType(5)
			v.Count, v.Reloads, v.MaxReloads = 1, reloads[i], most[i]
			p.Fleet = append(p.Fleet, v)
		}
		return p
	}
	for what, c := range map[string]struct {
		p  *vrp.Problem
		ok bool
	}{
		"none":                         {fleet([2][]int{}, [2]int{}), true},
		"all, any number":              {fleet([2][]int{{0}, {0}}, [2]int{}), true},
		"all, counted":                 {fleet([2][]int{{0}, {0}}, [2]int{2, 3}), true},
		"one without a count":          {fleet([2][]int{{0}, {0}}, [2]int{0, 3}), false},
		"one that does, any number":    {fleet([2][]int{{0}, nil}, [2]int{}), false},
		"a count without a place":      {fleet([2][]int{nil, nil}, [2]int{2, 2}), false}, // as no problem may have
		"a list of places that is not": {fleet([2][]int{{}, {}}, [2]int{}), false},
	} {
		if err := WriteProblem(&bytes.Buffer{}, c.p); (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "reload") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestVROOMProfilesByVehicle: vehicles that pay otherwise go by their own matrix, and one that pays
// by time alone has no second one.
func TestVROOMProfilesByVehicle(t *testing.T) {
	v, err := ReadVROOM([]byte(`{"vehicles":[{"id":1,"start_index":0},{"id":2,"start_index":0,"profile":"dear"},{"id":3,"start_index":0,"costs":{"per_hour":100,"per_km":3}}],
		"jobs":[{"id":1,"location_index":1}],
		"matrices":{"car":{"durations":[[0,7200],[7200,0]],"distances":[[0,5000],[5000,0]]},"dear":{"durations":[[0,10],[10,0]],"costs":[[0,99],[99,0]]}}}`), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := v.Problem
	if len(p.Fleet) != 3 || len(p.Profiles) != 3 {
		t.Fatalf("%d types, %d profiles", len(p.Fleet), len(p.Profiles))
	}
	for k, want := range []float64{7200, 99, 215} {
		got := p.Cost(vrp.Solution{Routes: [][]int32{{1}}, Types: []int32{int32(k)}})
		if p.Fleet[k].Profile != k || math.Abs(got-want) > 1e-9 {
			t.Errorf("type %d goes by profile %d and costs %g, want %g", k, p.Fleet[k].Profile, got, want)
		}
	}
	for k, none := range []bool{true, false, false} {
		if (p.Profiles[k].Duration == nil) != none {
			t.Errorf("profile %d: durations %v", k, p.Profiles[k].Duration)
		}
	}
}

// TestFilesAreClosed: a table that was read from a file leaves no file open.
func TestFilesAreClosed(t *testing.T) {
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(list)
	}
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte("id,x,y,demand\nd,0,0,\na,1,1,2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := open()
	for range 20 {
		if _, err := LoadProblem(path, Options{Capacity: 3}); err != nil {
			t.Fatal(err)
		}
	}
	if after := open(); after > before+10 { // the collector may close some
		t.Errorf("%d files are open, %d were", after, before)
	}
}

// TestTablesByNameAreTables: a table whose columns are all unknown is told, not taken for VRPLIB.
func TestTablesByNameAreTables(t *testing.T) {
	const text = "Kunde;Rechts;Hoch;Menge\nd;0;0;0\na;1;1;2\n"
	for name, want := range map[string]string{
		"a.csv": `a.csv:1: no column "x": expected id,x,y,demand or id,lat,lon,demand`,
		"a.TSV": `a.TSV:1: no column "x": expected id,x,y,demand or id,lat,lon,demand`,
		"a.txt": `a.txt:1: "Kunde;Rechts;Hoch;Menge": expected a keyword`,
	} {
		if _, err := ReadProblem(strings.NewReader(text), name, Options{Capacity: 5}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	const vrplib = "NAME : a\nTYPE : CVRP\nDIMENSION : 2\nCAPACITY : 5\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 3 4\nDEMAND_SECTION\n1 0\n2 1\nDEPOT_SECTION\n1\n-1\nEOF\n"
	if p, err := ReadProblem(strings.NewReader(vrplib), "a.csv", Options{}); err != nil || p.N() != 1 {
		t.Errorf("VRPLIB under the name of a table: %v", err)
	}
}

// TestDistancesAreRoundedInEveryFormat: --distance is honoured, or a note says that it is not.
func TestDistancesAreRoundedInEveryFormat(t *testing.T) {
	const table, object = "id,x,y,demand\nd,0,0,\na,1,1,1\n", `{"coords":[[0,0],[1,1]],"demands":[0,1],"capacity":5}`
	const head = "NAME : a\nTYPE : CVRP\nDIMENSION : 2\nCAPACITY : 5\n"
	const tail = "DEMAND_SECTION\n1 0\n2 1\nDEPOT_SECTION\n1\n-1\nEOF\n"
	matrix := Options{Capacity: 5, Distances: input("m.csv", "0,1.5\n1.5,0\n")}
	for _, c := range []struct {
		name, text string
		o          Options
		distance   Distance
		want       float64
		note       string
	}{
		{"a.csv", table, Options{Capacity: 5}, AsStated, math.Sqrt2, ""},
		{"a.csv", table, Options{Capacity: 5}, ExactDistance, math.Sqrt2, ""},
		{"a.csv", table, Options{Capacity: 5}, RoundedDistance, 1, ""},
		{"a.csv", table, Options{Capacity: 5}, CeilDistance, 2, ""},
		{"a.csv", table, Options{Capacity: 5}, DimacsDistance, 1.4, ""},
		{"a.csv", table, matrix, RoundedDistance, 1.5, "distance rounded changes nothing: the distances are a matrix"},
		{"a.csv", strings.Replace(table, "x,y", "lon,lat", 1), Options{Capacity: 5}, CeilDistance, 157249.6, "distance ceil changes nothing: the distances are great circles in metres"},
		{"a.json", object, Options{}, RoundedDistance, 1, ""},
		{"a.json", object, Options{}, AsStated, math.Sqrt2, ""},
		{"a.vrp", head + "EDGE_WEIGHT_TYPE : GEO\nNODE_COORD_SECTION\n1 0 0\n2 1 1\n" + tail, Options{}, ExactDistance, 158, "distance exact changes nothing: the distances are TSPLIB's GEO"},
		{"a.vrp", head + "EDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 1 1\n" + tail, Options{}, ExactDistance, math.Sqrt2, ""},
	} {
		c.o.Distance = c.distance
		p, err := ReadProblem(strings.NewReader(c.text), c.name, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Cost(vrp.Solution{Routes: [][]int32{{1}}}) / 2; math.Abs(got-c.want) > 0.01 || strings.Join(p.Notes, "|") != c.note {
			t.Errorf("%s, distance %q: %g, want %g; notes %q", c.name, c.distance, got, c.want, p.Notes)
		}
	}
}

// TestSettingsCountInTheirUnit: a limit above the row that names the unit of time counts in it.
func TestSettingsCountInTheirUnit(t *testing.T) {
	rows := [][]string{{"max_duration", "2h"}, {"times", "seconds"}, {"capacity", "5"}}
	for _, c := range []struct {
		flag string
		want float64
	}{{"", 7200}, {"minutes", 120}, {"hours", 2}} {
		for range rows {
			rows = append(rows[1:], rows[0])
			tables := &tables{p: new(vrp.Problem), o: Options{Times: c.flag}, settings: &sheet{name: "s", head: []string{"setting", "value"}, rows: rows, lines: []int{2, 3, 4}, decimal: strings.TrimSpace}}
			tables.minute = 1 / timeUnits[c.flag]
			if err := tables.readSettings(); err != nil || math.Abs(tables.p.MaxDuration-c.want) > 1e-9 {
				t.Errorf("--times %q, %q: %g, want %g (%v)", c.flag, rows, tables.p.MaxDuration, c.want, err)
			}
		}
	}
}

// TestLimitsOfTimeNeedASpeed: on the globe a limit of time is no limit of metres.
func TestLimitsOfTimeNeedASpeed(t *testing.T) {
	const places = "id,lat,lon,demand\nd,48,11,\na,48.1,11,1\n"
	if _, err := readTable(places, Options{Fleet: input("v.csv", "name,capacity,latest_start\nv,5,9:00\n")}); !errors.Is(err, ErrSpeed) {
		t.Errorf("latest_start: %v", err)
	}
	book := []*sheet{
		{name: "customers", title: "customers", head: []string{"id", "lat", "lon", "demand"}, rows: [][]string{{"d", "48", "11", ""}, {"a", "48.1", "11", "1"}}, lines: []int{2, 3}, decimal: strings.TrimSpace},
		{name: "settings", title: "settings", head: []string{"max_duration", "8h"}, rows: [][]string{{"times", "seconds"}, {"capacity", "5"}}, lines: []int{2, 3}, decimal: strings.TrimSpace},
	}
	if _, err := buildTables(book, "a.xlsx", Options{}, newTally(Options{})); !errors.Is(err, ErrSpeed) {
		t.Errorf("max_duration: %v", err)
	}
	if p, err := buildTables(book, "a.xlsx", Options{Speed: 36}, newTally(Options{})); err != nil || p.MaxDuration != 28800 || math.Abs(p.Speed-10) > 1e-9 {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestWrongSettingsAreNamed: the key, its value, and what is wrong with it.
func TestWrongSettingsAreNamed(t *testing.T) {
	s := &sheet{name: "a.xlsx, settings", head: []string{"setting", "value"}, at: 1, rows: [][]string{{"vehicles", "3"}, {"speed", "-2"}}, lines: []int{2, 3}, decimal: func(s string) string { return s }}
	err := (&tables{p: new(vrp.Problem), settings: s}).readSettings()
	if want := `a.xlsx, settings:3: speed "-2" is not above 0`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	s.rows = [][]string{{"capacity", "1"}, {"speed", "2"}}
	if err := (&tables{p: new(vrp.Problem), settings: s}).readSettings(); err != nil {
		t.Error(err)
	}
	s.rows[0][1] = "0"
	if err := (&tables{p: new(vrp.Problem), settings: s}).readSettings(); err == nil || err.Error() != `a.xlsx, settings:2: capacity "0" is not above 0` {
		t.Error(err)
	}
}

// TestWhatCannotBeReadIsNamed: the file first, then why.
func TestWhatCannotBeReadIsNamed(t *testing.T) {
	torn := errors.New("torn")
	for what, read := range map[string]func(io.Reader) error{
		"solution": func(r io.Reader) error { _, _, err := ReadSolutionJSON(r, "s.json"); return err },
		"table":    func(r io.Reader) error { _, err := ReadTable(r, "s.json", Options{Capacity: 1}); return err },
		".vrp":     func(r io.Reader) error { _, err := ReadVRPLIB(r, "s.json", Options{}); return err },
		"text":     func(r io.Reader) error { _, err := openText(r, "s.json"); return err },
	} {
		if err := read(iotest.ErrReader(torn)); !errors.Is(err, torn) || err.Error() != "s.json: torn" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestWindowsInPyVRPsDialect: every place has one with both ends, or the problem is refused.
func TestWindowsInPyVRPsDialect(t *testing.T) {
	all := func(w ...vrp.Window) *vrp.Problem {
		p := smallProblem()
		p.Windows, p.Service = [][]vrp.Window{{{From: 0, To: 90}}, w, {{From: 2, To: 80}}, {{From: 3, To: 70}}}, make([]float64, 4)
		return p
	}
	var b bytes.Buffer
	if err := WriteProblem(&b, all(vrp.Window{From: 1, To: 60})); err != nil {
		t.Fatal(err)
	}
	if q := read(t, b.String(), Options{}); len(q.Windows) != 4 || !slices.Equal(q.Windows[1], []vrp.Window{{From: 1, To: 60}}) {
		t.Errorf("read back: %v", q.Windows)
	}
	for what, p := range map[string]*vrp.Problem{"two": all(vrp.Window{From: 1, To: 2}, vrp.Window{From: 5, To: 6}), "no end": all(vrp.Window{From: 1, To: math.Inf(1)})} {
		if err := WriteProblem(new(bytes.Buffer), p); err == nil || !strings.Contains(err.Error(), "place 1 has") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestShipmentsAreWritten: in PyVRP's dialect each half names the other; Li and Lim's has a speed.
func TestShipmentsAreWritten(t *testing.T) {
	p := &vrp.Problem{Name: "pairs", Capacity: 10, Metric: vrp.Rounded, X: []float64{0, 3, 6, 1, 2}, Y: []float64{0, 4, 8, 1, 2}, Demand: make([]int32, 5), Service: make([]float64, 5)}
	for range 5 {
		p.Windows = append(p.Windows, []vrp.Window{{From: 0, To: 90}})
	}
	p.Shipments = []vrp.Shipment{{Pickup: 1, Delivery: 3, Amount: []int32{2}}, {Pickup: 4, Delivery: 2, Amount: []int32{5}}}
	var b bytes.Buffer
	if err := WriteProblem(&b, p); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{"\n2\t2\t0\t90\t0\t0\t4\n", "\n4\t-2\t0\t90\t0\t2\t0\n", "\n5\t5\t0\t90\t0\t0\t3\n", "\n3\t-5\t0\t90\t0\t5\t0\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
	if q := read(t, text, Options{}); len(q.Shipments) != 2 {
		t.Errorf("read back: %+v", q.Shipments)
	}
	b.Reset()
	if err := WriteLiLim(&b, p); err != nil || !strings.HasPrefix(b.String(), "4\t10\t1\n") {
		t.Errorf("Li and Lim's format, of a problem that says no speed: %v\n%s", err, b.String())
	}
}

// TestWhatPartsCells: what gives the most known columns; of a header with none, what is there.
func TestWhatPartsCells(t *testing.T) {
	for head, want := range map[string]rune{"id;x,1;y,1;demand": ';', "id,x,y;z,demand": ',', "id\tx\ty": '\t', "a;b;c": ';', "a\tb": '\t', "a": ','} {
		if got, _ := separator([]byte(head)); got != want {
			t.Errorf("%q: %q, want %q", head, got, want)
		}
	}
}
