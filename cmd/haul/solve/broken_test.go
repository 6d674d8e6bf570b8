package solve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
)

// Files of every format that haul solve reads, broken at random, through the whole command: each is
// refused in one line, or solved so that the validator agrees and nobody is left out in silence.

// brokenPlain is a problem that every format with a writer can say, a fleet of several depots for
// Cordeau's apart.
func brokenPlain(format string) *vrp.Problem {
	p := &vrp.Problem{Name: "f", Capacity: 20, Vehicles: 3, Metric: vrp.Thousandths,
		Demand: []int32{0, 5, 7, 3, 9, 4, 6}, X: []float64{40, 45, 22, 60, 38, 51, 47}, Y: []float64{50, 68, 31, 44, 70, 12, 33},
		Service: []float64{0, 9, 9, 4, 2, 9, 9}}
	for v := range p.Demand {
		p.Windows = append(p.Windows, []vrp.Window{{From: float64(7 * v), To: float64(200 + 9*v)}})
	}
	p.Windows[0] = []vrp.Window{{From: 0, To: 400}}
	switch format {
	case "lilim":
		p.Demand = make([]int32, 7)
		for v := int32(1); v < 7; v += 2 {
			p.Shipments = append(p.Shipments, vrp.Shipment{Pickup: v, Delivery: v + 1, Amount: []int32{6 + v}})
		}
	case "cordeau":
		p.Depots, p.Capacity, p.Vehicles = 2, 0, 0
		p.Demand[1], p.Service[1], p.Windows[1] = 0, 0, []vrp.Window{{From: 0, To: 400}}
		for d := range 2 {
			v := vrp.NewVehicleType(20)
			v.Count, v.Start, v.End, v.MaxDuration = 2, d, d, 300
			v.Numbers = []int32{int32(2 * d), int32(2*d + 1)}
			p.Fleet = append(p.Fleet, v)
		}
	case "vrplib", "table":
		p.Prize, p.Optional = make([]float64, 7), make([]bool, 7)
		p.Prize[6], p.Optional[6] = 30, true
		p.Pickup = []int32{0, 0, 0, 2, 0, 0, 0}
		if format == "table" {
			p.Vehicles = 0 // which one table does not say
		}
	case "json", "xlsx":
		v := vrp.NewVehicleType(20)
		v.Name, v.Count, v.Shift, v.Skills, v.MaxStops = "van", 2, vrp.Window{From: 5, To: 390}, []int32{1}, 5
		v.Breaks = []vrp.Break{{Windows: []vrp.Window{{From: 30, To: 90}}, Duration: 10}}
		p.Fleet, p.Capacity, p.Vehicles = []vrp.VehicleType{v}, 0, 0
		p.Needs = make([][]int32, 7)
		p.Needs[2] = []int32{1}
		p.IDs = []string{"d", "a", "b", "c", "e", "f", "g"}
		p.Groups = []vrp.Group{{Name: "g", Members: []int32{3, 4}, Required: true}}
	}
	if format != "solomon" && format != "lilim" && format != "cordeau" {
		p.Metric = vrp.Exact
	}
	if format == "vrplib" {
		p.Metric = vrp.Rounded
	}
	return p
}

