package files

import (
	"archive/zip"
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"haul/internal/vrp"
)

// Every format that is written is read back as the same problem, and damaged files of every format
// are read as what they say or refused in one line.

// drawTable draws a problem that tables can say, with any parts.
func drawTable(t *rapid.T, one bool) *vrp.Problem {
	yes := func(what string) bool { return rapid.Bool().Draw(t, what) }
	small := func(what string) float64 { return float64(rapid.IntRange(0, 2000).Draw(t, what)) / 4 }
	depots, customers := 1, rapid.IntRange(2, 6).Draw(t, "customers")
	p := &vrp.Problem{Name: "f", Metric: vrp.Exact, Capacity: 40}
	if !one && yes("depots") {
		depots = rapid.IntRange(2, 3).Draw(t, "count")
		p.Depots = depots
	}
	n := depots + customers
	if yes("globe") {
		p.Metric, p.Speed = vrp.GreatCircle, 600
	}
	fraction := int32(1)
	if yes("tenths") {
		fraction = 10
	}
	for v := range n {
		p.X, p.Y = append(p.X, rapid.Float64Range(-180, 180).Draw(t, "x")), append(p.Y, rapid.Float64Range(-90, 90).Draw(t, "y"))
		p.IDs = append(p.IDs, fmt.Sprintf("%s%d", rapid.SampledFrom([]string{"a ", "p,q;", "0", "é\"", "depot"}).Draw(t, "id"), v))
		d := int32(0)
		if v >= depots {
			d = int32(rapid.IntRange(0, 9).Draw(t, "demand"))
		}
		p.Demand = append(p.Demand, d)
	}
	if fraction > 1 {
		p.Demand[depots] = 7 // tenths that are needed
		p.Fractions, p.Capacity = []int32{10}, 40*10
	}
	if yes("names") {
		for v := range n {
			p.Names = append(p.Names, fmt.Sprint("n", v))
		}
	}
	each := func(part string, list *[]float64, depot bool) {
		if !yes(part) {
			return
		}
		*list = make([]float64, n)
		for v := range n {
			if depot || v >= depots {
				(*list)[v] = small(part)
			}
		}
		(*list)[n-1] = 3
	}
	each("service", &p.Service, true)
	each("setup", &p.Setup, false)
	each("release", &p.Release, false)
	each("late", &p.Late, false)
	if yes("windows") {
		p.Windows = make([][]vrp.Window, n)
		for v := range n {
			if from := small("from"); v == n-1 || yes("window") {
				p.Windows[v] = []vrp.Window{{From: from, To: from + small("width")}}
				if yes("second") {
					end := p.Windows[v][0].To + 1
					p.Windows[v] = append(p.Windows[v], vrp.Window{From: end, To: end + 2})
				}
			}
		}
		if yes("clock") {
			p.Clock = 1
		}
	}
	if yes("prizes") {
		p.Optional, p.Prize = make([]bool, n), make([]float64, n)
		p.Optional[n-1], p.Prize[n-1] = true, small("prize")
	}
	if yes("skills") {
		p.Needs = make([][]int32, n)
		p.Needs[n-1] = []int32{1, 3}
	}
	if yes("priority") {
		p.Priority = make([]int, n)
		p.Priority[n-1] = 4
	}
	if yes("pickups") {
		p.Pickup = make([]int32, n)
		p.Pickup[n-1] = 5 * fraction
	}
	if customers > 3 && yes("group") {
		p.Groups = []vrp.Group{{Name: "g", Members: []int32{int32(depots), int32(depots + 1)}, Required: true}}
	}
	if one {
		return p
	}
	if yes("dimension") {
		p.Dimensions = []vrp.Dimension{{Name: "kg", Delivery: make([]int32, n)}}
		p.Dimensions[0].Delivery[n-1] = 2
		if p.Fractions != nil {
			p.Fractions = []int32{10, 1}
		}
	} else if customers > 4 && p.Pickup == nil && p.Prize == nil && yes("shipment") {
		p.Demand[depots+2], p.Demand[depots+3] = 0, 0
		p.Shipments = []vrp.Shipment{{Pickup: int32(depots + 2), Delivery: int32(depots + 3), Amount: []int32{3 * fraction}}}
	}
	if yes("matrix") {
		p.Metric, p.Speed = vrp.Explicit, 0
		if !yes("coordinates") {
			p.X, p.Y = nil, nil
		}
		for range n * n {
			p.Weights = append(p.Weights, small("distance"))
		}
		p.Profiles = []vrp.Profile{{Distance: p.Weights, Duration: slices.Clone(p.Weights)}}
	}
	if p.Dimensions != nil || yes("fleet") {
		p.Capacity = 0
		for i := range rapid.IntRange(1, 3).Draw(t, "types") {
			v := vrp.NewVehicleType(100 * fraction)
			if p.Dimensions != nil {
				v.Capacity = append(v.Capacity, 30)
			}
			v.Name, v.Count, v.Start, v.End = fmt.Sprint("v", i), 1+i, i%depots, []int{i % depots, vrp.None}[i%2]
			if yes("shift") {
				v.Shift, v.LatestStart = vrp.Window{From: 60, To: 900}, 100
			}
			if yes("limits") {
				v.MaxDuration, v.MaxDistance, v.MaxStops = small("duration"), small("far"), 7
			}
			if yes("costs") {
				v.FixedCost, v.DistanceCost, v.DurationCost = 3, 0.5, 0.25
			}
			if yes("more") {
				v.Skills = []int32{1, 3}
				if !strings.ContainsAny(p.IDs[0], "|;,") {
					v.Reloads, v.MaxReloads = []int{0}, 2
				}
				v.Breaks = []vrp.Break{{Windows: []vrp.Window{{From: 100, To: 200}}, Duration: 20}}
			}
			p.Fleet = append(p.Fleet, v)
		}
	} else {
		p.Vehicles, p.Open = rapid.IntRange(0, 3).Draw(t, "vehicles"), yes("open")
	}
	p.LIFO = p.Shipments != nil && yes("lifo")
	p.Objective = vrp.Objective(rapid.IntRange(0, 2).Draw(t, "objective"))
	return p
}

