package solve_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest"
	"haul/cmd/haul/clitest/inprocess"
	"haul/cmd/haul/solve"
)

// The ways to solve that haul solve has: the arguments that ask for each.
var solveWays = map[string][]string{
	"file":              {"FILE"},
	"file exact":        {"FILE", "--method", "exact"},
	"file savings":      {"FILE", "--method", "savings"},
	"file search":       {"FILE", "--method", "search", "--iterations", "20"},
	"file policy":       {"FILE", "--policy", "cvrp20", "--decode", "greedy", "--device", "cpu"},
	"table":             {"TABLE", "--iterations", "20"},
	"check":             {"FILE", "--check", "SOL"},
	"generated":         {"--customers", "5"},
	"generated exact":   {"--customers", "5", "--method", "exact"},
	"generated savings": {"--customers", "5", "--method", "savings"},
	"generated search":  {"--customers", "5", "--method", "search", "--iterations", "20"},
	"set":               {"--testset", "kool", "--customers", "10"},
	"set search":        {"--testset", "kool", "--customers", "10", "--method", "search", "--iterations", "20"},
	"set routefinder":   {"--testset", "routefinder", "--customers", "50", "--iterations", "20"},
}

// What each flag of haul solve does: the ways in which it means something. In all others it is
// refused, with exit code 2. A way of one word stands for all that begin with it, unless one of
// them is named as well; "." names none.
var solveFlagTable = map[string]struct {
	args  []string
	takes []string
}{
	"customers":         {[]string{"10"}, []string{"generated", "set"}},
	"capacity":          {[]string{"40"}, []string{"generated", "table"}},
	"count":             {[]string{"2"}, []string{"generated", "set"}},
	"seed":              {[]string{"9"}, []string{"file", "file search", "file policy", "table", "generated"}},
	"first":             {[]string{"1"}, []string{"generated", "set"}},
	"distribution":      {[]string{"uniform"}, []string{"generated"}},
	"demand-range":      {[]string{"2,4"}, []string{"generated"}},
	"coord-range":       {[]string{"50"}, []string{"generated"}},
	"single-tour":       {nil, []string{"generated"}},
	"policy":            {[]string{"cvrp20"}, []string{"file", "file policy"}},
	"checkpoint":        {[]string{"RUN"}, []string{"file"}},
	"decode":            {[]string{"greedy"}, []string{"file policy"}},
	"device":            {[]string{"cpu"}, []string{"file policy"}},
	"method":            {[]string{"search"}, []string{"file", "table", "generated", "set"}},
	"workers":           {[]string{"1"}, []string{"file", "table", "generated", "set"}}, // at most so many
	"time":              {[]string{"20ms"}, []string{"file", "file policy"}},
	"time-per-instance": {[]string{"20ms"}, []string{"generated", "generated .", "set", "set ."}},
	"iterations":        {[]string{"20"}, []string{"file", "file search", "file policy", "table", "generated", "generated search", "set", "set search", "set routefinder"}},
	"target":            {[]string{"90"}, []string{"file", "file search", "file policy", "table"}},
	"start":             {[]string{"SOL"}, []string{"file", "file search"}},
	"fix":               {[]string{"1", "--start", "SOL"}, []string{"file", "file search"}},
	"curve":             {[]string{"NEW.svg"}, []string{"file", "file search", "file policy", "table"}},
	"vehicles":          {[]string{"0"}, []string{"file", "table", "check"}},
	"objective":         {[]string{"cost"}, []string{"file", "table", "check"}},
	"open":              {nil, []string{"file", "table", "check"}}, // or the problem is refused
	"fleet":             {[]string{"FLEET"}, []string{"table"}},
	"depots":            {[]string{"DEPOTS"}, []string{"table"}},
	"shipments":         {[]string{"SHIPMENTS"}, []string{"table"}},
	"distances":         {[]string{"MATRIX"}, []string{"table"}},
	"durations":         {[]string{"MATRIX"}, []string{"table"}},
	"speed":             {[]string{"30"}, []string{"table"}},
	"times":             {[]string{"minutes"}, []string{"table"}},
	"limit":             {[]string{"windows=2000"}, []string{"file", "table", "check"}},
	"force":             {nil, []string{"file", "table", "check"}}, // permission alone
	"testset":           {[]string{"kool"}, []string{"generated", "set"}},
	"variant":           {[]string{"vrptw"}, []string{"set routefinder"}},
	"split":             {[]string{"validation"}, []string{"set", "set search"}},
	"reference":         {[]string{"COSTS"}, []string{"set"}},
	"rounded":           {nil, []string{"set routefinder"}},
	"best-known":        {[]string{"90"}, []string{"file", "table", "check", "generated", "set"}},
	"distance":          {[]string{"exact"}, []string{"file", "table", "check"}},
	"out":               {[]string{"NEW.sol"}, []string{"file", "table"}},
	"plot":              {[]string{"NEW.svg"}, []string{"file", "table", "check"}},
	"check":             {[]string{"SOL"}, []string{"file", "file .", "check"}},
	"json":              {nil, []string{"file", "table", "check", "generated", "set"}},
	"help":              {nil, []string{"file", "table", "check", "generated", "set"}},
	"quiet":             {nil, []string{"file", "table", "check", "generated", "set"}},
}

