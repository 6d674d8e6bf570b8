package files

import (
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/schema"
	"haul/internal/vrp"

	"github.com/google/go-cmp/cmp"
)

// TestCSVParts: a column that constrains is read into its part, and never dropped.
func TestCSVParts(t *testing.T) {
	const text = `id,x,y,demand,tw_start,Due Date,service,pickup,prize,release,skills,priority,setup,group,late cost
depot,0,0,,08:00,18:00,,,,,,,,,
a,1,0,2,08:30,09:15:30,5,,,,1 3,2,,,
b,2,0,0,,600,0:10,4,,,,,1.5,,
c,3,0,1,,,,,7.5,30,,,,,0.25
d,4,0,1,,,,,,,,,,north,
e,5,0,1,,,,,,,,,,north,
`
	got, err := readCSV(strings.NewReader(text), "a.csv", 10)
	if err != nil {
		t.Fatal(err)
	}
	want := &vrp.Problem{Capacity: 10, Demand: []int32{0, 2, 0, 1, 1, 1}, X: []float64{0, 1, 2, 3, 4, 5}, Y: make([]float64, 6),
		IDs:     []string{"depot", "a", "b", "c", "d", "e"},
		Service: []float64{0, 5, 10, 0, 0, 0},
		Windows: [][]vrp.Window{{{From: 480, To: 1080}}, {{From: 510, To: 555.5}}, {{From: 0, To: 600}}, nil, nil, nil},
		Pickup:  []int32{0, 0, 4, 0, 0, 0}, Prize: []float64{0, 0, 0, 7.5, 0, 0}, Optional: []bool{false, false, false, true, false, false},
		Release: []float64{0, 0, 0, 30, 0, 0}, Needs: [][]int32{nil, {1, 3}, nil, nil, nil, nil}, Priority: []int{0, 2, 0, 0, 0, 0},
		Setup: []float64{0, 0, 1.5, 0, 0, 0}, Groups: []vrp.Group{{Name: "north", Members: []int32{4, 5}, Required: true}},
		Late: []float64{0, 0, 0, 0.25, 0, 0}, Clock: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got, err = readCSV(strings.NewReader("id,x,y,demand,shipment,pickup,windows,note\nd,0,0,,,,\"\",\na,1,1,,s,3,10-20|30-40,2\nb,2,2,3,s,,,1\n"), "a.csv", 10)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]vrp.Shipment{{Pickup: 1, Delivery: 2, Amount: []int32{3}}}, got.Shipments); diff != "" || got.Demand[2] != 0 || got.Pickup != nil {
		t.Error(diff, got.Demand, got.Pickup)
	}
	if diff := cmp.Diff([][]vrp.Window{nil, {{From: 10, To: 20}, {From: 30, To: 40}}, nil}, got.Windows); diff != "" {
		t.Error(diff)
	}
	if len(got.Notes) > 0 {
		t.Error(got.Notes)
	}
	// Columns that say nothing leave a plain problem.
	got, err = readCSV(strings.NewReader("id,x,y,demand,ready,due,pickup,prize\nd,0,0,,,,,\na,1,1,1,0,,0,\n"), "a.csv", 10)
	if err != nil || got.Plain() != nil {
		t.Errorf("%v, %v", err, got.Plain())
	}
}

