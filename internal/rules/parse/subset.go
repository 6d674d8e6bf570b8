package parse

import (
	"go/ast"
	"go/token"
)

// checkSubset refuses the parts of Go's syntax that the language of rules leaves out. It runs
// before types are checked, so that a stranger reads the reason and not what follows from it.
func (f *File) checkSubset() (list ErrorList) {
	refuse := func(at ast.Node, remedy, text string) {
		list = append(list, f.Errorf(at.Pos(), remedy, "%s", text))
	}
	for _, decl := range f.AST.Decls {
		switch d := decl.(type) {
		case *ast.GenDecl:
			if d.Tok == token.VAR {
				refuse(d, "use a constant, or a field of Instance or Vehicle", "a variable of the package")
			}
		case *ast.FuncDecl:
			f.refuseFunc(d, refuse)
		}
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if text, remedy := refused(n); text != "" {
			refuse(n, remedy, text)
			return false
		}
		return true
	})
	return list
}

func (f *File) refuseFunc(d *ast.FuncDecl, refuse func(ast.Node, string, string)) {
	switch {
	case d.Type.TypeParams != nil:
		refuse(d, "write a function for each type", "a generic function")
	case d.Body == nil:
		refuse(d, "give it a body", "a function without a body")
	case d.Recv == nil && (d.Name.Name == "init" || d.Name.Name == "main"):
		refuse(d, "Haul calls the methods that docs/rules.md lists", "a function "+d.Name.Name)
	}
}

// refused returns why a node of the syntax tree is outside the language, and what to write instead;
// nothing if it is inside.
func refused(n ast.Node) (text, remedy string) {
	switch s := n.(type) {
	case *ast.MapType:
		return "a map", "use an array of fixed length"
	case *ast.ChanType, *ast.SendStmt:
		return "a channel", "rules run alone; keep what is needed in Vehicle or Instance"
	case *ast.InterfaceType:
		return "an interface", "use float32, int32, bool, arrays and structs"
	case *ast.FuncLit:
		return "a function literal", "write a function of the file"
	case *ast.FuncType:
		return refusedFuncType(s)
	case *ast.ArrayType:
		if s.Len == nil {
			return "a slice", "use an array of fixed length"
		}
	case *ast.GoStmt:
		return "a goroutine", "rules run alone"
	case *ast.DeferStmt:
		return "defer", "write the statement where it is to run"
	case *ast.SelectStmt:
		return "select", "rules run alone"
	case *ast.LabeledStmt:
		return "a label", "use an if or a function that returns"
	case *ast.BranchStmt:
		if s.Tok == token.GOTO || s.Tok == token.FALLTHROUGH || s.Label != nil {
			return s.Tok.String(), "use an if or a function that returns"
		}
	case *ast.TypeSwitchStmt, *ast.TypeAssertExpr:
		return "a type switch or assertion", "types are known in rules"
	case *ast.SliceExpr:
		return "a slice of an array", "index the array"
	case *ast.BasicLit:
		if s.Kind == token.IMAG {
			return "a complex number", "use two float32"
		}
	case *ast.Ellipsis:
		return "", ""
	}
	return "", ""
}

func refusedFuncType(t *ast.FuncType) (text, remedy string) {
	for _, p := range t.Params.List {
		if _, ok := p.Type.(*ast.Ellipsis); ok {
			return "a variadic parameter", "use an array of fixed length"
		}
	}
	return "", ""
}