// TestSolveRefusesWhatDoesNothing: every flag of haul solve has its row in the table; a way that
// has no use for it refuses it. --seed beside --method exact, --single-tour beside a capacity or a
// test set, and --time-per-instance beside exact and savings did nothing in silence.
func TestSolveRefusesWhatDoesNothing(t *testing.T) {
	dir := t.TempDir()
	file := clitest.Write(t, "square.vrp", clitest.SquareVRP)
	t.Setenv("XDG_CACHE_HOME", dir)
	table := clitest.Write(t, "stops.csv", "id,x,y,demand\n0,0,0,0\n1,3,4,3\n2,6,0,4\n3,0,7,2\n")
	sol := filepath.Join(dir, "square.sol")
	inprocess.Object(t, "solve", file, "--method", "exact", "--out", sol, "--json")
	costs := clitest.Write(t, "costs.txt", "4\n4\n")
	named := map[string]string{"FILE": file, "TABLE": table, "SOL": sol, "COSTS": costs, "RUN": dir,
		"FLEET": clitest.Write(t, "fleet.csv", "id,capacity\nvan,40\n"), "DEPOTS": clitest.Write(t, "depots.csv", "id,x,y\nd,0,0\n"),
		"SHIPMENTS": clitest.Write(t, "shipments.csv", "pickup,delivery,amount\n1,2,1\n"), "MATRIX": clitest.Write(t, "matrix.csv", "0,5,6,7\n5,0,5,5\n6,5,0,9\n7,5,9,0\n")}
	for _, args := range [][]string{{"--single-tour", "--capacity", "5"}, {"--single-tour", "--demand-range", "2,3"}, {"--distribution", "uniform", "--coord-range", "100"}} {
		for _, verb := range [][]string{{"solve"}, {"gen", "--out", "-"}} {
			if r := inprocess.Run(t, append(verb, args...)...); r.Code != cli.ExitUsage || !strings.Contains(r.Stderr, args[len(args)-2]) {
				t.Errorf("%v %v: exit %d, %q", verb, args, r.Code, r.Stderr)
			}
		}
	}
	if r := inprocess.Run(t, "solve", file, "--seed", "3"); r.Code != cli.ExitDone || r.Stderr != "square is solved by exact, which draws nothing: --seed has no effect\n" {
		t.Errorf("exit %d, %q", r.Code, r.Stderr)
	}
	flags := solve.New(&cli.App{}).Flags()
	var all []string
	flags.VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	for _, name := range all {
		if _, ok := solveFlagTable[name]; !ok {
			t.Errorf("--%s has no row in solveFlagTable", name)
		}
	}
	n := 0
	for name, row := range solveFlagTable {
		if name != "help" && name != "quiet" && !slices.Contains(all, name) {
			t.Errorf("solveFlagTable has --%s, which is no flag", name)
		}
		for way, with := range solveWays {
			first, _, _ := strings.Cut(way, " ")
			takes := slices.Contains(row.takes, way)
			if !takes && slices.Contains(row.takes, first) && !slices.ContainsFunc(row.takes, func(w string) bool { return strings.HasPrefix(w, first+" ") }) {
				takes = true
			}
			if slices.Contains(with, "--"+name) || takes && first == "table" { // what tables take, they test
				continue
			}
			args := []string{"solve"}
			for _, word := range append(slices.Clone(with), append([]string{"--" + name}, row.args...)...) {
				if path, ok := named[word]; ok {
					word = path
				}
				args = append(args, strings.Replace(word, "NEW", filepath.Join(dir, "new"+string(rune('a'+n%26))+strings.Repeat("x", n/26)), 1))
			}
			n++
			if takes && (first == "set" || way == "file policy" || slices.Contains([]string{"method", "checkpoint", "testset"}, name)) {
				continue // slow, or a way of its own
			}
			if name != "count" && (first == "generated" || first == "set") {
				args = append(args, "--count", "2")
			}
			r := inprocess.Run(t, args...)
			if takes && r.Code == cli.ExitUsage {
				t.Errorf("%s: %q", strings.Join(args, " "), r.Stderr)
			}
			if takes {
				continue
			}
			if r.Code != cli.ExitUsage || !strings.Contains(r.Stderr, "--") || strings.Count(r.Stderr, "\n") != 1 {
				t.Errorf("%s: exit %d, %q", strings.Join(args, " "), r.Code, r.Stderr)
			}
		}
	}
}
