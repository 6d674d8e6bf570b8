package parse

import (
	"go/ast"
	"go/token"
	"go/types"
)

// checkOrder refuses a call that changes a variable within a larger expression: Go leaves open
// whether the rest of the expression reads the variable before or after the call, so the file run
// natively could differ from the compiled one.
func (f *File) checkOrder() (list ErrorList) {
	changes := map[*types.Func]bool{}
	for grown := true; grown; { // callers of such functions, too
		grown = false
		for fn, d := range f.Funcs {
			if !changes[fn] && f.changesArgument(d, changes) {
				changes[fn], grown = true, true
			}
		}
	}
	for _, d := range f.Funcs {
		var visit func(n, parent ast.Node)
		visit = func(n, parent ast.Node) {
			if call, ok := n.(*ast.CallExpr); ok && changes[f.Callee(call)] && !f.alone(call, parent) {
				list = append(list, f.Errorf(n.Pos(), "give its result a name in a statement before", "a call of %s, which changes a variable, within an expression", f.Callee(call).Name()))
			}
			for _, child := range children(n) {
				visit(child, n)
			}
		}
		visit(d.Body, d)
	}
	return list
}

// changesArgument reports whether a function writes to what a receiver or parameter points at.
func (f *File) changesArgument(d *ast.FuncDecl, changes map[*types.Func]bool) (found bool) {
	pointer := func(e ast.Expr) bool {
		v, ok := f.root(e).(*types.Var)
		return ok && isPointer(v.Type())
	}
	ast.Inspect(d.Body, func(n ast.Node) bool {
		switch s := n.(type) {
		case *ast.AssignStmt:
			for _, x := range s.Lhs {
				found = found || pointer(x)
			}
		case *ast.IncDecStmt:
			found = found || pointer(s.X)
		case *ast.CallExpr:
			if !changes[f.Callee(s)] {
				return true
			}
			for _, arg := range s.Args {
				found = found || pointer(arg)
			}
			if sel, ok := ast.Unparen(s.Fun).(*ast.SelectorExpr); ok {
				found = found || pointer(sel.X)
			}
		}
		return !found
	})
	return found
}

// root returns the variable that an expression is a part of, nil if there is none.
func (f *File) root(e ast.Expr) types.Object {
	switch x := ast.Unparen(e).(type) {
	case *ast.Ident:
		return f.object(x)
	case *ast.SelectorExpr:
		return f.root(x.X)
	case *ast.IndexExpr:
		return f.root(x.X)
	case *ast.StarExpr:
		return f.root(x.X)
	case *ast.UnaryExpr:
		if x.Op == token.AND {
			return f.root(x.X)
		}
	}
	return nil
}

// alone reports whether a call is all of a statement, but for variables that take its results.
func (f *File) alone(call *ast.CallExpr, parent ast.Node) bool {
	switch s := parent.(type) {
	case *ast.ExprStmt, *ast.ValueSpec:
		return true
	case *ast.ReturnStmt:
		return len(s.Results) == 1
	case *ast.AssignStmt:
		for _, x := range s.Lhs {
			if _, ok := x.(*ast.Ident); !ok {
				return false
			}
		}
		return len(s.Rhs) == 1 && (s.Tok == token.ASSIGN || s.Tok == token.DEFINE)
	}
	return false
}
