package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The rules of a route stand once per language. What they keep of a customer and of a vehicle is
// theirs: a kernel that reads such a field decides by it, and the next rule forgets that kernel.

// rulesOf are the packages with rules in Go, and cudaRules those in CUDA.
var rulesOf = []string{"internal/kernel/reference", "internal/kernel/cpu/routing"}

const cudaRules = "internal/kernel/cuda/routing/src/rules.cuh"

// isRules says whether a file may use the rules' fields: rules.go, rules_<name>.go and their tests.
func isRules(path string) bool {
	base := strings.SplitN(filepath.Base(path), ".", 2)[0]
	return base == "rules" || strings.HasPrefix(base, "rules_")
}

// nothing imports nothing: what other packages declare stays unknown, and the package's own types
// are known without them.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	pkg := types.NewPackage(path, filepath.Base(path))
	pkg.MarkComplete()
	return pkg, nil
}

// fieldsUsed lists the uses, in other files of a package, of fields that its rules declare.
func fieldsUsed(set *token.FileSet, files []*ast.File) (out []string) {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	conf := types.Config{Importer: nothing{}, Error: func(error) {}}
	_, _ = conf.Check("p", set, files, info) // errors are of what is not imported
	for id, obj := range info.Uses {
		v, ok := obj.(*types.Var)
		if ok && v.IsField() && isRules(set.File(v.Pos()).Name()) && !isRules(set.File(id.Pos()).Name()) {
			out = append(out, set.Position(id.Pos()).String()+": "+id.Name+", a field of the rules")
		}
	}
	return out
}

// TestRulesInGo: no file beside rules.go touches a field of an instance, a vehicle or a tour.
func TestRulesInGo(t *testing.T) {
	for _, dir := range rulesOf {
		set := token.NewFileSet()
		paths, _ := filepath.Glob(filepath.Join(root, dir, "*.go"))
		var files []*ast.File
		for _, path := range paths {
			if f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution); err != nil {
				t.Fatal(err)
			} else if !strings.HasSuffix(f.Name.Name, "_test") {
				files = append(files, f)
			}
		}
		for _, used := range fieldsUsed(set, files) {
			t.Error(used)
		}
	}
}

// TestRulesInGoNotice: the check finds a field that is read, set in a literal, or reached through
// another struct, and leaves alone what bears the same name elsewhere.
func TestRulesInGoNotice(t *testing.T) {
	const rules = `package p
type vehicle struct{ left int }
func (v *vehicle) fits(d int) bool { return d <= v.left }`
	for body, want := range map[string]int{
		`func f(v *vehicle) int { return v.left }`:                                                1,
		`func f() vehicle { return vehicle{left: 3} }`:                                            1,
		`type row struct{ v vehicle }; func f(r []row) { r[0].v.left = other.Some() }`:            1,
		`type room struct{ left int }; func f(r room, v *vehicle) bool { return v.fits(r.left) }`: 0,
	} {
		set := token.NewFileSet()
		var files []*ast.File
		for name, text := range map[string]string{"rules.go": rules, "rollout.go": "package p\nimport \"other\"\n" + body} {
			f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		if got := fieldsUsed(set, files); len(got) != want {
			t.Errorf("%s: %d found, want %d: %v", body, len(got), want, got)
		}
	}
}

// In CUDA a field of a customer or vehicle ends in an underscore, and no other file reaches one.
var (
	cudaStruct = regexp.MustCompile(`(?ms)^struct (Customer|Vehicle|Shares) \{(.*?)^?\};`)
	cudaField  = regexp.MustCompile(`(?m)^\s*(?:int|float|u32|float4_) ([\w, ]+);`)
	cudaReach  = regexp.MustCompile(`(?:\.|->)\s*[A-Za-z]\w*_\b`)
)

// openFields are fields of the rules' structs that do not end in an underscore.
func openFields(source string) (out []string) {
	for _, s := range cudaStruct.FindAllStringSubmatch(source, -1) {
		for _, f := range cudaField.FindAllStringSubmatch(strings.ReplaceAll(s[2], ";", ";\n"), -1) {
			for name := range strings.SplitSeq(f[1], ",") {
				if !strings.HasSuffix(strings.TrimSpace(name), "_") {
					out = append(out, s[1]+"."+strings.TrimSpace(name))
				}
			}
		}
	}
	return out
}

func TestRulesInCUDA(t *testing.T) {
	rules, err := os.ReadFile(filepath.Join(root, cudaRules))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(cudaStruct.FindAllString(string(rules), -1)); got < 2 {
		t.Errorf("%s: %d of the rules' structs found, want Customer and Vehicle", cudaRules, got)
	}
	for _, f := range openFields(string(rules)) {
		t.Errorf("%s: the name of %s must end in an underscore", cudaRules, f)
	}
	err = filepath.WalkDir(filepath.Join(root, "internal/kernel/cuda"), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || isRules(path) || !strings.Contains(filepath.ToSlash(path), "/src/") {
			return err
		}
		source, err := os.ReadFile(path)
		for i, line := range strings.Split(string(source), "\n") {
			if m := cudaReach.FindString(line); m != "" {
				t.Errorf("%s:%d: %s, a field of the rules", path, i+1, m)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRulesInCUDANotice: what the two patterns find.
func TestRulesInCUDANotice(t *testing.T) {
	for line, want := range map[string]bool{
		"bool ok = wanted[k] <= v.left_;": true, "p->demand_ = 3;": true, "next.demand_ = shfl(mine.demand_, a);": true,
		"float y = sqrtf_(add_(x, y));": false, "v.fits(own[k])": false, "sum.x = fma_(a, b, sum.y);": false,
	} {
		if got := cudaReach.MatchString(line); got != want {
			t.Errorf("%s: found %v", line, got)
		}
	}
	if got := openFields("struct Customer { int demand; };\nstruct Vehicle {\n  int at_, left; // load\n  float x_;\n\n  __device__ int at() const { return at_; }\n};\n"); len(got) != 2 {
		t.Errorf("open fields %v, want Customer.demand and Vehicle.left", got)
	}
}