// brokenSamples is a whole file of each format, by its name.
func brokenSamples(t *testing.T) map[string][]byte {
	out := map[string][]byte{
		"geojson": []byte(`{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Point","coordinates":[8,50]},"properties":{"id":"d","kind":"depot"}},
{"type":"Feature","geometry":{"type":"Point","coordinates":[8.1,50.1]},"properties":{"id":"a","demand":2,"ready":600,"due":9000}},
{"type":"Feature","geometry":{"type":"Point","coordinates":[8.2,50]},"properties":{"id":"b","demand":7,"service":60}},
{"type":"Feature","geometry":{"type":"Point","coordinates":[7.9,49.9]},"properties":{"id":"c","demand":9}}]}`),
		"vroom": []byte(`{"vehicles":[{"id":1,"start_index":0,"end_index":0,"capacity":[4],"skills":[1],"time_window":[0,9000],"max_tasks":4,"breaks":[{"id":1,"time_windows":[[10,200]],"service":5}]},
{"id":2,"start_index":0,"capacity":[3]}],"jobs":[{"id":1,"location_index":1,"delivery":[2],"service":30,"time_windows":[[0,5000]],"skills":[1]},{"id":2,"location_index":2,"pickup":[1],"priority":3},
{"id":4,"location_index":1,"setup":7}],"shipments":[{"amount":[1],"pickup":{"id":3,"location_index":0},"delivery":{"id":3,"location_index":2}}],
"matrices":{"car":{"durations":[[0,10,20],[11,0,15],[20,15,0]],"distances":[[0,100,200],[100,0,150],[200,150,0]]}}}`),
	}
	for _, f := range files.Formats {
		if f.Write != nil {
			var b bytes.Buffer
			if err := f.Write(&b, brokenPlain(f.Name)); err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
			out[f.Name] = b.Bytes()
		}
		if out[f.Name] == nil {
			t.Fatalf("%s: a format without a sample", f.Name)
		}
	}
	return out
}

// breakFile changes, drops and doubles words, lines and bytes.
func breakFile(r *rand.Rand, data []byte) []byte {
	data = slices.Clone(data)
	numbers := []string{"-1", "0", "1", "2", "3", "4", "17", "60", "1.5", "-0.5", "2000000000", "99999999999", "1e99"}
	words := []string{"", "", "", "", "nan", "inf", "x", "null", "[]", "{}", "[1,2]", "\"", ":", "\n", ",", "\x00", "é", " "}
	number := func(c byte) bool { return c >= '0' && c <= '9' || c == '.' || c == '-' }
	for range 1 + r.IntN(3) {
		at := r.IntN(len(data))
		from, to := at, len(data)
		switch kind := r.IntN(10); {
		case kind < 6: // the number that is next
			for from < len(data) && !number(data[from]) {
				from++
			}
			for to = from; to < len(data) && number(data[to]); to++ {
			}
			word := numbers[r.IntN(len(numbers))]
			if r.IntN(4) == 0 {
				word = words[r.IntN(len(words))]
			}
			data = slices.Replace(data, from, to, []byte(word)...)
		case kind < 8: // a line
			from = 1 + bytes.LastIndexByte(data[:at], '\n')
			if end := bytes.IndexByte(data[at:], '\n'); end >= 0 {
				to = at + end + 1
			}
			if kind == 6 {
				data = slices.Delete(data, from, to)
			} else {
				data = slices.Insert(data, from, slices.Clone(data[from:to])...)
			}
		case kind == 8:
			data[at] = byte(r.IntN(256))
		default: // the rest is missing
			data = data[:at]
		}
		if len(data) == 0 {
			data = []byte{'x'}
		}
	}
	return data
}

