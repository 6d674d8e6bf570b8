package doctor

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Inside each package of the doctor the files stand on floors: a file uses what stands below it and
// nothing that, by whatever way, uses it. So each can be read with what it needs and no more.
func TestFilesUseOnlyWhatStandsBelow(t *testing.T) {
	for _, name := range []string{"phrase", "trace", "analysis", "rule", "report"} {
		uses := usesOf(t, name)
		for from := range uses {
			if way := wayBack(uses, from); way != nil {
				t.Errorf("%s: %s", name, strings.Join(way, " uses "))
			}
		}
	}
}

// usesOf is which file of a package uses names of which other.
func usesOf(t *testing.T, name string) map[string][]string {
	t.Helper()
	list, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export", "./"+name).Output()
	if err != nil {
		t.Skipf("go list: %v", err)
	}
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(list)); d.More(); {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
	}
	fset := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(name, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, p, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	pkg, err := (&types.Config{Importer: importer.ForCompiler(fset, "gc", open)}).Check(name, fset, files, info)
	if err != nil {
		t.Fatal(err)
	}
	uses := map[string][]string{}
	for id, o := range info.Uses {
		local := o.Parent() != nil && o.Parent() != pkg.Scope()
		from, to := filepath.Base(fset.Position(id.Pos()).Filename), filepath.Base(fset.Position(o.Pos()).Filename)
		if o.Pkg() == pkg && !local && from != to && !slices.Contains(uses[from], to) {
			uses[from] = append(uses[from], to)
		}
	}
	return uses
}

// wayBack is a way from a file over others to itself, or nil.
func wayBack(uses map[string][]string, start string) []string {
	seen := map[string]bool{}
	var walk func(at string, way []string) []string
	walk = func(at string, way []string) []string {
		for _, to := range uses[at] {
			if to == start {
				return append(way, to)
			}
			if !seen[to] {
				seen[to] = true
				if found := walk(to, append(way, to)); found != nil {
					return found
				}
			}
		}
		return nil
	}
	return walk(start, []string{start})
}
