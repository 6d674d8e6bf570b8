package files

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/limits/limitstest"
	"haul/internal/vrp"

	"github.com/google/go-cmp/cmp"
)

func TestReadCSVForms(t *testing.T) {
	want := &vrp.Problem{Capacity: 10, Metric: vrp.Exact, X: []float64{1, 3, 5}, Y: []float64{2, 4, 6}, Demand: []int32{0, 7, 8}, IDs: []string{"d", "a", "b"}}
	for name, text := range map[string]string{
		"plain":        "id,x,y,demand\nd,1,2,0\na,3,4,7\nb,5,6,8\n",
		"other order":  "demand,Y,X,ID,note\n,2,1,d,\n7,4,3,a,x\n8,6,5,b,\"y,z\"\n",
		"semicolons":   "# from a spreadsheet\n\nid;x;y;demand\nd;1,0;2;0\na;3;4.0;7\nb;5;6;8\n",
		"whole, so":    "id;x;y;demand\nd;1;2;0,0\na;3;4;7,0\nb;5;6;8\n",
		"in a header":  "id\tmood, first\tx\ty\tdemand\nd\t\t1\t2\t0\na\t\t3\t4\t7\nb\t\t5\t6\t8\n",
		"tabs":         "id\tnote\tx\ty\tdemand\nd\t\t1\t2\t0\na\t\t3\t4\t7\nb\tlast, and least\t5\t6\t8\n",
		"CR alone":     "id,x,y,demand\rd,1,2,0\ra,3,4,7\rb,5,6,8\r",
		"CRLF and BOM": "\ufeffid, x, y, demand\r\nd, 1, 2,\r\n# a comment\r\na, 3, 4, 7\r\nb, 5, 6, 8",
	} {
		if !IsTable([]byte(text)) {
			t.Errorf("%s: not told for a table", name)
		}
		got, err := ReadTable(strings.NewReader(text), "a.csv", Options{Capacity: 10, Ignore: []string{"mood, first"}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if name == "in a header" { // its column is named, and nothing else differs
			if diff := cmp.Diff([]string{`column "mood, first" is not read`}, got.Notes); diff != "" {
				t.Error(diff)
			}
			got.Notes = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	globe, err := readCSV(strings.NewReader("id,latitude,longitude,demand\nParis,48.8566,2.3522,\nLondon,51.5074,-0.1278,1\n"), "a.csv", 10)
	if err != nil {
		t.Fatal(err)
	}
	if d := globe.Dist(0, 1); math.Abs(d-343_560) > 100 || d != globe.Dist(1, 0) {
		t.Errorf("Paris to London: %g m", d)
	}
}

// TestFarCoordinates: millimetres of a map's grid, past 32 bits, are numbers as any other, and
// routes do not depend on the unit.
func TestFarCoordinates(t *testing.T) {
	near, err := readCSV(strings.NewReader("id,x,y,demand\nd,0.5,0.5,\na,1,1,1\nb,1,0,1\nc,0,0,1\n"), "a.csv", 2)
	if err != nil {
		t.Fatal(err)
	}
	far, err := readCSV(strings.NewReader("id,x,y,demand\nd,5e11,5e11,\na,1e12,1e12,1\nb,1e12,0,1\nc,0,0,1\n"), "a.csv", 2)
	if err != nil {
		t.Fatal(err)
	}
	costs, _, err := vrp.OptimalSolutions(t.Context(), []*vrp.Problem{near, far}, 1, nil)
	if err != nil || math.Abs(costs[1]/1e12-costs[0]) > 1e-9 {
		t.Errorf("%v, %v", costs, err)
	}
}

func TestReadCSVErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "a.csv:1: no header: expected id,x,y,demand or id,lat,lon,demand"},
		{"id,x,y\n", `a.csv:1: no column "demand": expected id,x,y,demand or id,lat,lon,demand`},
		{"id,lat,y,demand\n", `a.csv:1: no column "lon": expected id,x,y,demand or id,lat,lon,demand`},
		{"id,x,x,demand\n", `a.csv:1: column "x" is given twice`},
		{"id,x,y,demand\nd,1,2,0\n", "a.csv: rows below the header: 1, expected a depot and at least one customer"},
		{"id,x,y,demand\nd,1,2,3\n", "a.csv:2: the first row is the depot, and it has demand 3: expected 0"},
		{"id,x,y,demand\nd,1,2,\na,1,2,\n", `a.csv:3: demand "" of "a" is not a number`},
		{"id,x,y,demand\nd,1,2,\na,1,2,1.23456\n", `a.csv:3: demand "1.23456" of "a" has more than 4 decimals`},
		{"id,x,y,demand\nd,1,2,\na,1,2,-1\n", `a.csv:3: demand "-1" of "a" is negative`},
		{"id,x,y,demand\nd,1,2,\na,1,2,11\n", `a.csv:3: demand 11 of "a" is over the capacity 10`},
		{"id,x,y,demand\nd,1,2,\na,inf,2,1\n", `a.csv:3: x "inf" of "a" is not finite`},
		{"id,x,y,demand\nd,1,2,\na,1,\"2,5\",1\n", `a.csv:3: y "2,5" of "a" is not a number`},
		{"id,lat,lon,demand\nd,north,2,\n", `a.csv:2: lat "north" of "d" is not a number`},
		{"id,x,y,demand\nd,1,2,\na,2e12,2,1\n", `a.csv:3: x "2e12" of "a" is beyond 1e12: give coordinates in a larger unit`},
		{"id,x,y,demand\nd,1,2,\nd,1,2,1\n", `a.csv:3: id "d" is given twice`},
		{"id,lat,lon,demand\nd,91,2,\n", `a.csv:2: lat 91, lon 2 of "d" lie outside ±90, ±180`},
		{"id,x,y,demand\r\nd,1,2,\r\na,1,2,11\r\n", `a.csv:3: demand 11 of "a" is over the capacity 10`}, // a line for each
		{"id,x,y,demand\nd,1,2\n", "a.csv:2: not a row like the header: wrong number of fields"},
		{"id,x,y,demand\n\"", "a.csv:2: not a row like the header: extraneous or missing \" in quoted-field"},
	} {
		if _, err := readCSV(strings.NewReader(c.text), "a.csv", 10); err == nil || err.Error() != c.want {
			t.Errorf("%q:\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestWriteRoutesAsTableAndMap(t *testing.T) {
	p, err := readCSV(strings.NewReader("id,lat,lon,demand\ndepot,0,0,\na,1,2,3\nb,3,4,5\n"), "a.csv", 10)
	if err != nil {
		t.Fatal(err)
	}
	s := vrp.Solution{Routes: [][]int32{nil, {2, 1}}}
	var table, geo bytes.Buffer
	if err := WriteSolutionCSV(&table, p, s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("route,stop,customer,id,demand,lon,lat\n1,1,2,b,5,4,3\n1,2,1,a,3,2,1\n", table.String()); diff != "" {
		t.Error(diff)
	}
	for open, want := range map[bool]int{false: 4, true: 3} {
		p.Open = open
		geo.Reset()
		if err := WriteSolutionGeoJSON(&geo, p, s); err != nil {
			t.Fatal(err)
		}
		var v struct {
			Type     string
			Features []struct {
				Geometry struct {
					Type        string
					Coordinates json.RawMessage
				}
				Properties map[string]any
			}
		}
		var line [][2]float64
		if err := json.Unmarshal(geo.Bytes(), &v); err != nil || len(v.Features) != 2 || json.Unmarshal(v.Features[1].Geometry.Coordinates, &line) != nil {
			t.Fatalf("%s: %v", geo.String(), err)
		}
		if len(line) != want || line[1] != [2]float64{4, 3} || v.Features[1].Properties["load"] != 8.0 {
			t.Errorf("%s", geo.String())
		}
	}
	if err := WriteSolutionGeoJSON(&geo, &vrp.Problem{}, s); err == nil {
		t.Error("a map without coordinates")
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add([]byte("id,x,y,demand\nd,1,2,0\na,3,4,7\n"))
	f.Add([]byte("id,lat,lon,demand\nd,1,2,0\na,3,\"4\",7\n"))
	f.Add([]byte("id,x,y,demand\n\""))
	f.Add([]byte("id,x,y,demand,ready,due,windows,skills,shipment,pickup,group\nd,1,2,0,8:00,9:00,,,,,\na,3,4,7,,,1-2|3-4,1 2,s,3,g\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		limitstest.Reading(t, limitstest.Unpacked(data), func() {
			p, err := readCSV(bytes.NewReader(data), "a.csv", 10)
			if err != nil {
				if !strings.HasPrefix(err.Error(), "a.csv:") || strings.Contains(err.Error(), "\n") {
					t.Fatalf("not one line with its place: %q", err)
				}
				return
			}
			p.Speed = 1
			if err := p.Check(); err != nil {
				t.Fatal(err)
			}
		}, data)
	})
}

// TestTableRowsThatBeginWithHash: an order #1001 is no comment, and a column may be called #.
func TestTableRowsThatBeginWithHash(t *testing.T) {
	for name, c := range map[string]struct {
		text, note string
		ids        []string
	}{
		"orders":     {"id,x,y,demand\ndepot,0,0,0\n#1001,3,4,1\nb,6,8,1\n#1002,1,1,1\n", "2 lines that begin with # are read, the first is line 3: they have as many cells as the header", []string{"depot", "#1001", "b", "#1002"}},
		"one":        {"id;x;y;demand\ndepot;0;0;0\n#1;3;4;1\n", "line 3 begins with # and is read: it has as many cells as the header", []string{"depot", "#1"}},
		"comments":   {"\ufeff# made by \"me, on, a, day\n#x\nid,x,y,demand\n#\n# a, b, c, d\n#two,cells\n  \ndepot,0,0,0\n#five,cells,are,one,more\na,3,4,1\n", "", []string{"depot", "a"}},
		"header":     {"#,x,y,demand\n0,0,0,0\n1,3,4,1\n", "", []string{"0", "1"}},
		"joined":     {"\ufeff#id\tx\ty\tdemand\n0\t0\t0\t0\n1\t3\t4\t1\n", "", []string{"0", "1"}},
		"in a quote": {"id,name,x,y,demand\ndepot,,0,0,0\na,\"two\n#b,1,2,3,4\",3,4,1\n", "", []string{"depot", "a"}},
	} {
		p, err := readCSV(strings.NewReader(c.text), "a.csv", 10)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(p.IDs, c.ids) || strings.Join(p.Notes, "|") != c.note {
			t.Errorf("%s: ids %q, notes %q", name, p.IDs, p.Notes)
		}
	}
	if !IsTable([]byte("#,x,y,demand\n0,0,0,0\n")) || IsTable([]byte("# id,x,y,demand\nNAME : a\n")) || IsTable([]byte("NAME : a,x,y\nDIMENSION : 2\n")) {
		t.Error("a header that begins with # is a table's, a comment's words are not")
	}
}

// readCSV reads a table of customers.
func readCSV(r io.Reader, name string, capacity int32) (*vrp.Problem, error) {
	return ReadTable(r, name, Options{Capacity: capacity})
}