func readBack(t *rapid.T, write func(*bytes.Buffer) error, name string, o Options) *vrp.Problem {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	q, err := ReadProblem(&b, name, o)
	if err != nil {
		if !strings.HasPrefix(text, "PK") {
			t.Log(text)
		}
		t.Fatal(err)
	}
	return q
}

func TestTablesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawTable(t, false)
		if p.Check() != nil {
			t.Skip("no problem")
		}
		q := readBack(t, func(b *bytes.Buffer) error { return WriteXLSX(b, p) }, "f.xlsx", Options{})
		if diff := cmp.Diff(p, q); diff != "" {
			t.Fatal(diff)
		}
		q = readBack(t, func(b *bytes.Buffer) error { return WriteJSON(b, p) }, "f.json", Options{})
		forgetNeutral(p)
		if diff := cmp.Diff(p, q, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		p := drawTable(t, true)
		o := Options{Capacity: 40}
		if p.Metric == vrp.GreatCircle {
			o.Speed = 36
		}
		q := readBack(t, func(b *bytes.Buffer) error { return WriteTable(b, p) }, "f.csv", o)
		if diff := cmp.Diff(p, q); diff != "" {
			t.Fatal(diff)
		}
	})
}

// drawDialect draws a problem that PyVRP's dialect of VRPLIB can say.
func drawDialect(t *rapid.T) *vrp.Problem {
	yes := func(what string) bool { return rapid.Bool().Draw(t, what) }
	whole := func(what string) float64 { return float64(rapid.IntRange(0, 900).Draw(t, what)) }
	depots, customers := 1, 2*rapid.IntRange(1, 4).Draw(t, "pairs")
	p := &vrp.Problem{Name: "f", Comment: "c", Capacity: 40, Metric: rapid.SampledFrom([]vrp.Metric{vrp.Rounded, vrp.Ceil, vrp.Trunc, vrp.Geo, vrp.Att}).Draw(t, "metric")}
	shipped := yes("shipments")
	if !shipped && yes("depots") {
		depots = 2
		p.Depots = 2
	}
	n := depots + customers
	for v := range n {
		d := int32(0)
		if v >= depots && !shipped {
			d = int32(rapid.IntRange(0, 9).Draw(t, "demand"))
		}
		p.X, p.Y, p.Demand = append(p.X, whole("x")), append(p.Y, whole("y")), append(p.Demand, d)
	}
	floats := func(list *[]float64, what string) {
		*list = make([]float64, n)
		for v := depots; v < n; v++ {
			(*list)[v] = whole(what)
		}
	}
	if shipped || yes("windows") {
		for range n {
			from := whole("from")
			p.Windows = append(p.Windows, []vrp.Window{{From: from, To: from + whole("width")}})
		}
	}
	if shipped || yes("service") {
		floats(&p.Service, "service")
	}
	if yes("release") {
		floats(&p.Release, "release")
	}
	if shipped {
		for v := 1; v < n; v += 2 {
			p.Shipments = append(p.Shipments, vrp.Shipment{Pickup: int32(v), Delivery: int32(v + 1), Amount: []int32{int32(rapid.IntRange(0, 20).Draw(t, "amount"))}})
		}
	} else {
		if yes("pickups") {
			p.Pickup = make([]int32, n)
			p.Pickup[n-1] = 7
			if yes("linehauls first") {
				p.Backhauls = vrp.LinehaulFirst
			}
		}
		if yes("prizes") {
			p.Prize, p.Optional = make([]float64, n), make([]bool, n)
			p.Prize[n-1], p.Optional[n-1] = 5, true
		} else if customers > 2 && yes("groups") {
			p.Groups = []vrp.Group{{Members: []int32{int32(depots), int32(depots + 1)}, Required: true}}
		}
	}
	if depots > 1 || yes("fleet") {
		p.Capacity = 0
		next, reload, limit := int32(0), yes("reloads"), yes("limits")
		for i := range rapid.IntRange(1, 3).Draw(t, "types") {
			v := vrp.NewVehicleType(int32(30 + i))
			v.Count, v.Start, v.End = 1+i, i%depots, i%depots
			for range v.Count {
				v.Numbers = append(v.Numbers, next)
				next++
			}
			if limit {
				v.MaxDuration, v.MaxDistance = 500+whole("duration"), 500+whole("distance")
			}
			if yes("costs") {
				v.FixedCost, v.DistanceCost = whole("fixed"), 1+whole("unit")
			}
			if reload && (i == 0 || yes("reload")) {
				v.Reloads, v.MaxReloads = []int{0}, 1+i
			}
			if yes("allowed") {
				v.Allowed = []int32{int32(n - 1)}
			}
			p.Fleet = append(p.Fleet, v)
		}
	} else {
		p.Vehicles = rapid.IntRange(0, 9).Draw(t, "vehicles")
		p.Open = !shipped && p.Pickup == nil && yes("open")
	}
	return p
}

func TestDialectReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawDialect(t)
		if err := p.Check(); err != nil {
			t.Skip("no problem")
		}
		q := readBack(t, func(b *bytes.Buffer) error { return WriteProblem(b, p) }, "f.vrp", Options{})
		if diff := cmp.Diff(p, q); diff != "" {
			t.Fatal(diff)
		}
	})
	open := vrp.NewVehicleType(5)
	open.End, open.Count = vrp.None, 1
	for what, p := range map[string]*vrp.Problem{
		"skills":  {Capacity: 5, Demand: []int32{0, 1}, X: make([]float64, 2), Y: make([]float64, 2), Needs: [][]int32{nil, {1}}},
		"windows": {Capacity: 5, Demand: []int32{0, 1}, X: make([]float64, 2), Y: make([]float64, 2), Windows: [][]vrp.Window{nil, {{From: 1, To: 2}}}},
		"vehicle": {Fleet: []vrp.VehicleType{open}, Demand: []int32{0, 1}, X: make([]float64, 2), Y: make([]float64, 2)},
	} {
		if err := WriteProblem(&bytes.Buffer{}, p); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

const geojsonText = `{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]},"properties":{"id":"a","demand":2}},{"type":"Feature","geometry":{"type":"Point","coordinates":[3,4]},"properties":{"id":"d","kind":"depot"}}]}`

const vroomText = `{"vehicles":[{"id":1,"start":[1,2],"end":[1,2],"capacity":[4],"time_window":[0,9000],"breaks":[{"id":1,"time_windows":[[10,20]],"service":5}]}],"jobs":[{"id":1,"location":[1,2.01],"delivery":[2],"time_windows":[[0,5000]],"skills":[]}],"shipments":[{"amount":[1],"pickup":{"id":3,"location":[1,2]},"delivery":{"id":3,"location":[1,2.1]}}]}`

// TestDamagedFiles: bytes of every format changed, dropped and doubled. A file is read as a problem
// that passes Check, or refused in one line that begins with its name.
func TestDamagedFiles(t *testing.T) {
	rounds := 300 // HAUL_DAMAGE=10000 of each
	if n, err := parseInt(os.Getenv("HAUL_DAMAGE")); err == nil {
		rounds = n
	}
	table := drawn()
	var book, own bytes.Buffer
	if err := WriteXLSX(&book, table); err != nil {
		t.Fatal(err)
	}
	if err := WriteJSON(&own, table); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"xlsx": book.String(), "parts of xlsx": book.String(), "json": own.String(),
		"geojson": geojsonText, "vroom": vroomText}
	for i, text := range samples() {
		all[fmt.Sprint("sample ", i)] = text
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text, read, seed := all[name], 0, fnv.New64()
		seed.Write([]byte(name))
		r := rand.New(rand.NewPCG(7, seed.Sum64())) // of its own: a format that is added changes no other's damage
		for range rounds {
			data := damaged(r, []byte(text))
			if name == "parts of xlsx" {
				data = damagedPart(t, r, []byte(text))
			}
			p, err := ReadProblem(bytes.NewReader(data), "f", Options{Speed: 30, Capacity: 10})
			switch {
			case err != nil && (!strings.HasPrefix(err.Error(), "f") || strings.Contains(err.Error(), "\n")):
				t.Fatalf("%s: not one line with its place: %q", name, err)
			case err == nil && p.Check() != nil:
				t.Fatalf("%s: what was read does not pass: %v", name, p.Check())
			case err == nil:
				read++
			}
		}
		if strings.HasPrefix(name, "sample") && read == 0 {
			t.Errorf("%s: every damaged file is refused", name)
		}
		t.Logf("%s: %d of %d damaged files are still problems, the others are refused", name, read, rounds)
	}
}

