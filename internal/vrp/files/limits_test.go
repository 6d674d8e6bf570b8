package files

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"haul/internal/limits"
	"haul/internal/limits/limitstest"
	"haul/internal/vrp"
)

// workbook is a spreadsheet whose sheets all name one part, which is sheet.
func workbook(t testing.TB, sheets int, sheet func(w io.Writer)) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	part := func(name string, write func(w io.Writer)) {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		write(w)
	}
	part("xl/workbook.xml", func(w io.Writer) {
		fmt.Fprint(w, `<workbook xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>`)
		for i := range sheets {
			fmt.Fprintf(w, `<sheet name="s%d" r:id="r1"/>`, i)
		}
		fmt.Fprint(w, `</sheets></workbook>`)
	})
	part("xl/_rels/workbook.xml.rels", func(w io.Writer) {
		fmt.Fprint(w, `<Relationships><Relationship Id="r1" Target="worksheets/sheet1.xml"/></Relationships>`)
	})
	part("xl/worksheets/sheet1.xml", sheet)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// rowsOf writes a header of some columns and rows with one cell in the first column.
func rowsOf(rows int, last string) func(w io.Writer) {
	return func(w io.Writer) {
		fmt.Fprintf(w, `<worksheet><sheetData><row><c r="A1" t="str"><v>id</v></c><c r="%s1" t="str"><v>x</v></c></row>`, last)
		line := []byte(`<row><c r="A2"><v>1</v></c></row>`)
		for range rows {
			w.Write(line)
		}
		fmt.Fprint(w, `</sheetData></worksheet>`)
	}
}

// TestSpreadsheetsAreCounted: a spreadsheet of 127 kB whose 500 sheets name one part of two million
// rows, and one of 31 kB whose header ends in the last column, are refused before they cost more
// than the limits allow. The counts are those of work: rows, cells and unpacked bytes.
func TestSpreadsheetsAreCounted(t *testing.T) {
	for _, c := range []struct {
		what   string
		data   []byte
		limit  limits.Name
		unpack int64
	}{
		{"500 sheets", workbook(t, 500, rowsOf(2_000_000, "B")), limits.Rows, 8 << 20},
		{"65 empty sheets", workbook(t, 65, func(w io.Writer) { io.WriteString(w, "<worksheet/>") }), limits.Sheets, 1 << 20},
		{"a wide header", workbook(t, 2, rowsOf(100_000, "XFD")), limits.Cells, 64 << 20},
		{"an unending text", workbook(t, 1, func(w io.Writer) {
			io.WriteString(w, `<worksheet><sheetData><row><c t="inlineStr"><is>`)
			for range 1 << 17 {
				io.WriteString(w, `<r><t>a</t></r>`)
			}
		}), limits.CellText, 2 << 20},
	} {
		if len(c.data) > 256<<10 {
			t.Errorf("%s: the file has %d bytes", c.what, len(c.data))
		}
		o := Options{Limits: limits.ForService()}
		count := newTally(o)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := readBook(c.data, "f.xlsx", count)
		runtime.ReadMemStats(&after)
		var over *limits.Error
		if !errors.As(err, &over) || over.Limit != c.limit || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "haul serve --limit "+limits.Table[c.limit].Key+"=N") {
			t.Errorf("%s: %v", c.what, err)
		}
		if count.unpacked > c.unpack || count.rows > o.Limits.Most(limits.Rows)+1 || count.cells > o.Limits.Most(limits.Cells)+1<<14 {
			t.Errorf("%s: %d rows, %d cells and %d bytes were read", c.what, count.rows, count.cells, count.unpacked)
		}
		// Cells are strings of 16 bytes, in slices that grow by a quarter; XML takes some for each
		// token.
		if took := after.HeapAlloc - min(after.HeapAlloc, before.HeapAlloc); took > 200<<20 {
			t.Errorf("%s: %d MB are held", c.what, took>>20)
		}
	}
}

// TestTablesListen: the reading of tables ends with its context.
func TestTablesListen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, data := range map[string][]byte{
		"f.xlsx": workbook(t, 3, rowsOf(90_000, "B")),
		"f.csv":  append([]byte("id,x,y,demand\n"), bytes.Repeat([]byte("1,2,3,4\n"), 90_000)...),
	} {
		count := newTally(Options{Context: ctx})
		if _, err := readBook(data, name, count); !errors.Is(err, context.Canceled) || count.rows > 2*listenEach {
			t.Errorf("%s: %v after %d rows", name, err, count.rows)
		}
	}
}

