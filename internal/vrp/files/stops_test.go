package files

import (
	"archive/zip"
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/vrp"
)

// Routes that people edit in a spreadsheet come back as they meant them, or are refused.

func twoVans(t *testing.T) *vrp.Problem {
	t.Helper()
	p, err := ReadJSON(strings.NewReader(`{"coords":[[0,0],[1,0],[2,0],[3,0]],"demands":[0,1,1,1],"ids":["d","007","b","9007199254740993"],
		"names":["","Zum Eck","B",""],"optional":[false,true,true,true],"prizes":[0,1,1,1],
		"fleet":[{"name":"small","capacity":[2],"count":2},{"capacity":[3],"count":1}]}`), "f")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestEditedStops: what a row says twice must agree, whatever separates its cells.
func TestEditedStops(t *testing.T) {
	p := twoVans(t)
	one := vrp.Solution{Routes: [][]int32{{1, 2}}, Types: []int32{1}}
	for text, want := range map[string]string{
		"route,stop,customer,id,type,vehicle\n1,1,1,007,1,2\n1,2,2,b,1,2\n": "",
		"route;stop;customer;id;type\r\n1;1;1;007;1\r\n1;2;2;b;1\r\n":       "",
		"\"route\",\"id\",\"vehicle\"\n1,007,2\n1,b,2\n":                    "",
		"route,customer,id,type\n1,1,7,1\n1,2,b,1\n":                        "", // a spreadsheet took the zeros
		"route,stop,id,type\n1,3,007,1\n1,3,b,1\n":                          "",
		"route,customer,id,type\n1,1,b,1\n":                                 `f:2: customer 1 has the id "007", and the row says "b": leave one of the two columns out`,
		"route,stop,id,type\n1,3,007,1\n1,2,b,1\n":                          `f:3: stop "2" of route "1" stands behind stop 3: sort the rows by route and stop, or leave the column out`,
		"route,stop,id,type\n1,x,007,1\n":                                   `f:2: stop "x" is not a number`,
		"route,id,type\n1,007,1\n1,b,0\n":                                   `f:3: route "1" has another vehicle here than in its rows before`,
		"route,id,type,vehicle\n1,007,1,small\n":                            `f:2: type 1 is the vehicle "2", and the row says "small": leave one of the two columns out`,
		"route,id,vehicle\n1,007,large\n":                                   `f:2: vehicle "large" is none of the fleet`,
	} {
		if !LooksSolutionCSV([]byte(text)) {
			t.Errorf("%q is not told", text)
		}
		got, _, err := ReadSolutionCSV(strings.NewReader(text), "f", p)
		if want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		if diff := cmp.Diff(one, got); want == "" && (err != nil || diff != "") {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
}

// TestIdsOfSeveralPlaces: an object may call two places alike, and a row that names them by that
// alone names neither.
func TestIdsOfSeveralPlaces(t *testing.T) {
	p := twoVans(t)
	p.IDs[2] = "007"
	if _, _, err := ReadSolutionCSV(strings.NewReader("route,id,type\n1,007,1\n"), "f", p); err == nil || !strings.Contains(err.Error(), `id "007" is that of several places: give their numbers, as customer`) {
		t.Error(err)
	}
	if got, _, err := ReadSolutionCSV(strings.NewReader("route,customer,id,type\n1,2,007,1\n"), "f", p); err != nil || got.Routes[0][0] != 2 {
		t.Errorf("%v %v", got, err)
	}
}

// TestPlansComeBack: every format that is written is read, plans that serve nobody too.
func TestPlansComeBack(t *testing.T) {
	p := twoVans(t)
	for _, want := range []vrp.Solution{{Routes: [][]int32{{3, 1}, {2}}, Types: []int32{1, 0}}, {Routes: [][]int32{}}} {
		plan, err := NewPlan(p, want, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, how := range map[string]struct {
			write func(io.Writer) error
			read  func(io.Reader) (vrp.Solution, float64, error)
		}{
			"csv":     {func(w io.Writer) error { return WritePlanCSV(w, p, plan) }, func(r io.Reader) (vrp.Solution, float64, error) { return ReadSolutionCSV(r, "f", p) }},
			"xlsx":    {func(w io.Writer) error { return WritePlanXLSX(w, p, plan) }, func(r io.Reader) (vrp.Solution, float64, error) { return ReadSolutionXLSX(r, "f", p) }},
			"geojson": {func(w io.Writer) error { return WritePlanGeoJSON(w, p, plan) }, func(r io.Reader) (vrp.Solution, float64, error) { return ReadSolutionJSON(r, "f") }},
			"json":    {func(w io.Writer) error { return WriteSolutionJSON(w, p, want, plan) }, func(r io.Reader) (vrp.Solution, float64, error) { return ReadSolutionJSON(r, "f") }},
		} {
			var b bytes.Buffer
			if err := how.write(&b); err != nil {
				t.Fatal(err)
			}
			got, _, err := how.read(&b)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s: %v %s", name, err, diff)
			}
		}
	}
	var b bytes.Buffer
	if err := WriteXLSX(&b, p); err != nil {
		t.Fatal(err)
	}
	const none = "f: none of its sheets has a row per stop: the columns route, and customer or id"
	if _, _, err := ReadSolutionXLSX(&b, "f", p); err == nil || err.Error() != none {
		t.Errorf("customers taken for stops: %v", err)
	}
}

// TestSpreadsheetsKeepLongNumbers: a spreadsheet shows zeros behind the fifteenth digit.
func TestSpreadsheetsKeepLongNumbers(t *testing.T) {
	for cell, want := range map[string]bool{"999999999999999": true, "1000000000000000": false, "-999999999999999": true, "1234567890123456": false,
		"13.3761981234567": true, "007": false, "1e3": false, "+5": false, "-5": true, "": false, "Inf": false} {
		if got := isNumber(cell); got != want {
			t.Errorf("%s: number %v", cell, got)
		}
	}
}

// TestNamesOfSeveralLines: an address in a cell has line ends, which a name has blanks for.
func TestNamesOfSeveralLines(t *testing.T) {
	p, err := readCSV(strings.NewReader("id,name,x,y,demand\nd,,0,0,\na,\"Hauptstr. 1\r\n12345 Stadt\",1,1,1\n"), "f", 5)
	if err != nil || p.Names[1] != "Hauptstr. 1 12345 Stadt" {
		t.Errorf("%v: %q", err, p.Names)
	}
}

// edited is a spreadsheet of a problem in which a text of one part was replaced.
func edited(t *testing.T, part, from, to string) []byte {
	t.Helper()
	var b, out bytes.Buffer
	p, err := readTable("id,x,y,demand,ready,due\nd,0,0,,,\na,1,1,2,3,40\n", Options{Fleet: &Input{"v.csv", []byte("name,capacity\nvan,7\n")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteXLSX(&b, p); err != nil {
		t.Fatal(err)
	}
	in, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(&out)
	for _, f := range in.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == part {
			if !strings.Contains(string(text), from) {
				t.Fatalf("%s has no %s: %s", part, from, text)
			}
			text = []byte(strings.Replace(string(text), from, to, 1))
		}
		w, err := z.Create(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestFormulasWithoutValues: a program that writes formulas and computes none leaves no values.
// Such a cell was taken for an empty one, and a customer's window was gone.
func TestFormulasWithoutValues(t *testing.T) {
	const cell = "<v>40</v>"
	for to, want := range map[string]string{
		"<f>30+10</f><v>40</v>":      "",
		"<f>30+10</f>":               `f:customers:3: cell "F3" holds a formula whose value was not saved: open and save the file in a spreadsheet program`,
		"<f t=\"shared\" si=\"0\"/>": `f:customers:3: cell "F3" holds a formula whose value was not saved: open and save the file in a spreadsheet program`,
	} {
		p, err := ReadTable(bytes.NewReader(edited(t, "xl/worksheets/sheet1.xml", cell, to)), "f", Options{})
		switch {
		case want == "" && (err != nil || p.Windows[1][0].To != 40):
			t.Errorf("%s: %v", to, err)
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%s: %v, want %s", to, err, want)
		}
	}
}

// TestHiddenSheetsAreNamed: vehicles on a sheet that nobody sees are not read, and that is said.
func TestHiddenSheetsAreNamed(t *testing.T) {
	book := edited(t, "xl/workbook.xml", `name="vehicles"`, `name="vehicles" state="hidden"`)
	p, err := ReadTable(bytes.NewReader(book), "f", Options{Capacity: 5})
	if err != nil || !slices.Contains(p.Notes, `sheet "vehicles" is hidden and is not read`) {
		t.Errorf("%v: %v", err, p)
	}
}

// TestPointsAmongDecimalCommas: 1.000 beside 2,5 is a thousand to whoever writes commas. Read as 1
// it made loads a thousandth of what they are.
func TestPointsAmongDecimalCommas(t *testing.T) {
	const note = `column "demand": "1.000" is read with a decimal point, though others have decimal commas: write it without if it parts thousands`
	for text, want := range map[string]string{
		"id;x;y;demand\nd;0;0;\na;3,5;4;1.000\n":            note,
		"id;x;y;demand\nd;0;0;\na;3.5;4;1.000\n":            "", // no decimal commas
		"id;x;y;demand\nd;0;0;\na;3,5;4;1.000\nb;1;1;0.5\n": "", // the column has decimal points
		"id;x;y;demand\nd;0;0;\na;3.125;4;2,5\n":            "", // a coordinate
		"id,x,y,demand\nd,0,0,\na,3.5,4,1.000\n":            "",
		"id;x;y;demand\nd;0;0;\na;3,5;4;1.000\nb;1;1;2,5\n": `a.csv:3: column "demand" has decimal commas, and "1.000" with a point: write it without`,
		"id;x;y;demand\nd;0;0;\na;3,5;4;1.000,5\n":          `a.csv:3: demand "1.000,5" of "a" is not a number`,
	} {
		p, err := readTable(text, Options{Capacity: 2000})
		switch {
		case strings.HasPrefix(want, "a.csv:"):
			if err == nil || err.Error() != want {
				t.Errorf("%q: %v, want %s", text, err, want)
			}
		case err != nil || slices.Contains(p.Notes, note) != (want != ""):
			t.Errorf("%q: %v %v", text, err, p)
		}
	}
}

// TestPlacesThatWereNotFound: latitude 0, longitude 0 lies in the sea, and is where addresses go
// that nobody found.
func TestPlacesThatWereNotFound(t *testing.T) {
	for rows, want := range map[string]bool{"d,48,2,\na,0,0,1\n": true, "d,48,2,\na,0,0,1\nb,0,0,2\n": true, "d,48,2,\na,0,0,1\nb,5,1,2\n": false,
		"d,0,0,\na,0,0,1\n": false, "d,0,0,\na,0,1,1\n": false, "d,48,2,\na,48,0,1\n": false} {
		p, err := readTable("id,lat,lon,demand\n"+rows, Options{Capacity: 9})
		if err != nil || slices.ContainsFunc(p.Notes, func(s string) bool { return strings.Contains(s, "was the address found?") }) != want {
			t.Errorf("%q: %v %v", rows, err, p)
		}
	}
}

// TestOrdersAreIds: people call stops by the number of their order.
func TestOrdersAreIds(t *testing.T) {
	for _, head := range []string{"Order Number", "Order #", "Order no.", "order_id", "Order Nr."} {
		p, err := readTable(head+",x,y,demand\nd,0,0,\nA7,1,1,1\n", Options{Capacity: 9})
		if err != nil || p.ID(1) != "A7" {
			t.Errorf("%s: %v", head, err)
		}
	}
}

// TestNamesOfObjects: what an object calls its places must not command a terminal either, nor
// break a row of a table in two.
func TestNamesOfObjects(t *testing.T) {
	p, err := ReadJSON(strings.NewReader(`{"name":"a\u001b[2J","coords":[[0,0],[1,0]],"demands":[0,1],"ids":["d","x\u0007"],"names":["","Hof 1\nStadt"],"fleet":[{"name":"van\u202e","capacity":[2]}]}`), "f")
	if err != nil || p.Name != "a\ufffd[2J" || p.ID(1) != "x\ufffd" || p.Called(1) != "Hof 1 Stadt" || p.Fleet[0].Name != "van\ufffd" {
		t.Errorf("%v: %q %q %q %q", err, p.Name, p.IDs, p.Names, p.Fleet[0].Name)
	}
}

// TestSkillsByTheirWords: who asks for a skill that no vehicle has is told its word; 3.0 is 3, as
// programs write whole numbers of a column with empty cells.
func TestSkillsByTheirWords(t *testing.T) {
	const vans = "name,capacity,skills\nA,9,cold 3\n"
	p, err := readTable("id,x,y,demand,skills\nd,0,0,,\na,1,1,1,cold\nb,2,1,1,warm\nc,1,2,1,3.0\n", Options{Fleet: &Input{"v.csv", []byte(vans)}})
	if err != nil {
		t.Fatal(err)
	}
	list := p.UnservableOf([]int32{1, 2, 3})
	if len(list) != 1 || list[0].Customer != 2 || !strings.Contains(list[0].Reason, `needs skill "warm", which its vehicle does not have`) {
		t.Errorf("%+v", list)
	}
	p, err = readTable("id,x,y,demand,skills\nd,0,0,,\na,1,1,1,7\n", Options{Fleet: &Input{"v.csv", []byte("name,capacity,skills\nA,9,3.0\n")}})
	if list := p.UnservableOf([]int32{1}); err != nil || len(list) != 1 || !strings.Contains(list[0].Reason, "needs skill 7, which") || p.Fleet[0].Skills[0] != 3 {
		t.Errorf("%v %+v", err, list)
	}
}

// TestTimesWithoutAColon: 0800 is eight o'clock to whoever writes it, and was 800 minutes.
func TestTimesWithoutAColon(t *testing.T) {
	for cell, want := range map[string]string{"0800": `a.csv:3: due "0800" of "a" is a time of day or a number: write 08:00, or 800`,
		"0005": `a.csv:3: due "0005" of "a" is a time of day or a number: write 00:05, or 5`, "800": "", "08:00": "", "080": "", "00800": ""} {
		if _, err := readTable("id,x,y,demand,due\nd,0,0,,\na,1,1,1,"+cell+"\n", Options{Capacity: 9}); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %s", cell, err, want)
		}
	}
	const note = "times such as 1730 count minutes, and look like those of a day: write 17:30 where that is meant"
	for rows, want := range map[string]bool{"a,1,1,1,800,1200\nb,1,2,1,915,1730\n": true, "a,1,1,1,800,1200\nb,1,2,1,960,1730\n": false, "a,1,1,1,800,1200\nb,1,2,1,900,1440\n": false,
		"a,1,1,1,08:00,12:00\nb,1,2,1,915,1730\n": false, "a,1,1,1,,1730\n": false, "a,1,1,1,800,1200\nb,1,2,1,915,2430\n": false} {
		if p, err := readTable("id,x,y,demand,ready,due\nd,0,0,,,\n"+rows, Options{Capacity: 9}); err != nil || slices.Contains(p.Notes, note) != want {
			t.Errorf("%q: %v %v", rows, err, p)
		}
	}
	if _, err := readTable("id,x,y,demand,windows\nd,0,0,,\na,1,1,1,0800-1700\n", Options{Capacity: 9}); err == nil || !strings.Contains(err.Error(), "write 08:00, or 800") {
		t.Error(err)
	}
}
