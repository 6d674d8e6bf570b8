package solve_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest"
	"haul/cmd/haul/clitest/inprocess"
	"haul/cmd/haul/root"
	"haul/cmd/haul/solve"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
)

// TestUnservedHasItsExitCode: routes that leave out required customers are reported
// with reasons, and the exit code tells.
func TestUnservedHasItsExitCode(t *testing.T) {
	square, out := clitest.Write(t, "square.vrp", clitest.SquareVRP), filepath.Join(t.TempDir(), "x.sol")
	var stdout, stderr bytes.Buffer
	code := root.Execute(t.Context(), []string{"solve", square, "--vehicles", "1", "--iterations", "200", "--out", out}, &stdout, &stderr)
	if code != cli.ExitUnserved || !strings.Contains(stderr.String(), "2 required customers are on no route") ||
		!strings.Contains(stderr.String(), "1 vehicle of capacity 10 carries 10, the customers demand 20: at least 2 vehicles are needed") {
		t.Errorf("code %d, %q", code, stderr.String())
	}
	if n := strings.Count(stdout.String(), "not served: "); n != 2 || strings.Count(stdout.String(), "it carries 15, the capacity is 10") != 2 {
		t.Errorf("who is not served:\n%s", stdout.String())
	}
	// From there the search goes on once there are vehicles enough.
	stdout.Reset()
	if code := root.Execute(t.Context(), []string{"solve", square, "--start", out, "--iterations", "200", "--json"}, &stdout, &stderr); code != cli.ExitDone || !strings.Contains(stdout.String(), `"cost":68`) {
		t.Errorf("code %d, %s", code, stdout.String())
	}
}

// TestFixKeepsRoutes: what is fixed of a start stays, however bad; the rest is improved.
func TestFixKeepsRoutes(t *testing.T) {
	many := clitest.Write(t, "many.vrp", clitest.ManyVRP(20))
	start := clitest.Write(t, "start.sol", "Route #1: 1 11 2 12 3\nRoute #2: 4 14 5 15 6\nRoute #3: 13 7 16 8 17\nRoute #4: 9 18 10 19 20\n")
	for fix, kept := range map[string][]string{
		"1":      {"Route #1: 1 11 2 12 3\n"},
		"1,3:2":  {"Route #1: 1 11 2 12 3\n", "Route #3: 13 7 "},
		"all:2":  {": 1 11 ", ": 4 14 ", ": 13 7 ", ": 9 18 "},
		"2:5,2":  {": 4 14 5 15 6\n"},
		" 4 ,2 ": {": 4 14 5 15 6\n", ": 9 18 10 19 20\n"},
	} {
		out := filepath.Join(t.TempDir(), "x.sol")
		var stdout, stderr bytes.Buffer
		if code := root.Execute(t.Context(), []string{"solve", many, "--start", start, "--fix", fix, "--iterations", "2000", "--out", out}, &stdout, &stderr); code != cli.ExitDone {
			t.Fatalf("%s: code %d, %s", fix, code, stderr.String())
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range kept {
			if _, words, _ := strings.Cut(want, ": "); !strings.Contains(string(text), ": "+words) {
				t.Errorf("--fix %s does not keep %q:\n%s", fix, want, text)
			}
		}
		was, _, err := files.ReadSolution(strings.NewReader("Route #1: 1 11 2 12 3\nRoute #2: 4 14 5 15 6\nRoute #3: 13 7 16 8 17\nRoute #4: 9 18 10 19 20\n"), "start", nil)
		if err != nil {
			t.Fatal(err)
		}
		now, _, err := files.ReadSolution(bytes.NewReader(text), "now", nil)
		if err != nil || slices.EqualFunc(was.Routes, now.Routes, slices.Equal) {
			t.Errorf("--fix %s: nothing was improved: %v", fix, err)
		}
	}
}

// TestQuiet: notes are silent, results and errors are not.
func TestQuiet(t *testing.T) {
	trucks := clitest.Write(t, "trucks.vrp", strings.Replace(clitest.SquareVRP, "NAME : square", "NAME : square\nCOMMENT : No of trucks: 5", 1))
	for _, c := range []struct {
		args       []string
		out, words bool
	}{
		{[]string{"solve", trucks}, true, true},
		{[]string{"solve", trucks, "--quiet"}, true, false},
		{[]string{"solve", "nosuch.vrp", "--quiet"}, false, true},
	} {
		var stdout, stderr bytes.Buffer
		root.Execute(t.Context(), c.args, &stdout, &stderr)
		if (stdout.Len() > 0) != c.out || (stderr.Len() > 0) != c.words {
			t.Errorf("%v: %q and %q", c.args, stdout.String(), stderr.String())
		}
	}
}

// TestSolveKeepsWhatItReads: --force replaces results, never the problem or a table beside it.
func TestSolveKeepsWhatItReads(t *testing.T) {
	const table, fleet = "id,x,y,demand\nd,0,0,\na,1,1,1\n", "name,capacity\nv,5\n"
	stops, vans := clitest.Write(t, "stops.csv", table), clitest.Write(t, "vans.csv", fleet)
	for _, args := range [][]string{{"--out", stops}, {"--out", vans}, {"--out", filepath.Join(filepath.Dir(stops), ".", "stops.csv")}} {
		r := inprocess.Run(t, append([]string{"solve", stops, "--with", "fleet=" + vans, "--iterations", "10", "--force"}, args...)...)
		if r.Code != cli.ExitUsage || !strings.Contains(r.Stderr, "is a file that the problem is read from") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	for path, want := range map[string]string{stops: table, vans: fleet} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", path, got, err)
		}
	}
	if r := inprocess.Run(t, "solve", stops, "--with", "fleet="+vans, "--iterations", "10", "--out", clitest.Write(t, "plan.csv", "old"), "--force"); r.Code != 0 {
		t.Errorf("%+v", r)
	}
}

