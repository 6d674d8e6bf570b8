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
	"haul/cmd/haul/root"
)

// The ways to solve, to check and to test methods: the arguments that ask for each.
var ways = map[string][]string{
	"file":              {"solve", "FILE"},
	"file exact":        {"solve", "FILE", "--method", "exact"},
	"file savings":      {"solve", "FILE", "--method", "savings"},
	"file search":       {"solve", "FILE", "--method", "search", "--iterations", "20"},
	"file policy":       {"solve", "FILE", "--policy", "cvrp20", "--set", "decode=greedy", "--set", "device=cpu"},
	"table":             {"solve", "TABLE", "--iterations", "20"},
	"check":             {"check", "FILE", "SOL"},
	"generated":         {"eval", "grid:5"},
	"generated exact":   {"eval", "grid:5", "--method", "exact"},
	"generated savings": {"eval", "grid:5", "--method", "savings"},
	"generated search":  {"eval", "grid:5", "--method", "search", "--iterations", "20"},
	"set":               {"eval", "kool:10"},
	"set search":        {"eval", "kool:10", "--method", "search", "--iterations", "20"},
	"set routefinder":   {"eval", "routefinder:vrptw/50", "--iterations", "20"},
}

// What each flag of haul solve, haul check and of the sets of haul eval does: the ways in which it
// means something. In all others of a verb that has it, it is refused, with exit code 2. A way of
// one word stands for all that begin with it, unless one of them is named as well; "." names none.
var flagTable = map[string]struct {
	args  []string
	takes []string
}{
	"capacity":     {[]string{"40"}, []string{"generated", "table"}},
	"count":        {[]string{"2"}, []string{"generated", "set"}},
	"seed":         {[]string{"9"}, []string{"file", "file search", "file policy", "table", "generated"}},
	"first":        {[]string{"1"}, []string{"generated", "set"}},
	"demand-range": {[]string{"2,4"}, []string{"generated"}},
	"coord-range":  {[]string{"50"}, []string{"generated"}},
	"policy":       {[]string{"cvrp20"}, []string{"file", "file policy", "set", "set .", "generated ."}},
	"method":       {[]string{"search"}, []string{"file", "table", "generated", "set"}},
	"workers":      {[]string{"1"}, []string{"file", "table", "generated", "set"}}, // at most so many
	"time":         {[]string{"20ms"}, []string{"file", "file policy", "generated", "generated .", "set", "set ."}},
	"iterations":   {[]string{"20"}, []string{"file", "file search", "file policy", "table", "generated", "generated search", "set", "set search", "set routefinder"}},
	"target":       {[]string{"90"}, []string{"file", "file search", "file policy", "table"}},
	"start":        {[]string{"SOL"}, []string{"file", "file search"}},
	"fix":          {[]string{"1", "--start", "SOL"}, []string{"file", "file search"}},
	"curve":        {[]string{"NEW.svg"}, []string{"file", "file search", "file policy", "table"}},
	"vehicles":     {[]string{"0"}, []string{"file", "table", "check"}},
	"objective":    {[]string{"cost"}, []string{"file", "table", "check"}},
	"open":         {nil, []string{"file", "table", "check"}}, // or the problem is refused
	"with":         {[]string{"fleet=FLEET"}, []string{"table"}},
	"speed":        {[]string{"30"}, []string{"table"}},
	"set":          {[]string{"windows=2000"}, []string{"file", "table", "check"}},
	"force":        {nil, []string{"file", "table", "check"}}, // permission alone
	"reference":    {[]string{"COSTS"}, []string{"set"}},
	"rounded":      {nil, []string{"set routefinder"}},
	"best-known":   {[]string{"90"}, []string{"file", "table", "check", "generated", "set"}},
	"out":          {[]string{"NEW.sol"}, []string{"file", "table"}},
	"plot":         {[]string{"NEW.svg"}, []string{"file", "table", "check"}},
	"json":         {nil, []string{"file", "table", "check", "generated", "set"}},
	"help":         {nil, []string{"file", "table", "check", "generated", "set"}},
	"quiet":        {nil, []string{"file", "table", "check", "generated", "set"}},
	// of trained models alone
	"agents":      {[]string{"2"}, nil},
	"checkpoint":  {[]string{"RUN"}, []string{"set", "set .", "generated ."}},
	"customers":   {[]string{"9"}, nil},
	"decode":      {[]string{"pomo"}, nil},
	"device":      {[]string{"cpu"}, nil},
	"distance":    {[]string{"exact"}, nil},
	"episodes":    {[]string{"2"}, nil},
	"goals":       {[]string{"all"}, nil},
	"history":     {[]string{"x.hist"}, nil},
	"model":       {[]string{"AD"}, nil},
	"precision":   {[]string{"fp32"}, nil},
	"search":      {[]string{"1"}, nil},
	"temperature": {[]string{"1"}, nil},
	"tune":        {[]string{"1"}, nil},
	// of a set, which SET says
	"instances": {[]string{"x.npz"}, nil},
	"split":     {[]string{"test"}, nil},
	"testset":   {[]string{"kool"}, nil},
	"variant":   {[]string{"cvrp"}, nil},
}

