package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// switches is the number of boolean fields in the structs of each package of the search. What a
// problem asks for is a trait with a name (model.Traits). A number only goes down.
var switches = map[string]int{
	"internal/search":           20,
	"internal/search/construct": 0,
	"internal/search/prove":     7,
	"internal/search/cover":     2,
	"internal/search/neighbour": 1,
	"internal/search/model":     7,
}

// booleanFields counts the boolean fields of struct types in Go source.
func booleanFields(file *ast.File) (n int) {
	ast.Inspect(file, func(node ast.Node) bool {
		s, ok := node.(*ast.StructType)
		if !ok {
			return true
		}
		for _, f := range s.Fields.List {
			if id, ok := f.Type.(*ast.Ident); ok && id.Name == "bool" {
				n += len(f.Names)
			}
		}
		return true
	})
	return n
}

func TestSwitchesOfTheSearch(t *testing.T) {
	got := map[string]int{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(filepath.Join(root, "internal", "search"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		got[filepath.ToSlash(dir)] += booleanFields(file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, n := range got {
		most, listed := switches[dir]
		if !listed {
			t.Errorf("%s is not listed", dir)
		}
		if n > most {
			t.Errorf("%s has %d boolean fields, %d at most: make it a trait, or a type with names", dir, n, most)
		} else if n < most {
			t.Errorf("%s has %d boolean fields: lower its number from %d", dir, n, most)
		}
	}
}
