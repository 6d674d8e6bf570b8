package files

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/vrp"
)

func readTable(text string, o Options) (*vrp.Problem, error) {
	return ReadTable(strings.NewReader(text), "a.csv", o)
}

func input(name, text string) *Input { return &Input{name, []byte(text)} }

// TestSpreadsheet: a file that a spreadsheet program saved, with the columns that people write.
func TestSpreadsheet(t *testing.T) {
	const path = "../../../docs/examples/deliveries.xlsx"
	p, err := LoadProblem(path, Options{Speed: 36})
	if err != nil {
		t.Fatal(err)
	}
	if p.N() != 200 || p.ID(0) != "D01" || p.Called(0) != "Depot North" || p.ID(200) != "C200" || p.Clock != 1 || p.Speed != 600 || p.Metric != vrp.GreatCircle {
		t.Errorf("%d customers, %s, %s, %s, clock %g, speed %g", p.N(), p.ID(0), p.Called(0), p.ID(200), p.Clock, p.Speed)
	}
	if diff := cmp.Diff([]int32{10}, p.Fractions); diff != "" {
		t.Error(diff)
	}
	van, truck := vrp.NewVehicleType(120), vrp.NewVehicleType(300)
	van.Name, van.Count, van.Shift, van.FixedCost, van.DistanceCost, van.DurationCost = "van", 14, vrp.Window{From: 390, To: 1020}, 60, 0.35/1000, 24.0/60
	truck.Name, truck.Count, truck.Shift, truck.FixedCost, truck.DistanceCost, truck.DurationCost = "truck", 8, vrp.Window{From: 360, To: 1080}, 110, 0.75/1000, 28.0/60
	if diff := cmp.Diff([]vrp.VehicleType{van, truck}, p.Fleet); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]vrp.Window{{From: 360, To: 1140}}, p.Windows[0]); diff != "" {
		t.Error(diff)
	}
	if p.Notes != nil {
		t.Errorf("%q", p.Notes)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTable(bytes.NewReader(data), "a.xlsx", Options{}); err == nil || !strings.Contains(err.Error(), "a speed is needed (--speed, in km/h)") {
		t.Errorf("times without a speed: %v", err)
	}
}

// TestTablesBesideTables: vehicles, depots and shipments as files of their own.
func TestTablesBesideTables(t *testing.T) {
	_, err := readTable("No;Name;X;Y;Weight;Volume;Skill\n1;Ann;1,5;0;2,5;1;fridge\n2;Bob;2;0;1;2;\n", Options{
		Depots: input("d.csv", "id,x,y,open,close\nnorth,0,0,6:00,20:00\nsouth,0,9,,\n"),
		Fleet: input("v.csv", "type,number,max weight,capacity_volume,depot,end,hours,max stops,skills,break,break (min),max hours,reload\n"+
			"van,2,3.5,4,south,none,8:00 - 17:00,9,FRIDGE,12:00-13:00,30,8,yes\n"),
	})
	if err == nil || err.Error() != `v.csv:1: column "break (min)" is given twice, first as "break"` {
		t.Fatalf("%v", err)
	}
	o := Options{
		Depots: input("d.csv", "id,x,y,open,close\nnorth,0,0,6:00,20:00\nsouth,0,9,,\n"),
		Fleet: input("v.csv", "type,number,max weight,capacity_volume,depot,end,hours,max stops,skills,break,break duration (min),max_duration (h),reload\n"+
			"van,2,3.5,4,south,none,8:00 - 17:00,9,FRIDGE,12:00-13:00,30,8,yes\n"),
		Shipments: input("s.csv", "id,quantity,pickup,delivery_x,delivery_y,delivery_due\nS1,0.25,2,5,5,18:00\n"),
	}
	p, err := readTable("No;Name;X;Y;Weight;Volume;Skill\n1;Ann;1,5;0;2,5;1;fridge\n2;Bob;2;0;0;0;\n", o)
	if err != nil {
		t.Fatal(err)
	}
	van := vrp.NewVehicleType(350, 4)
	van.Name, van.Count, van.Start, van.End, van.Shift, van.MaxStops, van.Skills, van.MaxDuration, van.Reloads = "van", 2, 1, vrp.None, vrp.Window{From: 480, To: 1020}, 9, []int32{1}, 480, []int{1}
	van.Breaks = []vrp.Break{{Windows: []vrp.Window{{From: 720, To: 780}}, Duration: 30}}
	want := &vrp.Problem{Depots: 2, Demand: []int32{0, 0, 250, 0, 0}, X: []float64{0, 0, 1.5, 2, 5}, Y: []float64{0, 9, 0, 0, 5}, IDs: []string{"north", "south", "1", "2", "S1 delivery"},
		Names: []string{"", "", "Ann", "Bob", ""}, Fractions: []int32{100, 1}, Clock: 1, SkillWords: []string{"fridge"}, Fleet: []vrp.VehicleType{van}, Dimensions: []vrp.Dimension{{Name: "volume", Delivery: []int32{0, 0, 1, 0, 0}}},
		Windows: [][]vrp.Window{{{From: 360, To: 1200}}, nil, nil, nil, {{From: 0, To: 1080}}}, Needs: [][]int32{nil, nil, {1}, nil, nil},
		Shipments: []vrp.Shipment{{Pickup: 3, Delivery: 4, Amount: []int32{25, 0}}}}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
}

