package parse

import (
	"go/ast"
	"go/token"
	"go/types"
)

// Fusible returns the products of float32 that Go may fuse with a sum (on arm64, and on amd64 from
// GOAMD64=v3 on), across statements too: the file run natively may then differ from the compiled
// rules in the last bit. float32(x*y) is never fused.
func (f *File) Fusible() (list ErrorList) {
	for _, d := range f.Funcs {
		var visit func(n, parent ast.Node)
		visit = func(n, parent ast.Node) {
			if f.isProduct(n) && !f.keepsProduct(parent) {
				list = append(list, f.Errorf(n.Pos(), "write float32(x*y)", "a product that Go may fuse with a sum"))
			}
			for _, child := range children(n) {
				if _, ok := n.(*ast.ParenExpr); ok {
					visit(child, parent)
				} else {
					visit(child, n)
				}
			}
		}
		visit(d.Body, d)
	}
	return list.sorted()
}

// isProduct reports whether a node is a product of float32 that is no constant.
func (f *File) isProduct(n ast.Node) bool {
	switch e := n.(type) {
	case *ast.BinaryExpr:
		return e.Op == token.MUL && f.Info.Types[e].Value == nil && f.isFloat(e)
	case *ast.AssignStmt:
		return e.Tok == token.MUL_ASSIGN && f.isFloat(e.Lhs[0])
	}
	return false
}

func (f *File) isFloat(e ast.Expr) bool {
	b, ok := f.Info.Types[e].Type.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsFloat != 0
}

// keepsProduct reports whether a product below a node is rounded, or never added.
func (f *File) keepsProduct(parent ast.Node) bool {
	switch e := parent.(type) {
	case *ast.CallExpr:
		return f.Info.Types[e.Fun].IsType()
	case *ast.BinaryExpr:
		return e.Op != token.ADD && e.Op != token.SUB
	}
	return false
}
