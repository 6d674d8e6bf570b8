package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"haul/internal/search"
)

// onStandardInput runs f with a text there.
func onStandardInput(t *testing.T, text string, f func()) {
	t.Helper()
	in, err := os.Open(write(t, "stdin", text))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	was := os.Stdin
	os.Stdin = in
	defer func() { os.Stdin = was }()
	f()
}

// TestSolveStandardInput: a problem or a table that is piped in is solved as its file would be.
func TestSolveStandardInput(t *testing.T) {
	onStandardInput(t, squareVRP, func() {
		if r := object(t, "solve", "-", "--json"); r["cost"] != 68.0 || r["name"] != "square" {
			t.Errorf("%v", r)
		}
	})
	for _, table := range []string{"id,x,y,demand\nd,0,0,0\na,3,4,1\n", "id;x;y;demand\nd;0;0;0\na;3,0;4;1\n"} {
		onStandardInput(t, table, func() {
			if r := object(t, "solve", "-", "--capacity", "5", "--json"); r["cost"] != 10.0 || r["customers"] != 1.0 {
				t.Errorf("%v", r)
			}
		})
	}
	onStandardInput(t, "COMMENT : a square, every demand, and no more\n"+squareVRP, func() { // a .vrp whose comment reads like a header
		if r := object(t, "solve", "-", "--json"); r["cost"] != 68.0 {
			t.Errorf("a comment first: %v", r)
		}
	})
	onStandardInput(t, "# a depot and a customer\n\nid,x,y,demand\nd,0,0,0\na,3,4,5\n", func() {
		if r := object(t, "solve", "-", "--capacity", "5", "--json"); r["cost"] != 10.0 {
			t.Errorf("a comment before the header: %v", r)
		}
	})
	onStandardInput(t, "", func() { refused(t, []string{"solve", "-"}, exitFailed, "standard input:1: the file is empty") })
	onStandardInput(t, squareVRP, func() { refused(t, []string{"solve", "-", "--capacity", "5"}, exitUsage, "--capacity") })
}

// TestSlipsOfTheHand: what is mistyped is told with what was most likely meant, and a value with
// what it must be.
func TestSlipsOfTheHand(t *testing.T) {
	for line, want := range map[string]string{
		"slove x":                             `did you mean "solve"?`,
		"trian":                               `did you mean "train"?`,
		"pol":                                 `did you mean "policies"?`,
		"config chekc":                        `did you mean "check"?`,
		"xyzzy":                               `haul has no command "xyzzy" (see haul --help)`,
		"solve x.vrp --time 3":                `--time is "3": a time with its unit, for example 30s or 5m, is needed`,
		"train --resume nosuch":               "there is no folder nosuch",
		"train --rank 0":                      "--rank and --rendezvous need --ranks",
		"gen --out set.npy":                   "--out set.npy: instances are written as .npz or .pkl",
		"solve no.csv":                        "open no.csv: ",
		"solve --testset kol":                 "--testset kol is neither a file nor the name of a public set: those are kool and routefinder",
		"solve no.csv --capacity 0":           "--capacity is 0: at least 1 is needed",
		"solve no.csv --capacity -3":          "--capacity is -3: at least 1 is needed",
		"solve x.csv --capacity 3000000000":   "--capacity is 3000000000: at most 2147483647 can be given",
		"solve --seed 99999999999999999999":   "--seed is 99999999999999999999: at most 18446744073709551615 can be given",
		"train --epochs 99999999999999999999": "--epochs is 99999999999999999999: at most 9223372036854775807 can be given",
	} {
		r := haul(t, strings.Fields(line)...)
		if r.code == exitDone || !strings.Contains(r.stderr, want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("haul %s: exit %d, %q, want %q", line, r.code, r.stderr, want)
		}
	}
	if _, err := os.Stat("set.npy"); err == nil {
		t.Error("a folder set.npy was made")
	}
}

