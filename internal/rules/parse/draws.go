package parse

import (
	"go/ast"
	"go/token"
	"go/types"
)

// checkDraws refuses random numbers whose word would depend on data: in a branch, in a loop, behind
// an early return, or in a helper, a call must name its word by At. So the compiled file and the
// file run natively take the same words.
func (f *File) checkDraws() (list ErrorList) {
	for fn, d := range f.Funcs {
		drawing := f.Methods[DrawInstance] == d || f.Methods[DrawNode] == d
		returned := token.NoPos // behind the first return within a branch
		var visit func(n ast.Node, within bool)
		visit = func(n ast.Node, within bool) {
			switch s := n.(type) {
			case nil:
				return
			case *ast.CallExpr:
				if callee := f.Callee(s); callee != nil && f.IsRandom(callee) {
					list = append(list, f.checkDraw(s, drawing, within || returned.IsValid(), fn.Name())...)
				} else {
					for _, arg := range s.Args {
						if isPointerTo(f, f.Info.Types[arg].Type, "problem.Random") {
							list = append(list, f.Errorf(arg.Pos(), "draw in Draw and pass the numbers", "a Random that is passed on"))
						}
					}
				}
			case *ast.ReturnStmt:
				if within {
					defer func() { returned = s.Pos() }()
				}
			}
			for _, child := range children(n) {
				visit(child, within || branches(n, child))
			}
		}
		visit(d.Body, false)
	}
	return list
}

func isPointerTo(f *File, t types.Type, name string) bool {
	p, ok := t.(*types.Pointer)
	return ok && f.typeName(p.Elem()) == name
}

func (f *File) checkDraw(call *ast.CallExpr, drawing, branch bool, name string) (list ErrorList) {
	sel := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if sel.Sel.Name == "At" {
		return nil
	}
	if !drawing {
		list = append(list, f.Errorf(call.Pos(), "draw in Instance.Draw or Node.Draw", "a random number in %s", name))
	}
	if at, ok := ast.Unparen(sel.X).(*ast.CallExpr); ok {
		if callee := f.Callee(at); callee != nil && callee.Name() == "At" {
			return list
		}
	}
	if branch {
		list = append(list, f.Errorf(call.Pos(), "name the word, as in r.At(0)."+sel.Sel.Name, "a random number in a branch or loop, or behind a return"))
	}
	return list
}

// branches reports whether a child of a node may be skipped or repeated.
func branches(n, child ast.Node) bool {
	switch s := n.(type) {
	case *ast.IfStmt:
		return child == s.Body || child == s.Else
	case *ast.ForStmt:
		return child != s.Init
	case *ast.RangeStmt:
		return child == s.Body
	case *ast.CaseClause:
		return true
	case *ast.BinaryExpr:
		return (s.Op == token.LAND || s.Op == token.LOR) && child == s.Y
	}
	return false
}

// children returns the nodes directly below a node, in the order of the text.
func children(n ast.Node) (out []ast.Node) {
	ast.Inspect(n, func(c ast.Node) bool {
		if c == n {
			return true
		}
		if c != nil {
			out = append(out, c)
		}
		return false
	})
	return out
}

// checkFields refuses fields that no method uses: a word of every node or vehicle for nothing, and
// mostly a slip of the pen. It also refuses writes to what Haul fills in.
func (f *File) checkFields() (list ErrorList) {
	used := map[types.Object]bool{}
	for sel, s := range f.Info.Selections {
		used[s.Obj()] = true
		t := s.Recv()
		for _, i := range s.Index() { // embedded structs on the way
			if p, ok := t.Underlying().(*types.Pointer); ok {
				t = p.Elem()
			}
			if u, ok := t.Underlying().(*types.Struct); ok && i < u.NumFields() {
				used[u.Field(i)] = true
				t = u.Field(i).Type()
			}
		}
		_ = sel
	}
	for _, obj := range f.Info.Uses {
		if v, ok := obj.(*types.Var); ok && v.IsField() {
			used[v] = true
		}
	}
	for e := range f.Info.Types {
		lit, ok := e.(*ast.CompositeLit)
		if !ok || len(lit.Elts) == 0 {
			continue
		}
		if _, keyed := lit.Elts[0].(*ast.KeyValueExpr); keyed {
			continue
		}
		if s, ok := f.Info.Types[e].Type.Underlying().(*types.Struct); ok {
			for i := range s.NumFields() {
				used[s.Field(i)] = true
			}
		}
	}
	scope := f.Pkg.Scope()
	for _, name := range scope.Names() {
		obj, ok := scope.Lookup(name).(*types.TypeName)
		if !ok {
			continue
		}
		s, ok := obj.Type().Underlying().(*types.Struct)
		if !ok {
			continue
		}
		for i := range s.NumFields() {
			if v := s.Field(i); !used[v] && !haulReads(f.typeName(v.Type())) {
				list = append(list, f.Errorf(v.Pos(), "use it or take it out", "field %s of %s is never used", v.Name(), name))
			}
		}
	}
	for _, d := range f.Funcs {
		list = append(list, f.checkWrites(d)...)
	}
	return list
}

// haulReads reports whether Haul itself uses fields of a type.
func haulReads(name string) bool {
	return name == "problem.Place" || name == "problem.Opens" || name == "problem.Site"
}

// checkWrites refuses assignments to the fields of problem.Site and of Settings.
func (f *File) checkWrites(d *ast.FuncDecl) (list ErrorList) {
	ast.Inspect(d.Body, func(n ast.Node) bool {
		var targets []ast.Expr
		switch s := n.(type) {
		case *ast.AssignStmt:
			targets = s.Lhs
		case *ast.IncDecStmt:
			targets = []ast.Expr{s.X}
		}
		for _, x := range targets {
			sel, ok := ast.Unparen(x).(*ast.SelectorExpr)
			if !ok {
				continue
			}
			if t := f.Info.Types[sel].Type; t != nil && f.typeName(t) == "problem.Site" || f.ofSite(sel) {
				list = append(list, f.Errorf(x.Pos(), "Haul fills in Index and Depot", "a write to problem.Site"))
			}
		}
		return true
	})
	return list
}

// ofSite reports whether a selector chooses Index or Depot of a problem.Site.
func (f *File) ofSite(sel *ast.SelectorExpr) bool {
	s, ok := f.Info.Selections[sel]
	if !ok {
		return false
	}
	v, ok := s.Obj().(*types.Var)
	return ok && v.Pkg() != nil && v.Pkg() != f.Pkg && (v.Name() == "Index" || v.Name() == "Depot")
}
