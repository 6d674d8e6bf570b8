package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "haul"

// house lists every package, from the hand to the metal. A package may import only what stands
// below it. A package that is not listed fails the test: give it its place here first, and say in
// docs/ARCHITECTURE.md what it is for.
var house = []string{
	"cmd/haul/e2e",
	"cmd/haul/clitest/inprocess",
	"cmd/haul",
	"cmd/haul/root",
	"cmd/haul/act",
	"cmd/haul/bench",
	"cmd/haul/check",
	"cmd/haul/config",
	"cmd/haul/convert",
	"cmd/haul/data",
	"cmd/haul/devices",
	"cmd/haul/doctor",
	"cmd/haul/eval",
	"cmd/haul/gen",
	"cmd/haul/lab",
	"cmd/haul/policies",
	"cmd/haul/problem",
	"cmd/haul/profile",
	"cmd/haul/serve",
	"cmd/haul/solve",
	"cmd/haul/train",
	"cmd/haul/version",
	"cmd/haul/routes",
	"cmd/haul/seeds",
	"cmd/haul/cli",
	"cmd/haul/clitest",
	"problems",
	"problems/cvrp",
	"problems/cvrpl",
	"problems/mdvrp",
	"problems/op",
	"problems/tsp",
	"problems/vrp",
	"internal/lint",
	"vrp/policy",
	"vrp",
	"vrp/internal/link",
	"diagnosis",
	"internal/serve",
	"internal/lab",
	"internal/solve",
	"internal/doctor",
	"internal/doctor/report",
	"internal/doctor/rule",
	"internal/doctor/analysis",
	"internal/doctor/trace",
	"internal/doctor/memory",
	"internal/doctor/phrase",
	"internal/doctor/nsys",
	"internal/doctor/xplane",
	"internal/recipe",
	"internal/recipe/routing",
	"internal/recipe/agent",
	"internal/recipe/ppo",
	"internal/recipe/recurrent",
	"internal/policy",
	"internal/run/runtest",
	"internal/run",
	"internal/report",
	"internal/comm",
	"internal/device",
	"internal/loader",
	"internal/kernel/kerneltest",
	"internal/model",
	"internal/plan",
	"internal/kernel/cpu",
	"internal/kernel/cpu/attention",
	"internal/kernel/cpu/dense",
	"internal/kernel/cpu/optimizer",
	"internal/kernel/cpu/routing",
	"internal/kernel/cpu/sequence",
	"internal/kernel/cpu/run",
	"internal/kernel/cpu/isa/isatest",
	"internal/kernel/cpu/isa",
	"internal/kernel/cuda",
	"internal/kernel/cuda/fuse",
	"internal/kernel/cuda/bindtest",
	"internal/kernel/cuda/attention",
	"internal/kernel/cuda/optimizer",
	"internal/kernel/cuda/routing",
	"internal/kernel/cuda/sequence",
	"internal/kernel/cuda/dense",
	"internal/kernel/cuda/bind",
	"internal/kernel/host",
	"internal/kernel/reference",
	"internal/ledger",
	"internal/kernel",
	"internal/world/xland/gpu",
	"internal/cu/cutest",
	"internal/rules/random",
	"internal/rules/check",
	"internal/rules/interpreted",
	"internal/ptx",
	"internal/rules/rulestest",
	"internal/rules/ptx",
	"internal/rules/walk",
	"internal/rules/vec",
	"internal/rules/native",
	"internal/rules/eval",
	"internal/rules",
	"internal/rules/lower",
	"internal/rules/parse",
	"internal/rules/ir",
	"internal/cu",
	"internal/draw",
	"internal/stats",
	"internal/safetensors",
	"internal/sqlite/sqlitetest",
	"internal/sqlite",
	"internal/world/history",
	"internal/world/episodic",
	"internal/world/xland",
	"internal/world/grid",
	"internal/world",
	"internal/vrp/testset",
	"internal/vrp/outputs",
	"internal/vrp/files",
	"internal/npy",
	"internal/search",
	"internal/search/construct",
	"internal/search/prove",
	"internal/search/cover",
	"internal/search/neighbour",
	"internal/search/model",
	"internal/vrp/vrptest",
	"internal/vrp",
	"internal/limits",
	"internal/config",
	"internal/schema/schematest",
	"internal/schema",
	"internal/pickle",
	"internal/limits/limitstest",
	"internal/rng",
	"configs",
	"policies",
	"problem",
}