// TestTableOfLimits walks the table: as much as a limit allows is taken, one more and a thousand
// times as much is refused in one line that names the limit and its flag. Inputs are streams.
func TestTableOfLimits(t *testing.T) {
	base := func() *vrp.Problem {
		return &vrp.Problem{Capacity: 9, Demand: []int32{0, 1}, X: []float64{0, 1}, Y: []float64{0, 1}}
	}
	problem := func(edit func(p *vrp.Problem, n int)) func(l *limits.Set, n int) error {
		return func(l *limits.Set, n int) error {
			p := base()
			edit(p, n)
			return p.Within(l)
		}
	}
	kind := func(edit func(k *vrp.VehicleType, n int)) func(l *limits.Set, n int) error {
		return problem(func(p *vrp.Problem, n int) { p.Fleet = make([]vrp.VehicleType, 1); edit(&p.Fleet[0], n) })
	}
	book := func(sheets func(n int) int, sheet func(w io.Writer, n int)) func(l *limits.Set, n int) error {
		return func(l *limits.Set, n int) error {
			_, err := readBook(workbook(t, sheets(n), func(w io.Writer) { sheet(w, n) }), "f.xlsx", newTally(Options{Limits: l}))
			return err
		}
	}
	one := func(int) int { return 1 }
	const most = 16 // every limit that is walked is lowered to it
	elsewhere := map[limits.Name]string{
		limits.File: "TestFileIsLimited", limits.Depth: "TestDepth", limits.Routes: "serve.TestStartIsLimited", limits.Tables: "sqlite.TestTablesAreLimited", limits.Fields: "sqlite.TestTablesAreLimited",
		limits.Tensors: "safetensors.TestTensorsAreLimited", limits.Events: "trace.TestEventsAreLimited",
	}
	walks := map[limits.Name]func(l *limits.Set, n int) error{
		// two sheets of one part, which is unpacked for each
		limits.Unpacked: book(func(int) int { return 2 }, func(w io.Writer, n int) { w.Write([]byte("<a/>")); w.Write(bytes.Repeat([]byte(" "), n/2)) }),
		limits.Sheets:   book(func(n int) int { return n }, func(w io.Writer, n int) { rowsOf(0, "B")(w) }),
		limits.Rows:     book(one, func(w io.Writer, n int) { rowsOf(n-1, "B")(w) }),
		limits.Cells:    book(one, func(w io.Writer, n int) { fmt.Fprintf(w, "<s><row>%s</row></s>", strings.Repeat("<c><v>1</v></c>", n)) }),
		limits.CellText: book(one, func(w io.Writer, n int) {
			fmt.Fprintf(w, "<s><row><c t=\"str\"><v>%s</v></c></row></s>", strings.Repeat("a", n))
		}),
		limits.Places:     problem(func(p *vrp.Problem, n int) { p.Demand = make([]int32, n) }),
		limits.Depots:     problem(func(p *vrp.Problem, n int) { p.Depots = n }),
		limits.Matrix:     problem(func(p *vrp.Problem, n int) { p.Weights = make([]float64, n) }),
		limits.Profiles:   problem(func(p *vrp.Problem, n int) { p.Profiles = make([]vrp.Profile, n) }),
		limits.Dimensions: problem(func(p *vrp.Problem, n int) { p.Dimensions = make([]vrp.Dimension, n) }),
		limits.Types:      problem(func(p *vrp.Problem, n int) { p.Fleet = make([]vrp.VehicleType, n) }),
		limits.Windows:    problem(func(p *vrp.Problem, n int) { p.Windows = [][]vrp.Window{make([]vrp.Window, n)} }),
		limits.AllWindows: problem(func(p *vrp.Problem, n int) {
			for range n / 2 {
				p.Windows = append(p.Windows, make([]vrp.Window, 2))
			}
			p.Windows = append(p.Windows, make([]vrp.Window, 2*(n%2)))
		}),
		limits.Groups:    problem(func(p *vrp.Problem, n int) { p.Groups = make([]vrp.Group, n) }),
		limits.Shipments: problem(func(p *vrp.Problem, n int) { p.Shipments = make([]vrp.Shipment, n) }),
		limits.Skills:    problem(func(p *vrp.Problem, n int) { p.Needs = [][]int32{make([]int32, n)} }),
		limits.AllSkills: problem(func(p *vrp.Problem, n int) {
			for range n {
				p.Needs = append(p.Needs, make([]int32, 1))
			}
		}),
		limits.Breaks:  kind(func(k *vrp.VehicleType, n int) { k.Breaks = make([]vrp.Break, n) }),
		limits.Reloads: kind(func(k *vrp.VehicleType, n int) { k.Reloads = make([]int, n) }),
		limits.Numbers: kind(func(k *vrp.VehicleType, n int) { k.Numbers = make([]int32, n) }),
		limits.Allowed: kind(func(k *vrp.VehicleType, n int) { k.Allowed = make([]int32, n) }),
		limits.Styles: func(l *limits.Set, n int) error {
			x := &xlsx{name: "f", tally: newTally(Options{Limits: l})}
			_, err := io.Copy(io.Discard, x.tally.unpack(strings.NewReader(strings.Repeat(" ", n)), limits.Styles))
			return err
		},
	}
	for i, row := range limits.Table {
		name := limits.Name(i)
		if row.Key == "" || row.Text == "" || row.Command < row.Service || row.Service < 1 {
			t.Errorf("limit %d is %+v", i, row)
		}
		walk := walks[name]
		if walk == nil {
			if elsewhere[name] == "" {
				t.Errorf("no test walks the limit %s", row.Key)
			}
			continue
		}
		low := most
		if name == limits.Unpacked { // of which the description of the book takes some
			low = 1 << 12
		}
		for _, service := range []bool{false, true} {
			l := limits.ForCommand()
			flag := "--set " + row.Key + "=N"
			if service {
				l, flag = limits.ForService(), "haul serve --limit "+row.Key+"=N"
			}
			if err := l.Raise([]string{fmt.Sprintf("%s=%d", row.Key, low)}); err != nil {
				t.Fatal(err)
			}
			at := low
			if name == limits.Unpacked {
				at = low - 600
			}
			if err := walk(l, at); err != nil {
				var over *limits.Error
				if errors.As(err, &over) {
					t.Errorf("%s: at the limit: %v", row.Key, err)
				}
			}
			for _, n := range []int{low + 1, 1000 * low} {
				err := walk(l, n)
				var over *limits.Error
				if !errors.As(err, &over) || over.Limit != name || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), flag) {
					t.Errorf("%s: %d: %v", row.Key, n, err)
				}
			}
		}
	}
}