// TestHelpHeedsColumns: where output goes into a pipe, COLUMNS says how wide help may be.
func TestHelpHeedsColumns(t *testing.T) {
	t.Setenv("COLUMNS", "70")
	for line := range strings.Lines(haul(t, "solve", "--help").stdout) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 70 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestPlacesThatTakeNoFileAreToldFirst: a search does not run for its time to say then that its
// routes cannot be written.
func TestPlacesThatTakeNoFileAreToldFirst(t *testing.T) {
	square, dir := write(t, "square.vrp", squareVRP), t.TempDir()
	places := []string{filepath.Join(square, "x.sol")}
	if runtime.GOOS == "linux" {
		places = append(places, "/proc/x.sol") // nobody makes files there
	}
	for _, out := range places {
		refused(t, []string{"solve", square, "--time", "1h", "--out", out}, exitFailed, "cannot write "+out)
	}
	nowhere := filepath.Join(square, "x.")
	for _, line := range []string{"eval --policy cvrp20 --count 20000 --plot %ssvg", "lab run all --page %smd", "doctor ../../docs/examples/trace.json.gz --html %shtml",
		"profile --steps 1000 --trace %sjson", "bench scale --config large --plot %spng"} {
		line = fmt.Sprintf(line, nowhere)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if r := haulIn(ctx, strings.Fields(line)...); r.code != exitFailed || r.stdout != "" || !strings.HasPrefix(r.stderr, "haul: cannot write "+nowhere) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("haul %s: exit %d, %q, %q", line, r.code, r.stdout, r.stderr)
		}
		cancel()
	}
	folder := filepath.Join(dir, "x.sol")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	refused(t, []string{"solve", square, "--time", "1h", "--out", folder}, exitFailed, "it is a folder")
	if r := haul(t, "solve", square, "--out", filepath.Join(dir, "y.sol")); r.code != exitDone {
		t.Error(r.stderr)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("%v, %v: only what was written may be left", left, err)
	}
}

// TestLiveLineFits: the line of a search stays within the screen, where one that is broken would
// fill it.
func TestLiveLineFits(t *testing.T) {
	for columns, want := range map[int]string{25: "best 587", 45: "4 routes", 80: "iterations/s"} {
		var out bytes.Buffer
		l := (&app{stderr: &out, columns: columns}).newLive(&solveFlags{})
		l.terminal = true
		l.show(search.Progress{Seconds: 1234.5, Iterations: 1 << 40, Cost: 587, Routes: 4})
		line := strings.Trim(out.String(), "\r")
		if len(line) >= columns || !strings.HasSuffix(strings.TrimRight(line, "0123456789 "), strings.TrimRight(want, "0123456789 ")) {
			t.Errorf("at %d columns: %q", columns, line)
		}
	}
}

// TestTablesByAnyName: a table is one by its header where its name does not say, through a pipe
// too; a problem stays one.
func TestTablesByAnyName(t *testing.T) {
	table := "id\tx\ty\tdemand\nd\t0\t0\t0\na\t3\t4\t1\n"
	for _, name := range []string{"stops.tsv", "stops.txt", "stops"} {
		if r := object(t, "solve", write(t, name, table), "--capacity", "5", "--json"); r["cost"] != 10.0 || r["name"] != "stops" {
			t.Errorf("%s: %v", name, r)
		}
		refused(t, []string{"solve", write(t, name, table)}, exitUsage, "--capacity is missing")
	}
	if r := object(t, "solve", write(t, "square.txt", squareVRP), "--json"); r["cost"] != 68.0 {
		t.Errorf("%v", r)
	}
	if runtime.GOOS != "linux" {
		return
	}
	for text, args := range map[string][]string{table: {"--capacity", "5"}, squareVRP: nil} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w, text)
		w.Close()
		if r := object(t, append([]string{"solve", fmt.Sprintf("/dev/fd/%d", r.Fd()), "--json"}, args...)...); r["cost"] != 10.0 && r["cost"] != 68.0 {
			t.Errorf("%v", r)
		}
		r.Close()
	}
}

