package parse

import (
	"go/ast"
	"go/token"
	"go/types"
)

// Callee returns the function that a call calls, nil if it is a conversion or a built-in.
func (f *File) Callee(call *ast.CallExpr) *types.Func {
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		fn, _ := f.Info.Uses[fun].(*types.Func)
		return fn
	case *ast.SelectorExpr:
		fn, _ := f.Info.Uses[fun.Sel].(*types.Func)
		return fn
	}
	return nil
}

// Builtin returns the name of the built-in function that a call calls, "" if it calls none.
func (f *File) Builtin(call *ast.CallExpr) string {
	if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok {
		if b, ok := f.Info.Uses[id].(*types.Builtin); ok {
			return b.Name()
		}
	}
	return ""
}

// IsRandom reports whether a function is a method of problem.Random.
func (f *File) IsRandom(fn *types.Func) bool {
	recv := fn.Type().(*types.Signature).Recv()
	return recv != nil && f.typeName(recv.Type()) == "*problem.Random"
}

// checkCalls refuses built-ins that need memory, functions as values, recursion, and pointers that
// are anything but a receiver or an argument.
func (f *File) checkCalls() (list ErrorList) {
	called := map[ast.Expr]bool{}
	calls := map[*types.Func][]*ast.CallExpr{} // by caller
	for fn, d := range f.Funcs {
		ast.Inspect(d.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			called[ast.Unparen(call.Fun)] = true
			for _, arg := range call.Args {
				if u, ok := ast.Unparen(arg).(*ast.UnaryExpr); ok && u.Op == token.AND {
					called[u] = true
				}
			}
			if name := f.Builtin(call); name != "" && name != "min" && name != "max" && name != "len" {
				list = append(list, f.Errorf(call.Pos(), "min, max and len are the built-ins of rules", "a call of %s", name))
			}
			if callee := f.Callee(call); callee != nil && callee.Pkg() == f.Pkg {
				calls[fn] = append(calls[fn], call)
			} else if callee != nil && callee.Name() == "NewRandom" {
				list = append(list, f.Errorf(call.Pos(), "take the *problem.Random that Draw is given", "a call of problem.NewRandom"))
			}
			return true
		})
	}
	for fn, d := range f.Funcs {
		list = append(list, f.checkValues(d, called)...)
		if path := f.recursion(fn, fn, calls, map[*types.Func]bool{}); path != nil {
			list = append(list, f.Errorf(path.Pos(), "use a loop with a constant bound", "%s calls itself", fn.Name()))
		}
	}
	return list
}

// recursion returns a call by which `to` is reached from `from`, nil if there is none.
func (f *File) recursion(from, to *types.Func, calls map[*types.Func][]*ast.CallExpr, seen map[*types.Func]bool) *ast.CallExpr {
	if seen[from] {
		return nil
	}
	seen[from] = true
	for _, call := range calls[from] {
		callee := f.Callee(call)
		if callee == to || f.recursion(callee, to, calls, seen) != nil {
			return call
		}
	}
	return nil
}

// checkValues refuses functions and pointers that are used as values.
func (f *File) checkValues(d *ast.FuncDecl, called map[ast.Expr]bool) (list ErrorList) {
	ast.Inspect(d.Body, func(n ast.Node) bool {
		switch e := n.(type) {
		case *ast.Ident, *ast.SelectorExpr:
			x := e.(ast.Expr)
			if _, ok := f.Info.Types[x].Type.(*types.Signature); ok && !called[x] {
				list = append(list, f.Errorf(e.Pos(), "call it here", "a function as a value"))
				return false
			}
			if s, ok := e.(*ast.SelectorExpr); ok {
				if _, isPkg := f.Info.Uses[s.Sel].(*types.Func); isPkg {
					ast.Inspect(s.X, func(ast.Node) bool { return true })
				}
				if id, ok := s.X.(*ast.Ident); ok {
					if _, pkg := f.Info.Uses[id].(*types.PkgName); pkg {
						return false
					}
				}
			}
		case *ast.UnaryExpr:
			if e.Op == token.AND && !called[e] {
				list = append(list, f.Errorf(e.Pos(), "pass it to the function that needs it, or copy the struct", "a pointer as a value"))
			}
		case *ast.AssignStmt:
			for _, x := range e.Lhs {
				if id, ok := x.(*ast.Ident); ok {
					if v, ok := f.object(id).(*types.Var); ok && isPointer(v.Type()) {
						list = append(list, f.Errorf(id.Pos(), "use the parameter itself, or copy the struct", "%s is a pointer that is assigned", id.Name))
					}
				}
			}
		}
		return true
	})
	for _, field := range d.Type.Params.List {
		if p, ok := f.Info.Types[field.Type].Type.(*types.Pointer); ok && isPointer(p.Elem()) {
			list = append(list, f.Errorf(field.Pos(), "use one *", "a pointer to a pointer"))
		}
	}
	if d.Type.Results != nil {
		for _, field := range d.Type.Results.List {
			if isPointer(f.Info.Types[field.Type].Type) {
				list = append(list, f.Errorf(field.Pos(), "return the struct itself", "a result that is a pointer"))
			}
		}
	}
	return list
}

func (f *File) object(id *ast.Ident) types.Object {
	if o := f.Info.Defs[id]; o != nil {
		return o
	}
	return f.Info.Uses[id]
}

func isPointer(t types.Type) bool {
	_, ok := t.(*types.Pointer)
	return ok
}