// apart lists imports that the order allows and the design does not.
var apart = []struct {
	what     string
	importer func(string) bool
	imported func(string) bool
}{
	{"the kernels know no problem", aKernel, aProblem},
	{"only commands name a problem", func(p string) bool { return !under("cmd/")(p) && p != "problems" }, func(p string) bool { return p == "problems" || under("problems/")(p) }},
	{"recipes are imported by their list alone", not(oneOf("internal/recipe")), under("internal/recipe/")},
	{"a run knows no recipe, and reports tell of any", oneOf("internal/run", "internal/report"), func(p string) bool { return aProblem(p) || under("internal/recipe")(p) }},
	{"the loader knows no rows", oneOf("internal/loader"), func(p string) bool { return aProblem(p) || oneOf("internal/model", "internal/plan")(p) }},
	{"the interpreted driver is for tests", not(oneOf("internal/cu/cutest")), oneOf("internal/cu/cutest")},
	{"the interpreter serves tests and checks", not(oneOf("internal/cu/cutest", "internal/rules/interpreted")), oneOf("internal/ptx")},
	{"the driver knows no kernel", oneOf("internal/cu"), func(p string) bool { return strings.HasPrefix(p, "internal/kernel") }},
	{"an agent reads what a world declares and knows no game", oneOf("internal/recipe/agent"), oneOf("internal/world/grid", "internal/world/episodic", "internal/world/xland")},
	{"only internal/device opens the backends", not(oneOf("internal/device")), oneOf("internal/kernel/cpu", "internal/kernel/cuda")},
	{"a backend's families are its own", not(under("internal/kernel/")), func(p string) bool { return under("internal/kernel/cuda/")(p) || under("internal/kernel/cpu/")(p) }},
}

// aKernel: the contract, the reference and the backends with their families, but not the suite that
// compares them.
func aKernel(p string) bool {
	return p == "internal/kernel" || under("internal/kernel/")(p) && p != "internal/kernel/kerneltest"
}

// aProblem: the packages that know what is solved or played.
func aProblem(p string) bool {
	return oneOf("internal/vrp", "internal/search", "internal/world")(p) || under("internal/vrp/")(p) || under("internal/search/")(p) || under("internal/world/")(p)
}

func oneOf(list ...string) func(string) bool {
	return func(p string) bool { return slices.Contains(list, p) }
}

func under(prefix string) func(string) bool {
	return func(p string) bool { return strings.HasPrefix(p, prefix) }
}

func not(f func(string) bool) func(string) bool { return func(p string) bool { return !f(p) } }