// TestDepth: brackets nest as deep as the table says, and no deeper.
func TestDepth(t *testing.T) {
	if most := limits.Table[limits.Depth]; most.Command != MaxDepth || most.Service != MaxDepth {
		t.Errorf("%+v, and MaxDepth is %d", most, MaxDepth)
	}
	for _, deep := range []int{MaxDepth, MaxDepth + 1, 1000 * MaxDepth} {
		if got, _ := scan([]byte(strings.Repeat("[", deep))); got != (deep > MaxDepth) {
			t.Errorf("%d deep: %v", deep, got)
		}
	}
}

// spaces is a stream of so many bytes, counted.
type spaces struct{ left, read int64 }

func (e *spaces) Read(b []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), e.left))
	for i := range b[:n] {
		b[i] = ' '
	}
	if e.read == 0 {
		b[0] = '{'
	}
	e.left, e.read = e.left-int64(n), e.read+int64(n)
	return n, nil
}

// TestFileIsLimited: a file over the limit is not read to its end.
func TestFileIsLimited(t *testing.T) {
	l := limits.ForCommand()
	if err := l.Raise([]string{"file=65536"}); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{65536, 65537, 65536 * 1000} {
		in := &spaces{left: size}
		_, err := ReadProblem(in, "f.json", Options{Limits: l})
		var over *limits.Error
		if errors.As(err, &over) != (size > 65536) || in.read > 65536+2*sniffed {
			t.Errorf("%d bytes: %v, %d read", size, err, in.read)
		}
	}
}

