// Package parse reads a problem file: a Go file that imports nothing but the package problem.
//
// File parses the text, has go/types check it, refuses everything else that Go has
// (subset.go), finds the types and methods that Haul calls (methods.go) and lays out their words
// (layout.go). Every error names a line and what to write instead. lower compiles the result.
package parse

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"strconv"
	"strings"

	"haul/problem"
)

// File is a problem file that was read and checked.
type File struct {
	Name string // of the package
	Doc  string // the package comment
	Fset *token.FileSet
	AST  *ast.File
	Info *types.Info
	Pkg  *types.Package

	Instance, Node, Vehicle *types.Named
	Settings                *types.Named // nil if the file has none
	Keys                    []Key        // the fields of Settings
	Features, Context       int          // numbers that the encoder sees of a node, the decoder of a vehicle
	Depots                  int          // nodes that are depots, at least 1
	Methods                 map[Method]*ast.FuncDecl
	Funcs                   map[*types.Func]*ast.FuncDecl // all functions of the file
}

// Parse reads a problem file from its text. Error messages name the file so. The error is an
// ErrorList.
func Parse(name string, text []byte) (*File, error) {
	f := &File{Fset: token.NewFileSet(), Methods: map[Method]*ast.FuncDecl{}, Funcs: map[*types.Func]*ast.FuncDecl{}}
	var list ErrorList
	file, err := parser.ParseFile(f.Fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, syntax(err)
	}
	f.AST, f.Name, f.Doc = file, file.Name.Name, file.Doc.Text()
	if list = f.checkImports(); len(list) > 0 {
		return nil, list.sorted()
	}
	api, err := readAPI()
	if err != nil {
		return nil, err
	}
	f.Info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Implicits: map[ast.Node]types.Object{}}
	if list = f.checkSubset(); len(list) > 0 {
		return nil, list.sorted()
	}
	conf := types.Config{Importer: only{api}, Error: func(err error) { list = append(list, typeError(f, err)) }, GoVersion: "go1.22"}
	f.Pkg, _ = conf.Check(file.Name.Name, f.Fset, []*ast.File{file}, f.Info)
	if missing := f.missingTypes(); len(missing) > 0 {
		return nil, missing.sorted() // other mistakes follow from it
	}
	if len(list) > 0 {
		return nil, list.sorted()
	}
	for _, check := range []func() ErrorList{f.findTypes, f.findMethods, f.checkTypes, f.checkCalls, f.checkOrder, f.checkDraws, f.checkFields} {
		if list = check(); len(list) > 0 {
			return nil, list.sorted()
		}
	}
	return f, nil
}

// syntax turns the parser's errors into mistakes of a file.
func syntax(err error) error {
	var many interface{ Unwrap() []error }
	var list ErrorList
	if l, ok := err.(interface{ Len() int }); ok && l.Len() > 0 || errors.As(err, &many) {
		for line := range strings.SplitSeq(scannerText(err), "\n") {
			list = append(list, &Error{Text: line})
		}
		return list
	}
	return ErrorList{{Text: err.Error()}}
}

// checkImports accepts no import but the package problem, under any path, since Haul may be
// released under another.
func (f *File) checkImports() (list ErrorList) {
	for _, spec := range f.AST.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		switch {
		case path.Base(name) != "problem":
			list = append(list, f.Errorf(spec.Pos(), "a problem file imports \"haul/problem\" alone", "import of %q", name))
		case spec.Name != nil && spec.Name.Name != "problem":
			list = append(list, f.Errorf(spec.Pos(), "import it as problem", "package problem is imported as %s", spec.Name.Name))
		}
	}
	return list
}

// only finds the package problem and no other.
type only struct{ api *types.Package }

func (o only) Import(string) (*types.Package, error) { return o.api, nil }

// empty finds packages without declarations: bodies of the package problem are not checked here.
type empty struct{}

func (empty) Import(p string) (*types.Package, error) {
	pkg := types.NewPackage(p, path.Base(p))
	pkg.MarkComplete()
	return pkg, nil
}

// readAPI returns the declarations of the package problem.
func readAPI() (*types.Package, error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range []string{"problem.go", "math.go"} {
		text, err := problem.Source.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	conf := types.Config{Importer: empty{}, IgnoreFuncBodies: true, Error: func(error) {}} // math is not used where bodies are left out
	pkg, _ := conf.Check("haul/problem", fset, files, nil)
	return pkg, nil
}
