package main

import (
	"bytes"
	"context"
	_ "embed"
	"path/filepath"
	"strings"
	"testing"

	"haul/cmd/haul/clitest"
)

// result is what one command line left behind.
type result struct {
	code           int
	stdout, stderr string
}

func haul(t *testing.T, args ...string) result {
	t.Helper()
	return haulIn(context.Background(), args...)
}

func haulIn(ctx context.Context, args ...string) result {
	var out, errs bytes.Buffer
	code := execute(ctx, args, &out, &errs)
	return result{code, out.String(), errs.String()}
}

// object runs a command that must succeed and print one JSON object and nothing else.
func object(t *testing.T, args ...string) map[string]any {
	t.Helper()
	r := haul(t, args...)
	return clitest.Object(t, args, r.code, r.stdout, r.stderr)
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	return clitest.Write(t, name, text)
}

// The square: two routes of two customers each cost 2·(10+10+14) = 68 when rounded.
//
//go:embed testdata/square.vrp
var squareVRP string

const squareSOL = "Route #1: 1 2\nRoute #2: 3 4\nCost 68\n"

// explicitVRP gives distances and no coordinates.
//
//go:embed testdata/triangle.vrp
var explicitVRP string

// TestBadInput is the contract with a user who errs: one line on standard error that says what is
// wrong, nothing on standard output, and an exit code that tells a wrong command line from a
// failure.
func TestBadInput(t *testing.T) {
	square := write(t, "square.vrp", squareVRP)
	edit := func(old, new string) string {
		if !strings.Contains(squareVRP, old) {
			t.Fatalf("the file has no %q", old)
		}
		return write(t, "bad.vrp", strings.Replace(squareVRP, old, new, 1))
	}
	windows := write(t, "w.csv", "id,x,y,demand,ready,due\n0,0,0,0,0,90\n1,3,2,1,0,9\n2,5,9,1,20,30\n")
	globe := write(t, "g.csv", "id,lat,lon,demand,ready,due\n0,50,8,0,0,9000\n1,50.1,8.1,1,0,9000\n2,50.2,8,1,20,9000\n")
	sol := func(text string) string { return write(t, "x.sol", text) }
	nowhere := filepath.Join(t.TempDir(), "missing", "x")
	truncated := write(t, "cut.vrp", squareVRP[:strings.Index(squareVRP, "4 -10")])

	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"no such file", []string{"solve", "nosuch.vrp"}, exitFailed, "nosuch.vrp"},
		{"an empty file", []string{"solve", write(t, "nothing.vrp", "")}, exitFailed, "empty"},
		{"a truncated section", []string{"solve", truncated}, exitFailed, "NODE_COORD_SECTION"},
		{"a dimension that disagrees", []string{"solve", edit("DIMENSION : 5", "DIMENSION : 7")}, exitFailed, "7"},
		{"a demand over capacity", []string{"solve", edit("3 5", "3 11")}, exitFailed, "11"},
		{"a NaN coordinate", []string{"solve", edit("2 10 0", "2 NaN 0")}, exitFailed, "NaN"},
		{"an unsupported key", []string{"solve", edit("CAPACITY : 10", "CAPACITY : 10\nBACKHAULS : 99")}, exitFailed, "BACKHAULS"},
		{"a route limit too short", []string{"solve", edit("CAPACITY : 10", "CAPACITY : 10\nDISTANCE : 9")}, exitFailed, "alone takes 20"},
		{"routes kept of no start", []string{"solve", square, "--fix", "1"}, exitUsage, "--fix keeps routes of a start: name it with --start"},
		{"a route kept that is none", []string{"solve", square, "--start", sol(squareSOL), "--fix", "3"}, exitFailed, "there is no route 3: the start has routes 1 to 2"},
		{"more stops kept than there are", []string{"solve", square, "--start", sol(squareSOL), "--fix", "2:3"}, exitFailed, "route 2 has 2 stops, not 3"},
		{"a word for a route", []string{"solve", square, "--start", sol(squareSOL), "--fix", "one"}, exitUsage, `"one" is no route`},
		{"a start that breaks a rule", []string{"solve", square, "--start", sol("Route #1: 1 2 3\n")}, exitFailed, "carries 15, the capacity is 10"},
		{"a solution for a problem", []string{"solve", sol(squareSOL)}, exitFailed, "this is a solution (.sol)"},
		{"Solomon's file", []string{"solve", write(t, "c101.txt", "C101\n\nVEHICLE\nNUMBER CAPACITY\n25 200\n")}, exitFailed, "CUSTOMER"},
		{"a start of another instance", []string{"solve", square, "--start", sol("Route #1: 1 2\nRoute #2: 3 4\nRoute #3: 5\n")}, exitFailed, "not a solution of square to start from"},
		{"an existing solution", []string{"solve", square, "--out", sol(squareSOL)}, exitFailed, "--force"},
		{"an existing picture", []string{"solve", square, "--plot", write(t, "r.svg", "mine")}, exitFailed, "--force"},
		{"a limit for the exact method", []string{"solve", square, "--vehicles", "3", "--method", "exact"}, exitFailed, "knows no limit but the capacity"},
		{"a limit for savings", []string{"solve", square, "--open", "--method", "savings"}, exitFailed, "its routes are open"},
		{"a table without a capacity", []string{"solve", write(t, "a.csv", "id,x,y,demand\n0,1,2,0\n1,3,2,9\n")}, exitUsage, "--capacity is missing"},
		{"a port past the last", []string{"serve", "--addr", "127.0.0.1:99999"}, exitUsage, "a port is at most 65535"},
		{"instances past any memory", []string{"eval", "--policy", "cvrp20", "--count", "100000000"}, exitUsage, "at most 1000000"},
		{"a file past any memory", []string{"gen", "--count", "1000000000", "--out", "x.npz"}, exitUsage, "at most 9090909 instances of 10 customers"},
		{"processes past any machine", []string{"train", "--processes", "100000"}, exitUsage, "--processes is 100000: at most"},
		{"no name", []string{"solve", ""}, exitUsage, "the name of the file to solve is empty"},
		{"an empty policy", []string{"solve", square, "--policy", ""}, exitUsage, "--policy is empty"},
		{"nothing to fix", []string{"solve", square, "--start", square, "--fix", ""}, exitUsage, "--fix is empty"},
		{"no severity", []string{"doctor", square, "--fail-on", ""}, exitUsage, "--fail-on is empty"},
		{"empty settings", []string{"config", "show", "--config", ""}, exitUsage, "--config is empty"},
		{"a set in place of a file", []string{"solve", "../../docs/examples/uniform10.npz"}, exitUsage, "haul solve --testset ../../docs/examples/uniform10.npz"},
		{"a packed file", []string{"solve", "../../docs/examples/trace.json.gz"}, exitFailed, "packed by gzip"},
		{"a spreadsheet's text", []string{"solve", write(t, "u.csv", "\xff\xfei\x00d\x00"), "--capacity", "5"}, exitFailed, "UTF-16"},
		{"a program for routes", []string{"solve", square, "--check", write(t, "x.sol", "\x7fELF\x00\x01")}, exitFailed, "not a text file"},
		{"past the stream's end", []string{"gen", "--first", "18446744073709551615", "--count", "2", "--out", "x"}, exitUsage, "pass the end of the stream"},
		{"windows and a policy of plain CVRP", []string{"solve", windows, "--capacity", "5", "--distance", "exact", "--policy", "cvrp20"}, exitFailed, "the policy cannot route it: it has time windows: --policy vrp50 can"},
		{"windows on the globe", []string{"solve", globe, "--capacity", "5", "--speed", "50", "--policy", "auto"}, exitFailed, "no shipped policy fits: its distances are not those of straight lines"},
		{"auto where no problem is", []string{"eval", "--policy", "auto"}, exitUsage, `no policy "auto": there are cvrp20`},
		{"a table without a column", []string{"solve", write(t, "a.csv", "id,x,y\n0,1,2\n"), "--capacity", "5"}, exitFailed, `no column "demand"`},
		{"a table with a NaN", []string{"solve", write(t, "a.csv", "id,x,y,demand\n0,1,2,0\n1,NaN,2,1\n"), "--capacity", "5"}, exitFailed, "a.csv:3"},
		{"a table over capacity", []string{"solve", write(t, "a.csv", "id,x,y,demand\n0,1,2,0\n1,3,2,9\n"), "--capacity", "5"}, exitFailed, "over the capacity 5"},
		{"a test set that is none", []string{"solve", "--testset", write(t, "a.npz", "x")}, exitFailed, "not an .npz file"},
		{"a folder for a file", []string{"solve", t.TempDir()}, exitFailed, "is a folder"},
		{"a file too large for exact", []string{"solve", write(t, "many.vrp", manyVRP(30)), "--method", "exact"}, exitFailed, "exact takes up to 22 customers, these are 30: use search"},
		{"no coordinates to draw", []string{"solve", write(t, "tri.vrp", explicitVRP), "--plot", filepath.Join(t.TempDir(), "r.svg")}, exitFailed, "no coordinates"},

		{"unwritable solution", []string{"solve", square, "--out", nowhere}, exitFailed, "cannot write"},
		{"unwritable picture", []string{"solve", square, "--plot", nowhere + ".svg"}, exitFailed, "cannot write"},
		{"unwritable folder", []string{"gen", "--out", filepath.Join(square, "dir")}, exitFailed, "cannot write"},

		{"a customer twice", []string{"solve", square, "--check", sol("Route #1: 1 2\nRoute #2: 3 1\nCost 68\n")}, exitFailed, "customer 1 visited twice"},
		{"a customer left out", []string{"solve", square, "--check", sol("Route #1: 1 2\nRoute #2: 3\nCost 54\n")}, exitFailed, "customer 4 is never visited"},
		{"a full vehicle", []string{"solve", square, "--check", sol("Route #1: 1 2 3\nRoute #2: 4\nCost 68\n")}, exitFailed, "carries 15, capacity 10"},
		{"a wrong cost", []string{"solve", square, "--check", sol("Route #1: 1 2\nRoute #2: 3 4\nCost 67\n")}, exitFailed, "states cost 67, its routes cost 68"},
		{"no such solution", []string{"solve", square, "--check", "nosuch.sol"}, exitFailed, "nosuch.sol"},

		{"a negative count", []string{"solve", "--count", "-3"}, exitUsage, "--count is -3"},
		{"count 0", []string{"gen", "--count", "0", "--out", "x"}, exitUsage, "--count is 0"},
		{"capacity 0", []string{"solve", "--capacity", "0"}, exitUsage, "capacity is 0"},
		{"no customers", []string{"solve", "--customers", "0"}, exitUsage, "customers is 0"},
		{"too many customers", []string{"solve", "--customers", "2000000000"}, exitUsage, "--customers is 2000000000"},
		{"demands past capacity", []string{"solve", "--capacity", "5"}, exitUsage, "capacity 5"},
		{"demands reversed", []string{"solve", "--demand-range", "9,1"}, exitUsage, "reversed"},
		{"demands unreadable", []string{"solve", "--demand-range", "1-9"}, exitUsage, `"1-9"`},
		{"time 0", []string{"solve", square, "--time", "0"}, exitUsage, "--time is 0s"},
		{"time below 0", []string{"solve", square, "--time", "-1s"}, exitUsage, "--time is -1s"},
		{"iterations 0", []string{"solve", square, "--iterations", "0"}, exitUsage, "--iterations is 0"},
		{"time and iterations", []string{"solve", square, "--time", "1s", "--iterations", "5"}, exitUsage, "both say how long"},
		{"target NaN", []string{"solve", square, "--target", "NaN"}, exitUsage, "--target"},
		{"vehicles below 0", []string{"solve", square, "--vehicles", "-2"}, exitUsage, "--vehicles is -2"},
		{"time for the exact method", []string{"solve", square, "--time", "1s", "--method", "exact"}, exitUsage, "about the search"},
		{"a range of the unit square", []string{"gen", "--distribution", "uniform", "--coord-range", "10", "--out", t.TempDir()}, exitUsage, "--coord-range is about the grid"},
		{"a range of the unit square, solved", []string{"solve", "--distribution", "uniform", "--coord-range", "101"}, exitUsage, "--coord-range is about the grid"},
		{"no such test set", []string{"solve", "--testset", "kool", "--customers", "33"}, exitUsage, "10, 20, 50 or 100"},
		{"a test set of nobody", []string{"eval", "--policy", "cvrp20", "--device", "cpu", "--testset", "kool", "--customers", "0"}, exitUsage, "10, 20, 50 or 100"},
		{"a split of nothing", []string{"gen", "--split", "validation", "--out", "x"}, exitUsage, "--testset kool"},
		{"no such split", []string{"gen", "--testset", "kool", "--split", "train", "--out", "x.npz"}, exitUsage, "test or validation"},
		{"a test set to make from a file", []string{"gen", "--testset", "x.npz", "--out", "y.npz"}, exitUsage, "use kool or routefinder"},
		{"a test set and a seed", []string{"gen", "--testset", "kool", "--seed", "5", "--out", "x.npz"}, exitUsage, "leave --seed out"},
		{"past a test set's end", []string{"gen", "--testset", "kool", "--first", "9999", "--count", "2", "--out", "x.npz"}, exitUsage, "pass the 10000 instances"},
		{"unknown method", []string{"solve", "--method", "magic"}, exitUsage, `unknown method "magic"`},
		{"unknown distribution", []string{"solve", "--distribution", "gauss"}, exitUsage, `unknown distribution "gauss"`},
		{"unknown distance", []string{"solve", square, "--distance", "taxi"}, exitUsage, `unknown distance "taxi"`},
		{"unknown picture format", []string{"solve", square, "--plot", "r.gif"}, exitUsage, ".svg or .png"},
		{"N too large for exact", []string{"solve", "--customers", "40", "--method", "exact"}, exitUsage, "exact takes up to 22 customers, these are 40"},
		{"best known 0", []string{"solve", "--best-known", "0"}, exitUsage, "--best-known"},
		{"best known NaN", []string{"solve", "--best-known", "NaN"}, exitUsage, "--best-known"},
		{"no workers", []string{"solve", "--workers", "0"}, exitUsage, "--workers is 0"},
		{"a generator's flag with a file", []string{"solve", square, "--customers", "5"}, exitUsage, "--customers"},
		{"a file's flag without one", []string{"solve", "--out", "x.sol"}, exitUsage, "--out needs a file"},
		{"solve and check at once", []string{"solve", square, "--check", "x.sol", "--method", "exact"}, exitUsage, "--check"},
		{"two files", []string{"solve", square, square}, exitUsage, "unexpected argument"},
		{"gen without a folder", []string{"gen"}, exitUsage, "--out is missing"},
		{"unknown flag", []string{"solve", "--kustomers", "5"}, exitUsage, "--kustomers"},
		{"unknown verb", []string{"sovle"}, exitUsage, `did you mean "solve"`},
		{"unknown benchmark", []string{"bench", "costs"}, exitUsage, `did you mean "cost"`},
		{"a word for a number", []string{"solve", "--count", "many"}, exitUsage, `"many"`},
		{"rounds 0", []string{"bench", "cost", "--rounds", "0"}, exitUsage, "--rounds is 0"},

		{"unknown key", []string{"config", "check", write(t, "key.yaml", "training:\n  bach_size: 3\n")}, exitFailed, "batch_size"},
		{"a tab in YAML", []string{"config", "check", write(t, "tab.yaml", "training:\n\tbatch_size: 3\n")}, exitFailed, "tab"},
		{"no such config", []string{"config", "check", "nosuch/tiny_1.yaml"}, exitFailed, "nosuch/tiny_1.yaml"},
		{"unknown set", []string{"config", "show", "--set", "training.bach_size=3"}, exitUsage, "batch_size"},
		{"nothing to check", []string{"config", "check"}, exitUsage, "FILE"},
		{"unknown key to explain", []string{"config", "explain", "training.bach_size"}, exitUsage, "batch_size"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.args, c.code, c.want) })
	}
}

// refused runs a command line that must end with one line on standard error and nothing on standard
// output.
func refused(t *testing.T, args []string, code int, want string) {
	t.Helper()
	r := haul(t, args...)
	clitest.Refused(t, r.code, r.stdout, r.stderr, code, want)
}

// TestControlCharactersAreShown: what a file holds must not command the terminal.
func TestControlCharactersAreShown(t *testing.T) {
	if got, want := oneLine("a\x1b[31m\nb\x00\tc"), `a\x1b[31m; b\x00\x09c`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