// damaged changes, drops and doubles bytes.
func damaged(r *rand.Rand, data []byte) []byte {
	marks := []string{"-1", "0", "1e99", "null", "\"", "{", "[", ",", ";", "\n", "\x00", "99999999999", "1.5", ":", "NaN", "é"}
	for range 1 + r.IntN(4) {
		at := r.IntN(len(data))
		switch r.IntN(5) {
		case 0:
			data[at] = byte(r.IntN(256))
		case 1:
			data = slices.Delete(data, at, min(len(data), at+1+r.IntN(8)))
		case 2:
			data = slices.Insert(data, at, []byte(marks[r.IntN(len(marks))])...)
		case 3:
			data = slices.Insert(data, at, data[at:min(len(data), at+r.IntN(30))]...)
		default:
			data = slices.Concat(data[:at], []byte(marks[r.IntN(len(marks))]), data[min(len(data), at+2):])
		}
		if len(data) == 0 {
			data = []byte{'x'}
		}
	}
	return data
}

// damagedPart does the same to one part of an archive, whose sums agree with it again.
func damagedPart(t *testing.T, r *rand.Rand, data []byte) []byte {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, bad := zip.NewWriter(&out), r.IntN(len(z.File))
	for i, f := range z.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if i == bad && len(text) > 0 {
			text = damaged(r, text)
		}
		to, err := w.Create(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func drawn() *vrp.Problem {
	van := vrp.NewVehicleType(20)
	van.Name, van.Count, van.Shift = "van", 2, vrp.Window{From: 10, To: 900}
	return &vrp.Problem{Name: "f", Demand: []int32{0, 2, 3}, X: []float64{0, 1, 2}, Y: []float64{0, 3, 4}, IDs: []string{"d", "a", "b"}, Fleet: []vrp.VehicleType{van},
		Windows: [][]vrp.Window{nil, {{From: 10, To: 200}}, nil}, Service: []float64{0, 5, math.Pi}}
}