// TestSolOfAnyNumberOfVehicles: a .sol file numbers vehicles. Where it cannot, that is said before
// a search whose routes would be lost, and routes that cannot be written elsewhere are printed
// whole.
func TestSolOfAnyNumberOfVehicles(t *testing.T) {
	const anyVans = `{"coords":[[0,0],[1,0],[2,0]],"demands":[0,1,1],"fleet":[{"capacity":[1]},{"capacity":[2],"count":1}]}`
	path := clitest.Write(t, "p.json", anyVans)
	for _, out := range []string{"-", filepath.Join(t.TempDir(), "x.sol"), filepath.Join(t.TempDir(), "x")} {
		inprocess.Refused(t, []string{"solve", path, "--iterations", "50", "--out", out}, cli.ExitFailed,
			"--out "+out+": a .sol file numbers its vehicles, and of type 0 there is any number: write .json")
	}
	p, err := files.ReadJSON(strings.NewReader(anyVans), "p")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := solve.PrintRoutes(&out, p, vrp.Solution{Routes: [][]int32{{1, 2}}, Types: []int32{1}}, 4); err != nil || !strings.Contains(out.String(), `"routes":[[1,2]],"types":[1]`) {
		t.Errorf("routes lost: %v %s", err, out.String())
	}
}

// TestVROOMInEveryFormat: what is written of an input of VROOM's is read again, names its vehicles
// and tasks as the input does, measures ways in metres, and demands nobody, as VROOM does.
func TestVROOMInEveryFormat(t *testing.T) {
	const input = `{"vehicles":[{"id":7,"start":[2.35,48.85],"end":[2.35,48.85],"capacity":[4]},{"id":9,"start":[2.35,48.85],"end":[2.35,48.85],"capacity":[1]}],
"jobs":[{"id":101,"location":[2.4,48.9],"delivery":[1],"service":300,"description":"Zum Eck"},{"id":102,"location":[2.3,48.8],"delivery":[2]},{"id":103,"location":[2.3,48.7],"delivery":[5]}]}`
	in, folder := clitest.Write(t, "in.json", input), t.TempDir()
	for _, ext := range []string{"sol", "json", "csv", "xlsx", "geojson", "plan.json"} {
		out := filepath.Join(folder, "x."+ext)
		var stdout, stderr bytes.Buffer
		if code := root.Execute(t.Context(), []string{"solve", in, "--iterations", "300", "--out", out}, &stdout, &stderr); code != cli.ExitDone {
			t.Fatalf("%s: code %d, %s", ext, code, stderr.String())
		}
		if text := stdout.String(); strings.Contains(text, "required") || !strings.Contains(text, "26,621") || !strings.Contains(text, "not served: 103:") {
			t.Errorf("%s:\n%s", ext, text)
		}
		for _, args := range [][]string{{"--check", out}, {"--start", out, "--iterations", "20"}} {
			stdout.Reset()
			if code := root.Execute(t.Context(), append([]string{"solve", in}, args...), &stdout, &stderr); code != cli.ExitDone || !strings.Contains(stdout.String(), "1,916") {
				t.Errorf("%v: code %d, %s%s", args, code, stdout.String(), stderr.String())
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(folder, "x.csv"))
	if err != nil || !strings.Contains(string(text), "1,7,0,1,customer,1,101,Zum Eck,") {
		t.Errorf("%v\n%s", err, text)
	}
	for name, own := range map[string]bool{"x.json": false, "x.plan.json": true} {
		if text, err := os.ReadFile(filepath.Join(folder, name)); err != nil || strings.Contains(string(text), `"plan":{"distance":26621`) != own {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	other := clitest.Write(t, "other.json", strings.ReplaceAll(input, `"id":7`, `"id":8`))
	inprocess.Refused(t, []string{"check", other, filepath.Join(folder, "x.json")}, cli.ExitFailed, "routes[0] is of vehicle 7, which does not exist")
	steps := `"id":7,"steps":[{"type":"start"},{"type":"job","id":101},{"type":"end"}]`
	begun := clitest.Write(t, "begun.json", strings.Replace(input, `"id":7`, steps, 1))
	inprocess.Refused(t, []string{"solve", begun, "--start", filepath.Join(folder, "x.json")}, cli.ExitUsage, "--start and the vehicles' steps both say where to start")
	planned := clitest.Write(t, "planned.json", strings.Replace(strings.Replace(input, `"id":7`, steps, 1), `"jobs"`, `"options":{"c":true},"jobs"`, 1))
	inprocess.Refused(t, []string{"solve", planned, "--time", "1s"}, cli.ExitUsage, "options.c asks for the times of the plan, and nothing is solved")
}

// TestGeoJSONByAnyName: points are told by what is in the file, and take a table's flags.
func TestGeoJSONByAnyName(t *testing.T) {
	const points = `{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Point","coordinates":[2,48]},"properties":{"id":"d"}},
{"type":"Feature","geometry":{"type":"Point","coordinates":[2.1,48]},"properties":{"id":"a","demand":2}}]}`
	for _, name := range []string{"g.json", "g.dat", "g.geojson"} {
		if r := inprocess.Run(t, "solve", clitest.Write(t, name, points), "--capacity", "5", "--iterations", "5"); r.Code != cli.ExitDone || !strings.Contains(r.Stdout, "14,881 metres") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