// TestTableErrors: one line each that names the place.
func TestTableErrors(t *testing.T) {
	const plain = "id,x,y,demand\nd,0,0,\na,1,1,1\n"
	fleet := func(text string) Options { return Options{Fleet: input("v.csv", text)} }
	for _, c := range []struct {
		text string
		o    Options
		want string
	}{
		{plain, Options{}, "a.csv: the capacity is missing: a table of stops does not say what a vehicle carries; give it, or a table of vehicles"},
		{plain, fleet("type,number\nvan,1\n"), `v.csv:1: no column "capacity": nothing says how much a vehicle carries`},
		{plain, fleet("type,capacity,driver wage\nvan,1,2\n"), `v.csv:1: column "driver wage" is not one that is read: drop it, ignore it, or name it as one of name, count, capacity, start, depot, end, shift, shift_start, shift_end, latest_start, max_duration, max_distance, max_stops, fixed_cost, distance_cost, cost_per_km, duration_cost, cost_per_hour, skills, allowed, reloads, max_reloads, break, break_duration, initial_load`},
		{plain, fleet("type,capacity\nvan,\n"), "v.csv:2: the capacity is empty"},
		{plain, fleet("type,capacity\nvan,-3\n"), `v.csv:2: capacity "-3" is negative`},
		{plain, fleet("type,capacity\n"), "v.csv:1: there are no vehicles below the header"},
		{plain, fleet("type,capacity,depot\nvan,3,east\n"), `v.csv:2: "east" is no depot: there are "d"`},
		{plain, fleet("type,capacity,start\nvan,3,a\n"), `v.csv:2: "a" is no depot: there are "d"`},
		{plain, fleet("type,capacity,from,to\nvan,3,9:00,8:00\n"), "v.csv:2: the shift ends at 08:00, before it begins at 09:00: past midnight, 22:00-30:00 ends at six"},
		{plain, fleet("type,capacity,from,to\nvan,3,9,8\n"), "v.csv:2: the shift ends at 8, before it begins at 9"},
		{plain, fleet("type,capacity,break\nvan,3,12:00-13:00\n"), "v.csv:2: a break is given, and no break_duration says how long it takes"},
		{plain, fleet("type,capacity,break,break_duration\nvan,3,13:00-12:00,30\n"), `v.csv:2: break "13:00-12:00" ends before it begins: past midnight, 22:00-30:00 ends at six`},
		{"id,x,y,demand,ready,due\nd,0,0,,,\na,1,1,1,9:00,8:59\n", Options{Capacity: 3}, `a.csv: "a" is due before it is ready: past midnight, 22:00-30:00 ends at six`},
		{plain, fleet("type,capacity,cost per km\nvan,3,2\n"), "v.csv:2: a cost per km needs distances in metres: places with lat and lon, or a road engine's matrix; else use distance_cost"},
		{plain, fleet("type,capacity,allowed\nvan,3,z\n"), `v.csv:2: allowed names "z", which is no customer`},
		{plain, Options{Capacity: 3, Fleet: input("v.csv", "type,capacity\nvan,3\n")}, "a.csv: a capacity is given, and a table of vehicles that says it: use one of them"},
		{plain, Options{Capacity: 3, Distances: input("m.csv", "1,2\n3,x\n")}, `m.csv:2: "x" from "a" to "a" is not a number`},
		{plain, Options{Capacity: 3, Distances: input("m.csv", "1,2\n")}, "m.csv: 1 rows for 2 places: expected one for each, the depots' first, or a row and a column of ids"},
		{plain, Options{Capacity: 3, Distances: input("m.csv", ",d,z\nd,0,1\na,1,0\n")}, `m.csv:1: "z" is the id of no place, or stands there twice`},
		{plain, Options{Capacity: 3, Distances: input("m.json", `{"code":"NoSegment","message":"far off"}`)}, `m.json: the road engine answered "NoSegment": far off`},
		{plain, Options{Capacity: 3, Distances: input("m.json", `{"code":"Ok","distances":[[0,1],[null,0]]}`)}, "m.json: distances: row 2, column 1 is null: there is no way from place 1 to place 0"},
		{plain, Options{Capacity: 3, Durations: input("m.json", `{"code":"Ok","distances":[[0,1],[2,0]]}`)}, "m.json: it has no durations"},
		{plain, Options{Capacity: 3, Shipments: input("s.csv", "pickup,delivery,amount\na,z,1\n")}, `s.csv:2: "1 delivery": "z" is no customer`},
		{plain, Options{Capacity: 3, Shipments: input("s.csv", "pickup,amount\na,1\n")}, `s.csv:1: no column "delivery": a customer's id, or delivery_x and delivery_y, or delivery_lat and delivery_lon`},
		{"id,x,y,demand,ready\nd,0,0,,2024-05-01 08:00\na,1,1,1,9:00\n", Options{Capacity: 3}, "a.csv: some times have a date and others have none: give all of them one, or none"},
		{"id,x,y,demand,kind\nd,0,0,,depot\na,1,1,1,castle\n", Options{Capacity: 3}, `a.csv:3: kind "castle" of "a" is neither depot nor customer`},
		{"id,x,y,demand_kg,demand_m3\nd,0,0,,\na,1,1,1,1\n", Options{Capacity: 3}, `a.csv: a column for "demand_m3" needs a table of vehicles that says how much of it they carry`},
		{"id,x,y,demand\nd,0,0,\na,1,1,300000.0001\n", Options{Capacity: 400000}, `a.csv:3: an amount of "a" is beyond 32 bits: 300000.0001 counted in 1/10000`},
		{"id,x,y,demand,\nd,0,0,,1\n", Options{Capacity: 3}, "a.csv:1: column 5 holds cells and has no name"},
		{plain, Options{Capacity: 3, Times: "weeks"}, `a.csv: unknown unit of time "weeks": use minutes, seconds or hours`},
	} {
		if _, err := readTable(c.text, c.o); err == nil || err.Error() != c.want {
			t.Errorf("%q:\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}

// TestTableUnits: columns and cells may name their unit; the whole table counts in one.
func TestTableUnits(t *testing.T) {
	for unit, per := range map[string]float64{"": 1, "seconds": 60, "hours": 1.0 / 60} {
		p, err := readTable("id,x,y,demand,service (min),setup_s,due,release\nd,0,0,,,,,\na,1,1,1,6,90,10:00,1h\n", Options{Capacity: 3, Times: unit})
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range [][2]float64{{p.Service[1], 6}, {p.Setup[1], 1.5}, {p.Windows[1][0].To, 600}, {p.Release[1], 60}} {
			if math.Abs(c[0]-c[1]*per) > 1e-12 {
				t.Errorf("%q, column %d: %g, want %g", unit, i, c[0], c[1]*per)
			}
		}
		if p.Clock != per || p.TimeText(p.Windows[1][0].To) != "10:00" {
			t.Errorf("%q: clock %g, %s", unit, p.Clock, p.TimeText(p.Windows[1][0].To))
		}
	}
	p, err := readTable("id,x,y,demand,ready,due\nd,0,0,,,\na,1,1,1,2024-05-01 08:30,2024-05-02 09:00\n", Options{Capacity: 3})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]vrp.Window{{From: 510, To: 1440 + 540}}, p.Windows[1]); diff != "" || len(p.Notes) != 1 || p.Notes[0] != "times count from 2024-05-01 00:00" {
		t.Error(diff, p.Notes)
	}
}

// TestWindowsThatTouchAreOne: in any order; breaks that touch are two.
func TestWindowsThatTouchAreOne(t *testing.T) {
	p, err := readTable("id,x,y,demand,windows\nd,0,0,,\na,1,1,1,14:00-16:00 10:00-12:00 8:00-10:00\nb,1,1,1,8:00-9:59 10:00-12:00\nc,1,1,1,8:00-11:00 9:00-10:00\n",
		Options{Fleet: input("v.csv", "name,capacity,break,break_duration\nv,3,9:00-12:00 12:00-15:00,0\n")})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]vrp.Window{nil, {{From: 480, To: 720}, {From: 840, To: 960}}, {{From: 480, To: 599}, {From: 600, To: 720}}, {{From: 480, To: 660}}}
	if diff := cmp.Diff(want, p.Windows); diff != "" || len(p.Fleet[0].Breaks) != 2 {
		t.Error(diff, p.Fleet[0].Breaks)
	}
}

// TestPricesOfAnHourAreNoTimes: a unit of time behind the name of a price is not passed over.
func TestPricesOfAnHourAreNoTimes(t *testing.T) {
	const plain = "id,x,y,demand\nd,0,0,\na,1,1,1\n"
	for _, c := range []struct{ text, fleet, column string }{
		{"id,x,y,demand,late_cost (h)\nd,0,0,,\na,1,1,1,60\n", "", "late_cost (h)"},
		{plain, "name,capacity,duration_cost_h\nv,3,60\n", "duration_cost_h"},
		{plain, "name,capacity,fixed_cost (min)\nv,3,60\n", "fixed_cost (min)"},
		{plain, "name,capacity,max_distance (h)\nv,3,60\n", "max_distance (h)"},
	} {
		o := Options{Capacity: 3}
		if c.fleet != "" {
			o = Options{Fleet: input("v.csv", c.fleet)}
		}
		if _, err := readTable(c.text, o); err == nil || !strings.Contains(err.Error(), `column "`+c.column+`" is not one that is read`) {
			t.Errorf("%s: %v", c.column, err)
		}
	}
	p, err := readTable(plain, Options{Fleet: input("v.csv", "name,capacity,max_distance (m),max_duration_h\nv,3,60,2\n")})
	if err != nil || p.Fleet[0].MaxDistance != 60 || p.Fleet[0].MaxDuration != 120 {
		t.Errorf("%v", err)
	}
}

// TestNotesNameTheTableBeside: a column that is not read is looked for where it stands, and a speed
// of single vehicles, which would change every time, is refused.
func TestNotesNameTheTableBeside(t *testing.T) {
	const plain = "id,x,y,demand,mood\nd,0,0,,\na,1,1,1,\n"
	p, err := readTable(plain, Options{Ignore: []string{"*"}, Fleet: input("v.csv", "name,capacity,owner,Licence Plate\nv,3,Ann,M-X 1\n")})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{`column "mood" is not read`, `v.csv: column "owner" is not read`}; !slices.Equal(p.Notes, want) {
		t.Errorf("%q", p.Notes)
	}
	if _, err := readTable(plain, Options{Ignore: []string{"*"}, Fleet: input("v.csv", "name,capacity,speed\nv,3,50\n")}); err == nil || !strings.HasPrefix(err.Error(), `v.csv:1: column "speed" is not read: all vehicles of a table are equally fast`) {
		t.Error(err)
	}
}

// TestMatrices: the same numbers in every form, metres and seconds brought to the table's units.
func TestMatrices(t *testing.T) {
	var array bytes.Buffer
	head := "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }"
	head += strings.Repeat(" ", 64-(10+len(head)+1)%64) + "\n"
	array.WriteString("\x93NUMPY\x01\x00")
	_ = binary.Write(&array, binary.LittleEndian, uint16(len(head)))
	array.WriteString(head)
	_ = binary.Write(&array, binary.LittleEndian, []float64{0, 3000, 5000, 0})
	want := []float64{0, 3000, 5000, 0}
	for name, o := range map[string]Options{
		"rows":             {Distances: input("m", "0,3000\n5000,0\n")},
		"tabs":             {Distances: input("m", "0\t3000\n5000\t0\n")},
		"a header":         {Distances: input("m", "a,d\n3000,0\n0,5000\n")},
		"ids":              {Distances: input("m", "from,a,d\na,0,5000\nd,3000,0\n")},
		"numpy":            {Distances: &Input{"m.npy", array.Bytes()}},
		"JSON":             {Distances: input("m", "[[0,3000],[5000,0]]")},
		"OSRM":             {Distances: input("m", `{"code":"Ok","distances":[[0,3000],[5000,0]],"durations":[[0,60],[120,0]],"sources":[{}]}`)},
		"Valhalla":         {Distances: input("m", `{"sources_to_targets":[[{"distance":0,"time":0},{"distance":3,"time":60}],[{"distance":5,"time":120},{"distance":0,"time":0}]],"units":"kilometers"}`)},
		"Valhalla, lists":  {Distances: input("m", `{"sources_to_targets":{"distances":[[0,3],[5,0]],"durations":[[0,60],[120,0]]}}`)},
		"of the two files": {Distances: input("m", "0,3000\n5000,0\n"), Durations: input("n", `{"code":"Ok","durations":[[0,60],[120,0]]}`)},
	} {
		o.Capacity = 3
		p, err := readTable("id,demand\nd,\na,1\n", o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, p.Weights); diff != "" || p.X != nil {
			t.Errorf("%s: %s", name, diff)
		}
		if engine := strings.HasPrefix(name, "OSRM") || strings.HasPrefix(name, "Valhalla") || name == "of the two files"; engine != (p.Profiles != nil) {
			t.Errorf("%s: durations %v", name, p.Profiles)
		} else if diff := cmp.Diff([]float64{0, 1, 2, 0}, append([]float64{}, durations(p)...)); engine && diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func durations(p *vrp.Problem) []float64 {
	if p.Profiles == nil {
		return nil
	}
	return p.Profiles[0].Duration
}

// TestGeoJSONIn: points with properties are a table; what is no point is named.
func TestGeoJSONIn(t *testing.T) {
	const text = `{"type":"FeatureCollection","features":[
 {"type":"Feature","geometry":{"type":"Point","coordinates":[10,53.5]},"properties":{"id":"a","demand":2.5,"tw":"8:00-10:00"}},
 {"type":"Feature","geometry":{"type":"LineString","coordinates":[[1,2],[3,4]]},"properties":{}},
 {"type":"Feature","geometry":{"type":"Point","coordinates":[9.9,53.6]},"properties":{"id":"home","kind":"depot"}}]}`
	p, err := ReadProblem(strings.NewReader(text), "m.geojson", Options{Capacity: 5, Speed: 60})
	if err != nil {
		t.Fatal(err)
	}
	want := &vrp.Problem{Name: "m", Capacity: 50, Demand: []int32{0, 25}, X: []float64{9.9, 10}, Y: []float64{53.6, 53.5}, IDs: []string{"home", "a"}, Fractions: []int32{10}, Clock: 1,
		Metric: vrp.GreatCircle, Speed: 1000, Windows: [][]vrp.Window{nil, {{From: 480, To: 600}}}, Notes: []string{"1 of 3 features are no points and are not read"}}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
	for edit, want := range map[string]string{
		`"coordinates":[10,53.5]|"coordinates":[10]`: "m.geojson: features[0]: coordinates are \"[10]\": expected longitude and latitude",
		`"demand":2.5|"demand":{}`:                   `m.geojson: features[0]: property "demand" is an object, which no column reads`,
		`"demand":2.5|"max_wait":2.5`:                `m.geojson:1: column "max_wait" is not one that is read`,
		`"kind":"depot"|"kind":"castle","demand":1`:  `m.geojson:3: kind "castle" of "home" is neither depot nor customer`,
	} {
		old, new, _ := strings.Cut(edit, "|")
		_, err := ReadProblem(strings.NewReader(strings.Replace(text, old, new, 1)), "m.geojson", Options{Capacity: 5, Speed: 60})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", edit, err, want)
		}
	}
}

// TestRoutesReadBack: routes in every form that haul solve writes are read again.
func TestRoutesReadBack(t *testing.T) {
	p, err := readTable("id,lat,lon,demand,service\nhome,0,0,,\nx 1,1,2,3,5\nb,3,4,5,5\nc,3,3,5,5\n", Options{Speed: 50, Fleet: input("v.csv", "type,number,capacity\nvan,2,8\ntruck,2,9\n")})
	if err != nil {
		t.Fatal(err)
	}
	want := vrp.Solution{Routes: [][]int32{{3}, {2, 1}}, Types: []int32{1, 0}}
	plan, err := NewPlan(p, want, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(b *bytes.Buffer) error{
		"csv":     func(b *bytes.Buffer) error { return WritePlanCSV(b, p, plan) },
		"geojson": func(b *bytes.Buffer) error { return WritePlanGeoJSON(b, p, plan) },
		"json":    func(b *bytes.Buffer) error { return WriteSolutionJSON(b, p, want, plan) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		got, _, err := vrp.Solution{}, 0.0, error(nil)
		if name == "csv" {
			got, _, err = ReadSolutionCSV(&b, "f", p)
		} else {
			got, _, err = ReadSolutionJSON(&b, "f")
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	for text, want := range map[string]string{
		"route,customer\n1,9\n":  `f:2: customer "9" does not exist`,
		"route,id\n1,nobody\n":   `f:2: id "nobody" does not exist`,
		"route,id\n,b\n":         "f:2: no route",
		"route,id\n":             "f has no routes",
		"route,id,type\n1,b,x\n": `f:2: type "x" is not a number`,
	} {
		if _, _, err := ReadSolutionCSV(strings.NewReader(text), "f", p); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	var book bytes.Buffer
	if err := WritePlanXLSX(&book, p, plan); err != nil {
		t.Fatal(err)
	}
	sheets, err := readXLSX(book.Bytes(), "f", newTally(Options{}))
	if err != nil || len(sheets) != 2 || len(sheets[0].rows) != 7 || len(sheets[1].rows) != 2 || sheets[1].rows[0][1] != "truck" {
		t.Errorf("%v: %v", err, fmt.Sprint(sheets))
	}
}

// TestTitlesAndUnits: people write a title above a table and units behind the names of columns. A
// title is named and passed over; units in brackets tell amounts apart, and two units of one amount
// are refused.
func TestTitlesAndUnits(t *testing.T) {
	const stops = "Deliveries,,,,\nTuesday,,,,\n,,,,\nStop No,Latitude,Longitude,Weight (kg),Volume [m3]\nd,50,8,,\na,50.1,8,12.5,2\n"
	vans := func(text string) Options { return Options{Fleet: &Input{"v.csv", []byte(text)}} }
	if !IsTable([]byte(stops)) {
		t.Error("a table below a title is not told")
	}
	p, err := readTable(stops, vans("Type,Number,Capacity (kg),Capacity (m3)\nvan,2,30,9\n"))
	if err != nil {
		t.Fatal(err)
	}
	if p.Demand[1] != 125 || p.Fleet[0].Capacity[0] != 300 || p.Fleet[0].Capacity[1] != 9 || p.Dimensions[0].Delivery[1] != 2 || p.ID(1) != "a" {
		t.Errorf("%+v", p)
	}
	if want := []string{`"Deliveries" stands above the header and is not read`, `"Tuesday" stands above the header and is not read`}; !slices.Equal(p.Notes, want) {
		t.Errorf("%q", p.Notes)
	}
	const one = "id,x,y,Weight (kg)\nd,0,0,\na,1,1,2\n"
	for fleet, want := range map[string]string{
		"type,Capacity (kg)\nvan,3\n": "", "type,Capacity\nvan,3\n": "", "type,Payload [kg]\nvan,3\n": "",
		"type,Capacity (t)\nvan,3\n": `v.csv:1: column "Capacity (t)" counts "t", and the customers' amounts count "kg": use one unit`,
	} {
		p, err := readTable(one, vans(fleet))
		if want == "" && (err != nil || p.Fleet[0].Capacity[0] != 3) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%q: %v", fleet, err)
		}
	}
	if _, err := readTable("id,x,y,demand\nd,0,0,\na,1,1,2,7\n", Options{Capacity: 3}); err == nil {
		t.Error("a cell beside the header is taken")
	}
}
