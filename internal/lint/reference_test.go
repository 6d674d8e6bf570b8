package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The reference judges the devices, so it may share no code with them: it imports the contract, the
// random numbers, whose vectors are published, and the standard library. The contract is shared by
// all, so none of its functions computes a tensor's elements.

// referenceImports lists a file's imports that the reference may not have.
func referenceImports(f *ast.File) (bad []string) {
	for _, spec := range f.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		first, _, _ := strings.Cut(path, "/")
		if (first == "haul" || strings.Contains(first, ".")) && !slices.Contains([]string{"haul/internal/kernel", "haul/internal/rng", "haul/internal/rules", "haul/internal/rules/eval"}, path) {
			bad = append(bad, path)
		}
	}
	return bad
}

// mayCount are functions of the contract that take or return numbers of a program, or places of
// episodes, and no elements.
var mayCount = []string{"Values", "Named", "NewSums", "TreeSum", "StartsOf", "LastStart"}

// elementFunctions lists the exported functions and methods of a file that take or return slices of
// a tensor's element types, except for those of mayCount, and those that take or return words of
// random bits. Types that only have such slices as fields are data.
func elementFunctions(f *ast.File) (bad []string) {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || !fn.Name.IsExported() || slices.Contains(mayCount, fn.Name.Name) {
			continue
		}
		generic := map[string]bool{}
		if fn.Type.TypeParams != nil {
			for _, p := range fn.Type.TypeParams.List {
				for _, name := range p.Names {
					generic[name.Name] = true
				}
			}
		}
		element := func(e ast.Expr) bool {
			id, ok := e.(*ast.Ident)
			return ok && (generic[id.Name] || slices.Contains([]string{"float32", "float64", "int32", "uint32"}, id.Name))
		}
		found := false
		for _, list := range []*ast.FieldList{fn.Type.Params, fn.Type.Results} {
			if list == nil {
				continue
			}
			ast.Inspect(list, func(n ast.Node) bool {
				a, ok := n.(*ast.ArrayType)
				found = found || ok && element(a.Elt)
				return true
			})
			for _, p := range list.List { // single numbers: a way, a feature
				id, ok := p.Type.(*ast.Ident)
				found = found || ok && list == fn.Type.Params && (id.Name == "float32" || id.Name == "float64" || generic[id.Name])
			}
		}
		if found {
			bad = append(bad, fn.Name.Name)
		}
	}
	return bad
}

func filesOf(t *testing.T, dir string) map[string]*ast.File {
	t.Helper()
	out := map[string]*ast.File{}
	paths, _ := filepath.Glob(filepath.Join(root, dir, "*.go"))
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		out[path] = f
	}
	if len(out) == 0 {
		t.Fatalf("no files in %s", dir)
	}
	return out
}

// TestReferenceSharesNothing: the reference imports the contract, internal/rng, the plain form of
// problem files and the standard library alone.
func TestReferenceSharesNothing(t *testing.T) {
	for path, f := range filesOf(t, "internal/kernel/reference") {
		for _, bad := range referenceImports(f) {
			t.Errorf("%s imports %s: the reference shares code with what it judges", path, bad)
		}
	}
}

// TestContractComputesNothing: no exported function of the contract computes a tensor's elements.
func TestContractComputesNothing(t *testing.T) {
	for path, f := range filesOf(t, "internal/kernel") {
		for _, name := range elementFunctions(f) {
			t.Errorf("%s: %s takes or returns a tensor's elements: it belongs to internal/kernel/host, and the reference has its own", path, name)
		}
	}
}

// TestPlantedFunctionsAreFound: both checks find what they are for, and leave data alone.
func TestPlantedFunctionsAreFound(t *testing.T) {
	for body, want := range map[string]int{
		`func (s *RegionSpec) Row(index, labels []int32, g uint64) {}`:      1,
		`func Leg(x0, y0, x1, y1 float32) float32 { return 0 }`:             1,
		`func FeaturesVRP[F float32 | float64](to []F, x, y F) {}`:          1,
		`func Fill(streams []int32) func(parts [][]int32) { return nil }`:   1,
		`func Keep(threshold uint32, words [4]uint32) uint32 { return 0 }`:  1,
		`func Columns() []string { return nil }`:                            0,
		`func NewSums(names []string, values []float64) Sums { return 0 }`:  0,
		`func fill(to []float32) {}`:                                        0,
		`type Own struct { Windows []Window; Limit float32; Words []int32}`: 0,
		`type Runner interface { ReadGrad(to []float32) error }`:            0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "p.go", "package p\n"+body, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := elementFunctions(f); len(got) != want {
			t.Errorf("%s: found %v, want %d", body, got, want)
		}
	}
	for path, want := range map[string]int{"math": 0, "haul/internal/kernel": 0, "haul/internal/rng": 0, "haul/internal/rules/eval": 0, "haul/internal/rules/vec": 1, "haul/internal/kernel/host": 1, "haul/internal/vrp": 1,
		"golang.org/x/sys/cpu": 1} {
		f, err := parser.ParseFile(token.NewFileSet(), "p.go", "package p\nimport _ \""+path+"\"\n", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := referenceImports(f); len(got) != want {
			t.Errorf("import %s: found %v, want %d", path, got, want)
		}
	}
}
