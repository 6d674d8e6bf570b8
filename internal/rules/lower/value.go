package lower

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"math"

	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
)

// word returns the value of an expression of one word.
func (c *compiler) word(e ast.Expr) int32 { return c.value(e)[0] }

// value returns the words of an expression.
func (c *compiler) value(e ast.Expr) []int32 {
	tv := c.f.Info.Types[e]
	if tv.Value != nil {
		return []int32{c.constant(tv)}
	}
	switch x := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		return c.callOf(x)
	case *ast.CompositeLit:
		return c.literal(x)
	case *ast.BinaryExpr:
		return []int32{c.binaryOf(x)}
	case *ast.UnaryExpr:
		return []int32{c.unary(x)}
	case *ast.SelectorExpr:
		if at, ok := c.where(x); ok {
			return c.load(at, parse.Size(tv.Type))
		}
		s := c.f.Info.Selections[x]
		from := pathOffset(s.Recv(), s.Index())
		return c.value(x.X)[from:][:parse.Size(tv.Type)]
	case *ast.IndexExpr:
		if at, ok := c.where(x); ok {
			return c.load(at, parse.Size(tv.Type))
		}
		return c.indexed(x)
	}
	at, ok := c.where(e)
	if !ok {
		c.fail(e.Pos(), "docs/rules.md lists the expressions of rules", "an expression outside the language of rules")
	}
	return c.load(at, parse.Size(deref(tv.Type)))
}

func deref(t types.Type) types.Type {
	if p, ok := t.(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}

// indexed is an element of an array that lies in no variable.
func (c *compiler) indexed(x *ast.IndexExpr) []int32 {
	words := c.value(x.X)
	array := arrayOf(c.f.Info.Types[x.X].Type)
	at := c.declare(len(words))
	c.store(at, words)
	size := parse.Size(array.Elem())
	return c.load(c.element(at, c.word(x.Index), int(array.Len()), size), size)
}

func (c *compiler) constant(tv types.TypeAndValue) int32 {
	switch kind, _ := parse.KindOf(tv.Type); kind {
	case ir.Float32:
		x, _ := constant.Float32Val(constant.ToFloat(tv.Value))
		return c.b.Const(math.Float32bits(x))
	case ir.Bool:
		if constant.BoolVal(tv.Value) {
			return c.b.Const(1)
		}
		return c.b.Const(0)
	}
	n, _ := constant.Int64Val(constant.ToInt(tv.Value))
	return c.b.Const(uint32(n))
}

// literal is a composite literal of a struct or an array.
func (c *compiler) literal(x *ast.CompositeLit) []int32 {
	t := c.f.Info.Types[x].Type
	words := make([]int32, parse.Size(t))
	for i := range words {
		words[i] = c.b.Const(0)
	}
	if s, ok := t.Underlying().(*types.Struct); ok {
		for i, e := range x.Elts {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				e = pair.Value
				for i = range s.NumFields() {
					if s.Field(i).Name() == pair.Key.(*ast.Ident).Name {
						break
					}
				}
			}
			copy(words[parse.Offset(s, i):], c.value(e))
		}
		return words
	}
	size := parse.Size(t.Underlying().(*types.Array).Elem())
	at := 0
	for _, e := range x.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			n, _ := constant.Int64Val(constant.ToInt(c.f.Info.Types[pair.Key].Value))
			at, e = int(n), pair.Value
		}
		copy(words[at*size:], c.value(e))
		at++
	}
	return words
}

func (c *compiler) unary(x *ast.UnaryExpr) int32 {
	v := c.word(x.X)
	kind, _ := parse.KindOf(c.f.Info.Types[x].Type)
	switch {
	case x.Op == token.NOT:
		return c.b.Not(v)
	case x.Op == token.XOR:
		return c.b.Do(ir.Xor, v, c.b.Const(math.MaxUint32))
	case x.Op == token.SUB && kind == ir.Float32:
		return c.b.Do(ir.FNeg, v)
	case x.Op == token.SUB:
		return c.b.Do(ir.Sub, c.b.Const(0), v)
	}
	return v
}

// binaryOf is a binary expression. The right side of && and || runs in a branch if it calls a
// function of the file, which may change what it points at.
func (c *compiler) binaryOf(x *ast.BinaryExpr) int32 {
	if x.Op == token.LAND || x.Op == token.LOR {
		left := c.word(x.X)
		if !c.calls(x.Y) {
			if x.Op == token.LAND {
				return c.b.Do(ir.And, left, c.word(x.Y))
			}
			return c.b.Do(ir.Or, left, c.word(x.Y))
		}
		at := c.declare(1)
		c.store(at, []int32{left})
		right := func() { c.store(at, []int32{c.word(x.Y)}) }
		if x.Op == token.LAND {
			c.branch(left, right, func() {})
		} else {
			c.branch(left, func() {}, right)
		}
		return c.load(at, 1)[0]
	}
	kind, _ := parse.KindOf(c.f.Info.Types[x.X].Type)
	left := c.word(x.X)
	return c.binary(x.OpPos, x.Op, kind, left, c.word(x.Y))
}

// calls reports whether an expression calls a function of the file.
func (c *compiler) calls(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if fn := c.f.Callee(call); fn != nil && fn.Pkg() == c.f.Pkg {
				found = true
			}
		}
		return !found
	})
	return found
}

func (c *compiler) equal(kind ir.Kind, a, b int32) int32 {
	if kind == ir.Float32 {
		return c.b.Do(ir.FEq, a, b)
	}
	return c.b.Do(ir.Eq, a, b)
}

// ofInts and ofFloats are the operations of Go's operators.
var ofInts = map[token.Token]ir.Op{token.ADD: ir.Add, token.SUB: ir.Sub, token.MUL: ir.Mul, token.QUO: ir.Div, token.REM: ir.Rem,
	token.AND: ir.And, token.OR: ir.Or, token.XOR: ir.Xor, token.SHL: ir.Shl, token.SHR: ir.Shr, token.LSS: ir.Lt, token.LEQ: ir.Le}
var ofFloats = map[token.Token]ir.Op{token.ADD: ir.FAdd, token.SUB: ir.FSub, token.MUL: ir.FMul, token.QUO: ir.FDiv,
	token.LSS: ir.FLt, token.LEQ: ir.FLe}

func (c *compiler) binary(at token.Pos, op token.Token, kind ir.Kind, a, b int32) int32 {
	switch op {
	case token.EQL:
		return c.equal(kind, a, b)
	case token.NEQ:
		return c.b.Not(c.equal(kind, a, b))
	case token.GTR:
		op, a, b = token.LSS, b, a
	case token.GEQ:
		op, a, b = token.LEQ, b, a
	case token.AND_NOT:
		return c.b.Do(ir.And, a, c.b.Do(ir.Xor, b, c.b.Const(math.MaxUint32)))
	}
	table := ofInts
	if kind == ir.Float32 {
		table = ofFloats
	}
	o, ok := table[op]
	if !ok {
		c.fail(at, "docs/rules.md lists the operators of rules", "the operator %s", op)
	}
	return c.b.Do(o, a, b)
}