// TestSolveBrokenFiles: 112 broken files of each format, 1,008 in all; HAUL_BROKEN=1000 of each.
func TestSolveBrokenFiles(t *testing.T) {
	rounds := 112
	if text := os.Getenv("HAUL_BROKEN"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	folder := t.TempDir()
	sol := filepath.Join(folder, "f.sol")
	solved, refused := 0, 0
	samples := brokenSamples(t)
	for _, f := range files.Formats {
		hash := fnv.New64()
		hash.Write([]byte(f.Name))
		r := rand.New(rand.NewPCG(3, hash.Sum64())) // of its own: a format that is added changes no other's
		path := filepath.Join(folder, "f"+append(f.Extensions, ".json")[0])
		if code := judgeBroken(t, path, sol, samples[f.Name]); code != 0 {
			t.Fatalf("%s: the whole file ends with %d:\n%s", f.Name, code, samples[f.Name])
		}
		of := [2]int{}
		for range rounds {
			path := filepath.Join(folder, "f"+append(f.Extensions, ".json")[0])
			if code := judgeBroken(t, path, sol, breakFile(r, samples[f.Name])); code == 0 || code == cli.ExitUnserved {
				of[0]++
			} else {
				of[1]++
			}
		}
		t.Logf("%s: %d solved, %d refused", f.Name, of[0], of[1])
		if of[1] == 0 || of[0] == 0 && f.Name != "xlsx" { // a changed byte of an archive is seen by its sums
			t.Errorf("%s: %d solved and %d refused of %d broken files", f.Name, of[0], of[1], rounds)
		}
		solved, refused = solved+of[0], refused+of[1]
	}
	t.Logf("%d broken files: %d solved, %d refused", solved+refused, solved, refused)
}

// judgeBroken solves one file and holds what comes of it to the validator; it is the exit code.
func judgeBroken(t *testing.T, path, sol string, data []byte) int {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"solve", path, "--iterations", "60", "--workers", "1", "--out", sol, "--force", "--json"}
	o := files.Options{}
	if ext := filepath.Ext(path); ext == ".csv" || ext == ".geojson" {
		args = append(args, "--capacity", "20", "--speed", "30")
		o.Capacity, o.Speed = 20, 30
	}
	done := make(chan inprocess.Result, 1)
	go func() {
		defer func() {
			if bad := recover(); bad != nil {
				done <- inprocess.Result{Code: -1, Stderr: fmt.Sprint("panic: ", bad)}
			}
		}()
		done <- inprocess.Run(t, args...)
	}()
	var got inprocess.Result
	select {
	case got = <-done:
	case <-time.After(3 * time.Minute):
		t.Fatalf("no end after 3 minutes:\n%s", data)
	}
	wrong := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s\nexit %d, %s\n%s", fmt.Sprintf(format, args...), got.Code, got.Stderr, data)
	}
	switch got.Code {
	case cli.ExitFailed, cli.ExitUsage:
		last := strings.Split(strings.TrimSuffix(got.Stderr, "\n"), "\n")
		if !strings.HasPrefix(last[len(last)-1], "haul: ") || len(last[len(last)-1]) < 10 {
			wrong("no line that says why")
		}
		for _, line := range last[:len(last)-1] {
			if !strings.HasPrefix(line, path+": ") {
				wrong("a line that is no note of the file: %q", line)
			}
		}
		return got.Code
	case 0, cli.ExitUnserved:
	default:
		wrong("neither solved nor refused")
	}
	p, err := files.LoadProblem(path, o)
	if err != nil {
		wrong("solved, and then refused: %v", err)
	}
	if p.Metric == vrp.GreatCircle && p.Speed == 0 {
		p.Speed = 1
	}
	s, _, err := files.LoadSolution(sol, p)
	if err != nil {
		wrong("the solution cannot be read: %v", err)
	}
	missing := 0
	for _, v := range vrp.Violations(p, s) {
		if v.Rule != vrp.VisitedAtAll && v.Rule != vrp.GroupServed {
			wrong("the validator: %v", v)
		}
		missing++
	}
	told := unservedTold(t, got.Stdout)
	if got.Code == cli.ExitUnserved && missing == 0 || got.Code == 0 && missing > 0 && !files.LooksVROOM(data) {
		wrong("%d of those who must be served are left out", missing)
	}
	if left := leftOut(p, s); told != left {
		wrong("%d are left out, %d are told of: %s", left, told, got.Stdout)
	}
	return got.Code
}

// leftOut counts the customers that no route serves.
func leftOut(p *vrp.Problem, s vrp.Solution) int {
	seen := make([]bool, len(p.Demand))
	for _, route := range s.Routes {
		for _, v := range route {
			seen[v] = true
		}
	}
	n := 0
	for v := max(1, p.Depots); v < len(seen); v++ {
		if !seen[v] {
			n++
		}
	}
	return n
}

// unservedTold counts the customers whom an answer lists as left out, each with its reason.
func unservedTold(t *testing.T, stdout string) int {
	t.Helper()
	type listed struct {
		Reason string `json:"reason"`
	}
	var told struct {
		Unassigned []listed `json:"unassigned"` // in VROOM's words
		Plan       struct {
			Unserved []listed `json:"unserved"`
		} `json:"plan"`
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &told); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	all := append(told.Unassigned, told.Plan.Unserved...)
	for _, u := range all {
		if u.Reason == "" {
			t.Fatalf("left out without a reason: %s", stdout)
		}
	}
	return len(all)
}
