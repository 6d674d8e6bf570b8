package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"haul/internal/limits"
)

// listening are calls by which a function counts its work against a limit, or hears that its work
// is not wanted any more.
var listening = regexp.MustCompile(`^(add|row|cell|sheet|Over|Beyond|Err|Cause|Token|halted|late|stopped)$`)

// bounded are loops within loops over input that neither count nor listen, with what bounds their
// work: limits of the table ("types x depots"), or a sentence's worth of reason behind a colon.
var bounded = map[string]string{
	"vrp.ParseMix":               ": words of a flag",
	"vrp.Solve":                  ": at most MaxExactN customers",
	"vrp.alone":                  "places x types",
	"vrp.begin":                  "places x all-windows",
	"vrp.checkDimensions":        "places x dimensions",
	"vrp.checkSums":              "windows x breaks",
	"vrp.fix":                    ": at most MaxExactN customers",
	"vrp.gather":                 ": as many customers as a policy routes",
	"vrp.label":                  ": at most MaxExactN customers",
	"vrp.loads":                  "places x dimensions",
	"vrp.route":                  ": at most MaxExactN customers",
	"vrp.soonest":                "places x breaks",
	"vrp.try":                    ": at most MaxExactN customers",
	"vrp/files.ReadCordeau":      ": mostVehicles for each of the depots, which are lines",
	"vrp/files.ReadSolution":     ": words of each line",
	"vrp/files.ReadSolutionJSON": ": a byte is read each time",
	"vrp/files.depotSection":     ": words of each line",
	"vrp/files.fillFleet":        ": known keys, of vehicles that are lines",
	"vrp/files.fractions":        "places x dimensions",
	"vrp/files.matrices":         "matrix",
	"vrp/files.matrixRows":       "matrix",
	"vrp/files.measure":          ": three matrices of each profile, whose entries are bytes of the file",
	"vrp/files.object":           ": a byte is read each time",
	"vrp/files.planRows":         "places x dimensions",
	"vrp/files.readMatrices":     ": two matrices, whose entries are bytes of files",
	"vrp/files.readShipments":    ": two halves of each row",
	"vrp/files.readVehicles":     "cells x dimensions",
	"vrp/files.sort":             ": sheets with a few words for each of their parts",
	"vrp/files.table":            ": words of each line",
	"vrp/files.thousands":        "cells",
	"vrp/files.value":            ": a byte is read each time",
	"vrp/files.vehicles":         ": hundred times mostVehicles, each of one type",
	"vrp/files.vehiclesOf":       "types x dimensions",
	"vrp/files.weightSection":    ": words of each line",
	"vrp/files.writeFleet":       ": numbers of vehicles, which are counted",
	"vrp/files.writeSheets":      "cells",
	"vrp/files.writeWeights":     "matrix",
}

// TestLoopsOverInputListen: in the packages that read, check, evaluate, validate and schedule
// problems, a loop within a loop goes over the outer element's own list, counts its work, looks at
// a context or a limit of time, or is listed with the limits of the table that bound it. So is a
// loop without a condition.
func TestLoopsOverInputListen(t *testing.T) {
	keys := map[string]bool{}
	for _, l := range limits.Table {
		keys[l.Key] = true
	}
	seen, deep := map[string]bool{}, 0
	for _, dir := range []string{"internal/vrp", "internal/vrp/files"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, path, text, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range parsed.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Body == nil {
					continue
				}
				deep += len(loopsIn(f.Body))
				name := strings.TrimPrefix(dir, "internal/") + "." + f.Name.Name
				line := deafLoop(f)
				if line == token.NoPos {
					continue
				}
				seen[name] = true
				if bounded[name] == "" {
					t.Errorf("%s: %s has a loop within a loop over input that counts nothing and hears nothing: count it, or list what bounds it",
						set.Position(line), name)
				}
			}
		}
	}
	for name, by := range bounded {
		if !seen[name] {
			t.Errorf("%s is listed, and has no such loop", name)
		}
		if strings.HasPrefix(by, ":") {
			continue
		}
		for key := range strings.SplitSeq(by, " x ") {
			if !keys[key] {
				t.Errorf("%s is bounded by %q, which is no limit", name, key)
			}
		}
	}
	if deep < 300 {
		t.Errorf("%d loops are found", deep)
	}
}