// TestSolveRefusesWhatDoesNothing: every flag of these verbs has its row in the table; a way that
// has no use for it refuses it. --seed beside --method exact, a capacity of one tour, and a time
// beside exact and savings did nothing in silence.
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
	for _, args := range [][]string{{"tsp:10", "--capacity", "5"}, {"tsp-grid:10", "--demand-range", "2,3"}, {"uniform:10", "--coord-range", "100"}} {
		for _, verb := range [][]string{{"eval"}, {"gen", "--out", "-"}} {
			if r := inprocess.Run(t, append(verb, args...)...); r.Code != cli.ExitUsage || !strings.Contains(r.Stderr, args[len(args)-2]) {
				t.Errorf("%v %v: exit %d, %q", verb, args, r.Code, r.Stderr)
			}
		}
	}
	if r := inprocess.Run(t, "solve", file, "--seed", "3"); r.Code != cli.ExitDone || r.Stderr != "square is solved by exact, which draws nothing: --seed has no effect\n" {
		t.Errorf("exit %d, %q", r.Code, r.Stderr)
	}
	flags := map[string][]string{}
	for _, verb := range root.New(&cli.App{}).Commands() {
		if name := verb.Name(); name == "solve" || name == "check" || name == "eval" {
			verb.Flags().VisitAll(func(f *pflag.Flag) {
				flags[name] = append(flags[name], f.Name)
				if _, ok := flagTable[f.Name]; !ok {
					t.Errorf("--%s of haul %s has no row in flagTable", f.Name, name)
				}
			})
		}
	}
	n := 0
	for name, row := range flagTable {
		for way, with := range ways {
			if !slices.Contains(flags[with[0]], name) {
				continue
			}
			first, _, _ := strings.Cut(way, " ")
			takes := slices.Contains(row.takes, way)
			if !takes && slices.Contains(row.takes, first) && !slices.ContainsFunc(row.takes, func(w string) bool { return strings.HasPrefix(w, first+" ") }) {
				takes = true
			}
			if slices.Contains(with, "--"+name) || takes && first == "table" { // what tables take, they test
				continue
			}
			var args []string
			for _, word := range append(slices.Clone(with), append([]string{"--" + name}, row.args...)...) {
				for key, path := range named {
					if word == key || strings.HasSuffix(word, "="+key) {
						word = strings.TrimSuffix(word, key) + path
					}
				}
				args = append(args, strings.Replace(word, "NEW", filepath.Join(dir, "new"+string(rune('a'+n%26))+strings.Repeat("x", n/26)), 1))
			}
			n++
			if takes && (first == "set" || way == "file policy" || slices.Contains([]string{"method", "policy", "checkpoint"}, name)) {
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