// violations judges an import graph; paths are relative to the module.
func violations(graph map[string][]string) []string {
	var out []string
	for importer, imports := range graph {
		from := slices.Index(house, importer)
		if from < 0 {
			out = append(out, fmt.Sprintf("%s has no place in the house: add it to the list in internal/lint", importer))
			continue
		}
		for _, imported := range imports {
			if to := slices.Index(house, imported); to >= 0 && to <= from {
				out = append(out, fmt.Sprintf("%s imports %s, which stands above it", importer, imported))
			}
			for _, rule := range apart {
				if rule.importer(importer) && rule.imported(imported) {
					out = append(out, fmt.Sprintf("%s imports %s: %s", importer, imported, rule.what))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestImportsPointDown(t *testing.T) {
	graph, err := readGraph(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if len(graph["cmd/haul"]) == 0 {
		t.Fatalf("the walk found no imports of cmd/haul; it saw %d packages", len(graph))
	}
	for _, v := range violations(graph) {
		t.Error(v)
	}
}

func TestViolationsAreFound(t *testing.T) {
	for _, c := range []struct {
		name, importer, imported string
		want                     []string
	}{
		{"down", "internal/draw", "internal/vrp", nil},
		{"up", "internal/vrp", "internal/draw", []string{"internal/vrp imports internal/draw, which stands above it"}},
		{"self", "internal/rng", "internal/rng", []string{"internal/rng imports internal/rng, which stands above it"}},
		{"unlisted", "internal/misc", "internal/rng", []string{"internal/misc has no place in the house: add it to the list in internal/lint"}},
		{"kernel and routing", "internal/kernel/cpu", "internal/vrp", []string{"internal/kernel/cpu imports internal/vrp: the kernels know no problem"}},
		{"a family and routing", "internal/kernel/cuda/routing", "internal/vrp", []string{"internal/kernel/cuda/routing imports internal/vrp: the kernels know no problem"}},
		{"a family past its backend", "internal/device", "internal/kernel/cuda/routing", []string{"internal/device imports internal/kernel/cuda/routing: a backend's families are its own"}},
		{"a set's primitives past their backend", "internal/device", "internal/kernel/cpu/isa", []string{"internal/device imports internal/kernel/cpu/isa: a backend's families are its own"}},
		{"a program with the interpreted driver", "cmd/haul", "internal/cu/cutest", []string{"cmd/haul imports internal/cu/cutest: the interpreted driver is for tests"}},
		{"the suite may compare", "internal/kernel/kerneltest", "internal/vrp", nil},
		{"recipe and recipe", "internal/recipe/routing", "internal/recipe/ppo", []string{"internal/recipe/routing imports internal/recipe/ppo: recipes are imported by their list alone"}},
		{"the list of recipes", "internal/recipe", "internal/recipe/ppo", nil},
		{"recipe past the list", "cmd/haul", "internal/recipe/routing", []string{"cmd/haul imports internal/recipe/routing: recipes are imported by their list alone"}},
		{"a policy and its recipe", "internal/policy", "internal/recipe/routing", []string{
			"internal/policy imports internal/recipe/routing, which stands above it",
			"internal/policy imports internal/recipe/routing: recipes are imported by their list alone"}},
		{"a run and a problem", "internal/run", "internal/vrp", []string{"internal/run imports internal/vrp: a run knows no recipe, and reports tell of any"}},
		{"a report and a recipe", "internal/report", "internal/recipe/agent", []string{
			"internal/report imports internal/recipe/agent, which stands above it",
			"internal/report imports internal/recipe/agent: a run knows no recipe, and reports tell of any",
			"internal/report imports internal/recipe/agent: recipes are imported by their list alone"}},
		{"backend past device", "internal/run", "internal/kernel/cpu", []string{"internal/run imports internal/kernel/cpu: only internal/device opens the backends"}},
		{"backend from plan", "internal/plan", "internal/kernel/cuda", []string{"internal/plan imports internal/kernel/cuda: only internal/device opens the backends"}},
		{"backend from device", "internal/device", "internal/kernel/cpu", nil},
		{"driver and kernel", "internal/cu", "internal/kernel", []string{
			"internal/cu imports internal/kernel, which stands above it",
			"internal/cu imports internal/kernel: the driver knows no kernel"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := violations(map[string][]string{c.importer: {c.imported}})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// readGraph parses the import clauses of every package of the module, whatever its build tags.
// Test files are left out: a test may compare with anything.
func readGraph(root string) (map[string][]string, error) {
	graph := map[string][]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(root, file)
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(rel)
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		graph[pkg] = append(graph[pkg], ours(syntax)...)
		return nil
	})
	return graph, err
}

// ours returns the file's imports from this module, relative to it.
func ours(file *ast.File) []string {
	var out []string
	for _, spec := range file.Imports {
		full, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has accepted it, so it is a string literal
		}
		if rel, ok := strings.CutPrefix(full, module+"/"); ok {
			out = append(out, rel)
		}
	}
	return out
}

// skipDir leaves out what the go command leaves out: hidden and underscored folders, testdata, and
// folders with a module of their own.
func skipDir(root, dir string) error {
	if dir == root {
		return nil
	}
	base := filepath.Base(dir)
	// what .gitignore leaves out
	if filepath.Dir(dir) == root && (base == "build" || base == "runs" || base == "bin") {
		return filepath.SkipDir
	}
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}