func TestCSVConstraintsAreNotDropped(t *testing.T) {
	for head, want := range map[string]string{
		"vehicle_type": `column "vehicle_type" is not one that is read`, "max_wait": "is not one that is read", "Start Time": "is not one that is read", "weight": "is not one that is read",
		"allowed_drivers": "is not one that is read", "tw_open,ready": `column "ready" is given twice`,
		"zone": "drop it, ignore it, or name it as one of x, y,", "not_with": "is not one that is read", "locked": "is not one that is read", "avoid": "is not one that is read",
		"colour": "is not one that is read", "priorty": `column "priorty" is not one that is read: is "priority" meant? Else drop it or ignore it`,
	} {
		_, err := readCSV(strings.NewReader("id,x,y,demand,"+head+"\n"), "a.csv", 10)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "a.csv:1: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", head, err)
		}
	}
	for _, c := range []struct{ head, cell, want string }{
		{"ready", "-1", `ready "-1" of "a" is negative`},
		{"ready", "8:60", `ready "8:60" of "a" is not a time: expected a number, or hours and minutes as 08:30`},
		{"ready", "8:3x", `ready "8:3x" of "a" is not a time: expected a number, or hours and minutes as 08:30`},
		{"due", "nan", `due "nan" of "a" is not finite`},
		{"service", "-5", `service "-5" of "a" is negative`},
		{"windows", "9:00", `windows "9:00" of "a" is not a list of windows: expected 08:00-10:00 14:00-16:00`},
		{"pickup", "1.23456", `pickup "1.23456" of "a" has more than 4 decimals`},
		{"prize", "lots", `prize "lots" of "a" is not a number`},
		{"required", "maybe", `required "maybe" of "a" is neither yes nor no`},
		{"skills", "1.5", `skills "1.5" of "a" is not a list of skills: expected numbers such as 1 3, or words`},
	} {
		_, err := readCSV(strings.NewReader("id,x,y,demand,"+c.head+"\nd,0,0,,\na,1,1,1,"+c.cell+"\n"), "a.csv", 10)
		if err == nil || err.Error() != "a.csv:3: "+c.want {
			t.Errorf("%s %s:\ngot  %v\nwant %s", c.head, c.cell, err, "a.csv:3: "+c.want)
		}
	}
	for text, want := range map[string]string{
		"id,x,y,demand,shipment,pickup\nd,0,0,,,\na,1,1,,s,3\nb,2,2,2,s,\n": `a.csv: the halves of shipment "s" contradict: "a" picks up 3 and takes 0, "b" picks up 0 and takes 2; expected one row with a pickup and one with the same demand`,
		"id,x,y,demand,shipment,pickup\nd,0,0,,,\na,1,1,0,s,3\n":            `a.csv: shipment "s" is named by 1 rows: expected two, its pickup and its delivery`,
		"id,x,y,demand,ready,windows\nd,0,0,,,\na,1,1,1,5,1-2\n":            `a.csv: "a" has windows and ready or due: give one of them`,
		"id,x,y,demand,prize\nd,0,0,,3\na,1,1,1,5\n":                        `a.csv: "d" is the depot, and asks for what only a customer can`,
	} {
		if _, err := readCSV(strings.NewReader(text), "a.csv", 10); err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// TestIgnoredColumns: a column that the user names is not read, and a note says so; * names all.
func TestIgnoredColumns(t *testing.T) {
	const text = "id,x,y,demand,Zone,not-with\nd,0,0,,,\na,1,1,1,north,b\n"
	for _, c := range []struct {
		ignore []string
		want   string
	}{{[]string{"zone", "NOT WITH"}, ""}, {[]string{"*"}, ""}, {[]string{"zone"}, `column "not-with" is not one that is read`}, {[]string{"demand"}, `column "Zone" is not`}} {
		p, err := ReadTable(strings.NewReader(text), "a.csv", Options{Capacity: 3, Ignore: c.ignore})
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q: %v", c.ignore, err)
		case c.want == "" && (err != nil || !slices.Equal(p.Notes, []string{`column "Zone" is not read`, `column "not-with" is not read`})):
			t.Errorf("%q: %v", c.ignore, err)
		}
	}
}

// TestColumnsAreUnique: no word means two columns of a sheet.
func TestColumnsAreUnique(t *testing.T) {
	for _, sheet := range []schema.Sheet{schema.Customers, schema.Vehicles, schema.Shipments, schema.Settings} {
		of := map[string]string{}
		for _, c := range schema.ColumnsOf(sheet) {
			for _, word := range append(strings.Fields(c.Also), c.Name) {
				if was, twice := of[word]; twice {
					t.Errorf("%q means %s and %s", word, was, c.Name)
				}
				if of[word] = c.Name; word != spelled(word) && !strings.Contains(word, "NAME") {
					t.Errorf("%q of %s is not spelled as a header is read", word, c.Name)
				}
			}
		}
		if len(of) < 3 {
			t.Errorf("sheet %d has the words %v", sheet, of)
		}
	}
}

// TestColumnsHaveReaders: each column of the table of parts has a function that reads its cells,
// and each function a column.
func TestColumnsHaveReaders(t *testing.T) {
	byHand := map[schema.Sheet]string{ // read by the steps that fill the problem
		schema.Customers: " id name kind x y lat lon demand pickup demand_NAME pickup_NAME ",
		schema.Vehicles:  " capacity initial_load ",
	}
	for sheet, has := range map[schema.Sheet]func(string) bool{
		schema.Customers: func(name string) bool { return placeColumns[name] != nil },
		schema.Vehicles:  func(name string) bool { return vehicleColumns[name] != nil },
	} {
		for _, c := range schema.ColumnsOf(sheet) {
			if has(c.Name) == strings.Contains(byHand[sheet], " "+c.Name+" ") {
				t.Errorf("column %s of sheet %d is read by %v", c.Name, sheet, has(c.Name))
			}
		}
	}
	for name := range placeColumns {
		if customerWords[name] != name {
			t.Errorf("no part has the column %s of customers", name)
		}
	}
	for name := range vehicleColumns {
		if vehicleWords[name] != name {
			t.Errorf("no part has the column %s of vehicles", name)
		}
	}
	for _, c := range schema.ColumnsOf(schema.Settings) {
		tb := &tables{p: &vrp.Problem{}}
		tb.decimal, tb.minute = strings.TrimSpace, 1
		if err := tb.set(c.Name, "?"); err == nil || strings.Contains(err.Error(), "is not a setting") {
			t.Errorf("setting %s: %v", c.Name, err)
		}
	}
}

func TestCSVTimes(t *testing.T) {
	r := reader{decimal: strings.TrimSpace, minute: 1}
	for text, want := range map[string]float64{"0": 0, "7.5": 7.5, "0:00": 0, "8:05": 485, "08:05:30": 485.5, "26:00": 1560, "8:30 PM": 1230, "12:05am": 5, "8 am": 480,
		"8h30": 510, "20 min": 20, "1h 30min": 90, "90s": 1.5, "1.5 hours": 90} {
		if got, err := r.time(text); err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %g, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "8:", ":30", "8:5:5:5", "100:00", "+8:00", "8:-1", "13:00 pm", "8 parsecs", "1h x", "-20 min"} {
		if got, err := r.time(text); err == nil {
			t.Errorf("%q is %g", text, got)
		}
	}
}