// TestKeysAreExact: a key is given once, and spelled as it is documented.
func TestKeysAreExact(t *testing.T) {
	const good = `{"coords":[[0,0],[1,1]],"demands":[0,1],"capacity":3,"fleet":null}`
	for _, c := range []struct{ text, want string }{
		{`{"coords":[[0,0],[1,1]],"demands":[0,1],"capacity":3,"capacity":30}`, `"capacity" is given twice`},
		{`{"coords":[[0,0],[1,1]],"demands":[0,1],"Capacity":3}`, `unknown key "Capacity": is "capacity" meant?`},
		{`{"coords":[[0,0],[1,1]],"demands":[0,1],"capacity":3,"c\u0061pacity":4}`, `"capacity" is given twice`},
		{`{"coords":[[0,0],[1,1]],"demands":[0,1],"fleet":[{"count":1,"capacity":[3],"Count":2}]}`, `unknown key "fleet[0].Count": is "count" meant?`},
		{`{"coords":[[0,0],[1,1]],"demands":[0,1],"fleet":[{"count":1,"capacity":[3]},{"count":1,"count":2}]}`, `"count" is given twice`},
		{`{"coords":[[0,0],[1,1]],"demands":[0,1],"capacity":3}`, ""},
	} {
		_, err := ReadJSON(strings.NewReader(c.text), "f")
		if (err == nil) != (c.want == "") || err != nil && !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
	var twice struct {
		Settings map[string]string `json:"settings"`
	}
	if err := Decode([]byte(`{"settings":{"Seed":"1","seed":"2"}}`), &twice); err != nil {
		t.Errorf("keys of a map: %v", err)
	}
	if err := Decode([]byte(`{"settings":{"seed":"1","seed":"2"}}`), &twice); err == nil {
		t.Error("a key of a map is given twice")
	}
	if !json.Valid([]byte(good)) {
		t.Error(good)
	}
}

// FuzzExactKeys: keys of whatever a decoder takes are passed to the end of the text.
func FuzzExactKeys(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":"\""}],"c":{}}`, `{"a":"}"}`, `[]`, `{"windows":[[[1,2]]],"fleet":[{"breaks":[{}]}]}`, "{\"a\xff\":1}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		limitstest.Reading(t, limitstest.Unpacked(text), func() {
			if deep, _ := scan(text); deep || len(text) > 1<<16 {
				return
			}
			var d struct {
				A, Windows any
				Fleet      []struct {
					Breaks []struct{ Duration float64 }
				} `json:"fleet"`
				Capacity int `json:"capacity"`
			}
			if Decode(text, &d) != nil {
				return
			}
			again, err := json.Marshal(&d)
			if err != nil {
				t.Fatal(err)
			}
			if err := Decode(again, &d); err != nil {
				t.Errorf("%s: %v", again, err)
			}
		}, text)
	})
}

// TestTheTighterDurationHolds: where a file limits the duration of all routes and of a vehicle's,
// the smaller of the two holds.
func TestTheTighterDurationHolds(t *testing.T) {
	const text = "NAME: a\nTYPE: CVRP\nDIMENSION: 2\nVEHICLES: 2\nCAPACITY: 5\nDISTANCE: 50\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 3 4\n" +
		"DEMAND_SECTION\n1 0\n2 1\nVEHICLES_MAX_DURATION_SECTION\n1 80\n2 40\nDEPOT_SECTION\n1\n-1\nEOF\n"
	p, err := ReadProblem(strings.NewReader(text), "a.vrp", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Fleet) != 2 || p.Fleet[0].MaxDuration != 50 || p.Fleet[1].MaxDuration != 40 {
		t.Errorf("%+v", p.Fleet)
	}
}

// TestReadersAreLinear: what would take work beyond its size in proportion is refused before that
// work: rows as wide as the properties of all points, vehicles of which each is a type of its own,
// matrices of each kind of vehicle, dimensions of load.
func TestReadersAreLinear(t *testing.T) {
	const n = 20_000
	var points, vehicles, profiles []string
	for i := range n {
		points = append(points, fmt.Sprintf(`{"type":"Feature","geometry":{"type":"Point","coordinates":[%d,1]},"properties":{"p%d":1}}`, i%90, i))
		vehicles = append(vehicles, fmt.Sprintf(`{"id":%d,"start":[0,0],"capacity":[%d]}`, i, i))
		profiles = append(profiles, fmt.Sprintf(`{"id":%d,"start":[0,0],"speed_factor":%g}`, i, 1+float64(i)/n))
	}
	vroom := func(vehicles []string) string {
		return `{"vehicles":[` + strings.Join(vehicles, ",") + `],"jobs":[{"id":1,"location":[1,1]}]}`
	}
	dims := "id,x,y"
	for i := range 1000 {
		dims += fmt.Sprintf(",demand_d%d", i)
	}
	for _, c := range []struct {
		name, text string
		limit      limits.Name
	}{
		{"f.geojson", `{"type":"FeatureCollection","features":[` + strings.Join(points, ",") + `]}`, limits.Cells},
		{"f.json", vroom(vehicles), limits.Types},
		{"f.json", vroom(profiles), limits.Profiles},
		{"f.csv", dims + "\n1,2,3" + strings.Repeat(",1", 1000) + "\n", limits.Dimensions},
	} {
		limitstest.Reading(t, len(c.text), func() {
			_, err := ReadProblem(strings.NewReader(c.text), c.name, Options{Capacity: 10, Limits: limits.ForService()})
			var over *limits.Error
			if !errors.As(err, &over) || over.Limit != c.limit || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
}