// TestDeafLoopsAreFound: the lint tells loops that hear from those that do not.
func TestDeafLoopsAreFound(t *testing.T) {
	for body, deaf := range map[string]bool{
		"for _, a := range list { for _, b := range a.own { use(b) } }":                                    false,
		"for i := range list { own := list[i]; for _, b := range own { use(b) } }":                         false,
		"for _, a := range list { for _, b := range other { use(a, b) } }":                                 true,
		"for _, a := range list { for _, b := range other { use(a, b); if ctx.Err() != nil { return } } }": false,
		"for { use() }":                          true,
		"for { if t.cell(1) != nil { return } }": false,
		"for _, a := range list { for _, b := range [2]int{1, 2} { use(a, b) } }": false,
		"for _, a := range list { for b := range 8 { use(a, b) } }":               false,
		"for _, a := range list { use(a) }":                                       false,
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "a.go", fmt.Sprintf("package a\nfunc f() { %s }", body), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := deafLoop(parsed.Decls[0].(*ast.FuncDecl)) != token.NoPos; got != deaf {
			t.Errorf("%s: deaf %v", body, got)
		}
	}
}

func loopsIn(n ast.Node) (out []ast.Stmt) {
	ast.Inspect(n, func(x ast.Node) bool {
		switch l := x.(type) {
		case *ast.ForStmt:
			out = append(out, l)
		case *ast.RangeStmt:
			out = append(out, l)
		}
		return true
	})
	return out
}

// deafLoop is where a function has a loop that this page's first test is about.
func deafLoop(f *ast.FuncDecl) token.Pos {
	for _, outer := range loopsIn(f.Body) {
		if l, ok := outer.(*ast.ForStmt); ok && l.Cond == nil && !hears(l.Body) {
			return l.Pos()
		}
		if hears(outer) {
			continue
		}
		own := ownNames(outer)
		for _, inner := range loopsIn(bodyOf(outer)) {
			if !constant(inner) && !slices.ContainsFunc(namesIn(headOf(inner)...), func(n string) bool { return own[n] }) {
				return inner.Pos()
			}
		}
	}
	return token.NoPos
}

func bodyOf(l ast.Stmt) *ast.BlockStmt {
	if f, ok := l.(*ast.ForStmt); ok {
		return f.Body
	}
	return l.(*ast.RangeStmt).Body
}

// headOf is what decides how often a loop runs.
func headOf(l ast.Stmt) (out []ast.Node) {
	if f, ok := l.(*ast.ForStmt); ok {
		if f.Init != nil {
			out = append(out, f.Init)
		}
		if f.Cond != nil {
			out = append(out, f.Cond)
		}
		return out
	}
	return []ast.Node{l.(*ast.RangeStmt).X}
}

// constant tells a loop over a list that is written out, or a number of times that is.
func constant(l ast.Stmt) bool {
	r, ok := l.(*ast.RangeStmt)
	if !ok {
		return false
	}
	switch r.X.(type) {
	case *ast.CompositeLit, *ast.BasicLit:
		return true
	}
	return false
}

func hears(n ast.Node) (found bool) {
	ast.Inspect(n, func(x ast.Node) bool {
		if c, ok := x.(*ast.CallExpr); ok {
			switch f := c.Fun.(type) {
			case *ast.SelectorExpr:
				found = found || listening.MatchString(f.Sel.Name)
			case *ast.Ident:
				found = found || listening.MatchString(f.Name)
			}
		}
		return !found
	})
	return found
}

func namesIn(nodes ...ast.Node) (out []string) {
	for _, n := range nodes {
		ast.Inspect(n, func(x ast.Node) bool {
			if i, ok := x.(*ast.Ident); ok {
				out = append(out, i.Name)
			}
			return true
		})
	}
	return out
}

// ownNames are the variables of a loop's head, and those of its body that are made of them.
func ownNames(l ast.Stmt) map[string]bool {
	own := map[string]bool{}
	define := func(list []ast.Expr) {
		for _, e := range list {
			if i, ok := e.(*ast.Ident); ok && i.Name != "_" {
				own[i.Name] = true
			}
		}
	}
	if r, ok := l.(*ast.RangeStmt); ok {
		define([]ast.Expr{r.Key, r.Value})
	} else if a, ok := l.(*ast.ForStmt).Init.(*ast.AssignStmt); ok {
		define(a.Lhs)
	}
	for before := -1; before != len(own); {
		before = len(own)
		ast.Inspect(bodyOf(l), func(x ast.Node) bool {
			var nodes []ast.Node
			a, ok := x.(*ast.AssignStmt)
			if !ok || a.Tok != token.DEFINE {
				return true
			}
			for _, e := range a.Rhs {
				nodes = append(nodes, e)
			}
			if slices.ContainsFunc(namesIn(nodes...), func(n string) bool { return own[n] }) {
				define(a.Lhs)
			}
			return true
		})
	}
	return maps.Clone(own)
}