// TestCostsHaveTheirUnit: places on the globe are metres apart, which a number alone does not tell.
func TestCostsHaveTheirUnit(t *testing.T) {
	r := haul(t, "solve", write(t, "globe.csv", "id,lat,lon,demand\nd,0,0,0\na,0,1,1\n"), "--capacity", "1")
	if r.code != exitDone || !strings.Contains(r.stdout, "cost    222,390 metres\n") {
		t.Errorf("exit %d, %q, %q", r.code, r.stdout, r.stderr)
	}
}

// TestFlagsThatWouldDoNothing: what one flag writes another would write over, and what one asks for
// another has no word for.
func TestFlagsThatWouldDoNothing(t *testing.T) {
	square, picture := write(t, "square.vrp", squareVRP), filepath.Join(t.TempDir(), "x.svg")
	refused(t, []string{"solve", square, "--iterations", "10", "--plot", picture, "--curve", filepath.Dir(picture) + "/./x.svg"}, exitUsage, "--plot and --curve would both write "+picture)
	refused(t, []string{"doctor", "--diff", "a.json", "b.json", "--breakdown"}, exitUsage, "--breakdown describes one trace or job, and --diff compares two")
	for _, name := range []string{"x.xlsx", "x.geojson", "x.sol"} {
		refused(t, []string{"gen", "--customers", "3", "--out", filepath.Join(t.TempDir(), name)}, exitUsage, "instances are written as .npz or .pkl, or as .vrp files into a folder")
	}
}

// TestTheShortestTime: a time that reading the file has spent still gives routes.
func TestTheShortestTime(t *testing.T) {
	for _, time := range []string{"1ns", "9ns", "1us"} {
		if r := haul(t, "solve", write(t, "square.vrp", squareVRP), "--time", time); r.code != exitDone || !strings.Contains(r.stdout, "cost    68\n") {
			t.Errorf("%s: %+v", time, r)
		}
	}
}

// TestCostsInParts: PyVRP's solutions count the tenths or thousandths of a cost, which a refusal
// says.
func TestCostsInParts(t *testing.T) {
	square := write(t, "square.vrp", squareVRP)
	for cost, want := range map[string]string{"680": ", of which it counts the tenths", "68000": ", of which it counts the thousandths", "69": "its routes cost 68"} {
		refused(t, []string{"solve", square, "--check", write(t, "a.sol", "Route #1: 1 2\nRoute #2: 3 4\nCost "+cost+"\n")}, exitFailed, want)
	}
	near := write(t, "near.vrp", "NAME : near\nTYPE : CVRP\nDIMENSION : 2\nEDGE_WEIGHT_TYPE : EUC_2D\nCAPACITY : 9\nNODE_COORD_SECTION\n1 0 0\n2 1 1\nDEMAND_SECTION\n1 0\n2 3\nDEPOT_SECTION\n1\n-1\nEOF\n")
	for cost, want := range map[string]string{"2.8": "cost 2; by --distance dimacs it holds", "28": "by --distance dimacs they cost 2.8000, of which it counts the tenths", "5": "its routes cost 2\n"} {
		refused(t, []string{"solve", near, "--check", write(t, "b.sol", "Route #1: 1\nCost "+cost+"\n")}, exitFailed, want)
	}
	for _, c := range []struct {
		stated, cost float64
		want         bool
	}{{27106.46, 2710646, true}, {27106.46, 2710646.5, true}, {27106.46, 2710647, false}, {0.5, 50, false}, {1, 100, true}} {
		if got := counted(c.stated, c.cost); strings.Contains(got, "counts the hundreds") != c.want {
			t.Errorf("%v: %q", c, got)
		}
	}
	if got := counted(69, 68) + counted(0, 0); got != "" {
		t.Error(got)
	}
}
