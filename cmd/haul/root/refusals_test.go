package root_test

import (
	_ "embed"
	"path/filepath"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest"
	"haul/cmd/haul/clitest/inprocess"
)

// TestBadInput is the contract with a user who errs: one line on standard error that says what is
// wrong, nothing on standard output, and an exit code that tells a wrong command line from a
// failure.
func TestBadInput(t *testing.T) {
	square := clitest.Write(t, "square.vrp", clitest.SquareVRP)
	edit := func(old, new string) string {
		if !strings.Contains(clitest.SquareVRP, old) {
			t.Fatalf("the file has no %q", old)
		}
		return clitest.Write(t, "bad.vrp", strings.Replace(clitest.SquareVRP, old, new, 1))
	}
	windows := clitest.Write(t, "w.csv", "id,x,y,demand,ready,due\n0,0,0,0,0,90\n1,3,2,1,0,9\n2,5,9,1,20,30\n")
	globe := clitest.Write(t, "g.csv", "id,lat,lon,demand,ready,due\n0,50,8,0,0,9000\n1,50.1,8.1,1,0,9000\n2,50.2,8,1,20,9000\n")
	sol := func(text string) string { return clitest.Write(t, "x.sol", text) }
	nowhere := filepath.Join(t.TempDir(), "missing", "x")
	truncated := clitest.Write(t, "cut.vrp", clitest.SquareVRP[:strings.Index(clitest.SquareVRP, "4 -10")])

	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"no such file", []string{"solve", "nosuch.vrp"}, cli.ExitFailed, "nosuch.vrp"},
		{"an empty file", []string{"solve", clitest.Write(t, "nothing.vrp", "")}, cli.ExitFailed, "empty"},
		{"a truncated section", []string{"solve", truncated}, cli.ExitFailed, "NODE_COORD_SECTION"},
		{"a dimension that disagrees", []string{"solve", edit("DIMENSION : 5", "DIMENSION : 7")}, cli.ExitFailed, "7"},
		{"a demand over capacity", []string{"solve", edit("3 5", "3 11")}, cli.ExitFailed, "11"},
		{"a NaN coordinate", []string{"solve", edit("2 10 0", "2 NaN 0")}, cli.ExitFailed, "NaN"},
		{"an unsupported key", []string{"solve", edit("CAPACITY : 10", "CAPACITY : 10\nBACKHAULS : 99")}, cli.ExitFailed, "BACKHAULS"},
		{"a route limit too short", []string{"solve", edit("CAPACITY : 10", "CAPACITY : 10\nDISTANCE : 9")}, cli.ExitFailed, "alone takes 20"},
		{"routes kept of no start", []string{"solve", square, "--fix", "1"}, cli.ExitUsage, "--fix keeps routes of a start: name it with --start"},
		{"a route kept that is none", []string{"solve", square, "--start", sol(clitest.SquareSOL), "--fix", "3"}, cli.ExitFailed, "there is no route 3: the start has routes 1 to 2"},
		{"more stops kept than there are", []string{"solve", square, "--start", sol(clitest.SquareSOL), "--fix", "2:3"}, cli.ExitFailed, "route 2 has 2 stops, not 3"},
		{"a word for a route", []string{"solve", square, "--start", sol(clitest.SquareSOL), "--fix", "one"}, cli.ExitUsage, `"one" is no route`},
		{"a start that breaks a rule", []string{"solve", square, "--start", sol("Route #1: 1 2 3\n")}, cli.ExitFailed, "carries 15, the capacity is 10"},
		{"a solution for a problem", []string{"solve", sol(clitest.SquareSOL)}, cli.ExitFailed, "this is a solution (.sol)"},
		{"Solomon's file", []string{"solve", clitest.Write(t, "c101.txt", "C101\n\nVEHICLE\nNUMBER CAPACITY\n25 200\n")}, cli.ExitFailed, "CUSTOMER"},
		{"a start of another instance", []string{"solve", square, "--start", sol("Route #1: 1 2\nRoute #2: 3 4\nRoute #3: 5\n")}, cli.ExitFailed, "not a solution of square"},
		{"an existing solution", []string{"solve", square, "--out", sol(clitest.SquareSOL)}, cli.ExitFailed, "--force"},
		{"an existing picture", []string{"solve", square, "--plot", clitest.Write(t, "r.svg", "mine")}, cli.ExitFailed, "--force"},
		{"a limit for the exact method", []string{"solve", clitest.Write(t, "m.vrp", clitest.ManyVRP(13)), "--vehicles", "3", "--method", "exact"}, cli.ExitFailed, "knows no limit but the capacity"},
		{"a limit for savings", []string{"solve", square, "--open", "--method", "savings"}, cli.ExitFailed, "its routes are open"},
		{"a table without a capacity", []string{"solve", clitest.Write(t, "a.csv", "id,x,y,demand\n0,1,2,0\n1,3,2,9\n")}, cli.ExitUsage, "--capacity is missing"},
		{"a port past the last", []string{"serve", "--addr", "127.0.0.1:99999"}, cli.ExitUsage, "a port is at most 65535"},
		{"instances past any memory", []string{"eval", "--policy", "cvrp20", "--count", "100000000"}, cli.ExitUsage, "at most 1000000"},
		{"a file past any memory", []string{"gen", "grid:10", "--count", "1000000000", "--out", "x.npz"}, cli.ExitUsage, "at most 9090909 instances of 10 customers"},
		{"processes past any machine", []string{"train", "--processes", "100000"}, cli.ExitUsage, "--processes is 100000: at most"},
		{"no name", []string{"solve", ""}, cli.ExitUsage, "the name of the file with the problem is empty"},
		{"an empty policy", []string{"solve", square, "--policy", ""}, cli.ExitUsage, "--policy is empty"},
		{"nothing to fix", []string{"solve", square, "--start", square, "--fix", ""}, cli.ExitUsage, "--fix is empty"},
		{"no severity", []string{"doctor", square, "--fail-on", ""}, cli.ExitUsage, "--fail-on is empty"},
		{"empty settings", []string{"config", "show", "--config", ""}, cli.ExitUsage, "--config is empty"},
		{"a set in place of a file", []string{"solve", "../../../docs/examples/uniform10.npz"}, cli.ExitUsage, "haul eval ../../../docs/examples/uniform10.npz"},
		{"a packed file", []string{"solve", "../../../docs/examples/trace.json.gz"}, cli.ExitFailed, "packed by gzip"},
		{"a spreadsheet's text", []string{"solve", clitest.Write(t, "u.csv", "\xff\xfei\x00d\x00"), "--capacity", "5"}, cli.ExitFailed, "UTF-16"},
		{"a program for routes", []string{"check", square, clitest.Write(t, "x.sol", "\x7fELF\x00\x01")}, cli.ExitFailed, "not a text file"},
		{"past the stream's end", []string{"gen", "grid:10", "--first", "18446744073709551615", "--count", "2", "--out", "x"}, cli.ExitUsage, "pass the end of the stream"},
		{"windows and a policy of plain CVRP", []string{"solve", windows, "--capacity", "5", "--set", "distance=exact", "--policy", "cvrp20"}, cli.ExitFailed, "the policy cannot route it: it has time windows: --policy vrp50 can"},
		{"windows on the globe", []string{"solve", globe, "--capacity", "5", "--speed", "50", "--policy", "auto"}, cli.ExitFailed, "no shipped policy fits: its distances are not those of straight lines"},
		{"auto where no problem is", []string{"eval", "--policy", "auto"}, cli.ExitUsage, `no policy "auto": there are cvrp20`},
		{"a table without a column", []string{"solve", clitest.Write(t, "a.csv", "id,x,y\n0,1,2\n"), "--capacity", "5"}, cli.ExitFailed, `no column "demand"`},
		{"a table with a NaN", []string{"solve", clitest.Write(t, "a.csv", "id,x,y,demand\n0,1,2,0\n1,NaN,2,1\n"), "--capacity", "5"}, cli.ExitFailed, "a.csv:3"},
		{"a table over capacity", []string{"solve", clitest.Write(t, "a.csv", "id,x,y,demand\n0,1,2,0\n1,3,2,9\n"), "--capacity", "5"}, cli.ExitFailed, "over the capacity 5"},
		{"a test set that is none", []string{"eval", clitest.Write(t, "a.npz", "x")}, cli.ExitFailed, "not an .npz file"},
		{"a folder for a file", []string{"solve", t.TempDir()}, cli.ExitFailed, "is a folder"},
		{"a file too large for exact", []string{"solve", clitest.Write(t, "many.vrp", clitest.ManyVRP(30)), "--method", "exact"}, cli.ExitFailed, "exact takes up to 22 customers, these are 30: use search"},
		{"no coordinates to draw", []string{"solve", clitest.Write(t, "tri.vrp", clitest.ExplicitVRP), "--plot", filepath.Join(t.TempDir(), "r.svg")}, cli.ExitFailed, "no coordinates"},

		{"unwritable solution", []string{"solve", square, "--out", nowhere}, cli.ExitFailed, "cannot write"},
		{"unwritable picture", []string{"solve", square, "--plot", nowhere + ".svg"}, cli.ExitFailed, "cannot write"},
		{"unwritable folder", []string{"gen", "grid:10", "--out", filepath.Join(square, "dir")}, cli.ExitFailed, "cannot write"},

		{"a customer twice", []string{"check", square, sol("Route #1: 1 2\nRoute #2: 3 1\nCost 68\n")}, cli.ExitFailed, "customer 1 visited twice"},
		{"a customer left out", []string{"check", square, sol("Route #1: 1 2\nRoute #2: 3\nCost 54\n")}, cli.ExitFailed, "customer 4 is never visited"},
		{"a full vehicle", []string{"check", square, sol("Route #1: 1 2 3\nRoute #2: 4\nCost 68\n")}, cli.ExitFailed, "carries 15, capacity 10"},
		{"a wrong cost", []string{"check", square, sol("Route #1: 1 2\nRoute #2: 3 4\nCost 67\n")}, cli.ExitFailed, "states cost 67, its routes cost 68"},
		{"no such solution", []string{"check", square, "nosuch.sol"}, cli.ExitFailed, "nosuch.sol"},

		{"a negative count", []string{"eval", "grid:10", "--count", "-3"}, cli.ExitUsage, "--count is -3"},
		{"count 0", []string{"gen", "grid:10", "--count", "0", "--out", "x"}, cli.ExitUsage, "--count is 0"},
		{"capacity 0", []string{"eval", "grid:10", "--capacity", "0"}, cli.ExitUsage, "capacity is 0"},
		{"no customers", []string{"eval", "grid:0"}, cli.ExitUsage, "the number of customers is"},
		{"too many customers", []string{"eval", "grid:2000000000"}, cli.ExitUsage, "the number of customers is"},
		{"demands past capacity", []string{"eval", "grid:10", "--capacity", "5"}, cli.ExitUsage, "capacity 5"},
		{"demands reversed", []string{"eval", "grid:10", "--demand-range", "9,1"}, cli.ExitUsage, "reversed"},
		{"demands unreadable", []string{"eval", "grid:10", "--demand-range", "1-9"}, cli.ExitUsage, `"1-9"`},
		{"time 0", []string{"solve", square, "--time", "0"}, cli.ExitUsage, "--time is 0s"},
		{"time below 0", []string{"solve", square, "--time", "-1s"}, cli.ExitUsage, "--time is -1s"},
		{"iterations 0", []string{"solve", square, "--iterations", "0"}, cli.ExitUsage, "--iterations is 0"},
		{"time and iterations", []string{"solve", square, "--time", "1s", "--iterations", "5"}, cli.ExitUsage, "both say how long"},
		{"target NaN", []string{"solve", square, "--target", "NaN"}, cli.ExitUsage, "--target"},
		{"vehicles below 0", []string{"solve", square, "--vehicles", "-2"}, cli.ExitUsage, "--vehicles is -2"},
		{"time for the exact method", []string{"solve", square, "--time", "1s", "--method", "exact"}, cli.ExitUsage, "about the search"},
		{"a range of the unit square", []string{"gen", "uniform:10", "--coord-range", "10", "--out", t.TempDir()}, cli.ExitUsage, "--coord-range is about the grid"},
		{"a range of the unit square, solved", []string{"eval", "uniform:10", "--coord-range", "101"}, cli.ExitUsage, "--coord-range is about the grid"},
		{"no such test set", []string{"eval", "kool:33"}, cli.ExitUsage, "10, 20, 50 or 100"},
		{"a test set of nobody", []string{"eval", "kool:0", "--policy", "cvrp20", "--device", "cpu"}, cli.ExitUsage, "the number of customers is"},
		{"no such split", []string{"gen", "kool:10/train", "--out", "x.npz"}, cli.ExitUsage, "test or validation"},
		{"a test set to make from a file", []string{"gen", "x.npz", "--out", "y.npz"}, cli.ExitUsage, "cannot be made: name grid:20"},
		{"a test set and a seed", []string{"gen", "kool:10", "--seed", "5", "--out", "x.npz"}, cli.ExitUsage, "leave --seed out"},
		{"past a test set's end", []string{"gen", "kool:10", "--first", "9999", "--count", "2", "--out", "x.npz"}, cli.ExitUsage, "pass the 10000 instances"},
		{"unknown method", []string{"solve", square, "--method", "magic"}, cli.ExitUsage, `unknown method "magic"`},
		{"unknown distribution", []string{"eval", "gauss:10"}, cli.ExitUsage, "gauss:10 is neither a file nor the name of a set"},
		{"unknown distance", []string{"solve", square, "--set", "distance=taxi"}, cli.ExitUsage, `unknown distance "taxi"`},
		{"unknown picture format", []string{"solve", square, "--plot", "r.gif"}, cli.ExitUsage, ".svg or .png"},
		{"N too large for exact", []string{"eval", "grid:40", "--method", "exact"}, cli.ExitUsage, "exact takes up to 22 customers, these are 40"},
		{"best known 0", []string{"solve", square, "--best-known", "0"}, cli.ExitUsage, "--best-known"},
		{"best known NaN", []string{"solve", square, "--best-known", "NaN"}, cli.ExitUsage, "--best-known"},
		{"no workers", []string{"solve", square, "--workers", "0"}, cli.ExitUsage, "--workers is 0"},
		{"a generator's flag with a file", []string{"solve", square, "--customers", "5"}, cli.ExitUsage, "--customers"},
		{"a file's flag without one", []string{"solve", "--out", "x.sol"}, cli.ExitUsage, "name the file to solve"},
		{"solve and check at once", []string{"check", square, "x.sol", "--method", "exact"}, cli.ExitUsage, "unknown flag --method"},
		{"two files", []string{"solve", square, square}, cli.ExitUsage, "unexpected argument"},
		{"gen without a folder", []string{"gen", "grid:10"}, cli.ExitUsage, "--out is missing"},
		{"unknown flag", []string{"solve", "--kustomers", "5"}, cli.ExitUsage, "--kustomers"},
		{"unknown verb", []string{"sovle"}, cli.ExitUsage, `did you mean "solve"`},
		{"unknown benchmark", []string{"bench", "costs"}, cli.ExitUsage, `did you mean "cost"`},
		{"a word for a number", []string{"eval", "grid:10", "--count", "many"}, cli.ExitUsage, `"many"`},
		{"rounds 0", []string{"bench", "cost", "--rounds", "0"}, cli.ExitUsage, "--rounds is 0"},

		{"unknown key", []string{"config", "check", clitest.Write(t, "key.yaml", "training:\n  bach_size: 3\n")}, cli.ExitFailed, "batch_size"},
		{"a tab in YAML", []string{"config", "check", clitest.Write(t, "tab.yaml", "training:\n\tbatch_size: 3\n")}, cli.ExitFailed, "tab"},
		{"no such config", []string{"config", "check", "nosuch/tiny_1.yaml"}, cli.ExitFailed, "nosuch/tiny_1.yaml"},
		{"unknown set", []string{"config", "show", "--set", "training.bach_size=3"}, cli.ExitUsage, "batch_size"},
		{"nothing to check", []string{"config", "check"}, cli.ExitUsage, "FILE"},
		{"unknown key to explain", []string{"config", "explain", "training.bach_size"}, cli.ExitUsage, "batch_size"},
	} {
		t.Run(c.name, func(t *testing.T) { inprocess.Refused(t, c.args, c.code, c.want) })
	}
}
