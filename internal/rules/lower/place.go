package lower

import (
	"go/ast"
	"go/types"

	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
)

// place is where a variable, or a part of one, lies. Where an index depends on data there are
// several options; exactly one holds.
type place []option

type option struct {
	cell int   // the first word
	when int32 // the bool under which the option holds; always if it is negative
}

func cellsAt(first int) place { return place{{first, -1}} }

// shift returns the place `words` further on.
func (p place) shift(words int) place {
	out := make(place, len(p))
	for i, o := range p {
		out[i] = option{o.cell + words, o.when}
	}
	return out
}

// load returns n words of a place.
func (c *compiler) load(p place, n int) []int32 {
	out := make([]int32, n)
	for k := range out {
		out[k] = c.cells[p[len(p)-1].cell+k]
		for i := len(p) - 2; i >= 0; i-- {
			out[k] = c.b.Select(p[i].when, c.cells[p[i].cell+k], out[k])
		}
	}
	return out
}

// store writes words to a place.
func (c *compiler) store(p place, words []int32) {
	for _, o := range p {
		for k, w := range words {
			if o.when >= 0 {
				w = c.b.Select(o.when, w, c.cells[o.cell+k])
			}
			c.cells[o.cell+k] = w
		}
	}
}

// element returns the place of element `index` of an array of n elements of `size` words. An index
// outside the array is moved to its nearest element.
func (c *compiler) element(p place, index int32, n, size int) place {
	if w, ok := c.b.IsConst(index); ok {
		return p.shift(min(max(int(int32(w)), 0), n-1) * size)
	}
	var out place
	for _, o := range p {
		for k := range n {
			when := c.b.Do(ir.Eq, index, c.b.Const(uint32(k)))
			switch {
			case n == 1:
				when = c.b.Const(1)
			case k == 0:
				when = c.b.Do(ir.Le, index, c.b.Const(0))
			case k == n-1:
				when = c.b.Do(ir.Le, c.b.Const(uint32(k)), index)
			}
			if o.when >= 0 {
				when = c.b.Do(ir.And, o.when, when)
			}
			out = append(out, option{o.cell + k*size, when})
		}
	}
	return out
}

// mostOptions bounds the words among which indices that depend on data choose.
const mostOptions = 64

// where returns the place of an expression, and whether it has one.
func (c *compiler) where(e ast.Expr) (place, bool) {
	switch x := ast.Unparen(e).(type) {
	case *ast.Ident:
		p, ok := c.vars[c.object(x)]
		return p, ok
	case *ast.StarExpr:
		return c.where(x.X)
	case *ast.UnaryExpr:
		return c.where(x.X) // & alone: the parser refuses the others here
	case *ast.SelectorExpr:
		s, ok := c.f.Info.Selections[x]
		if !ok || s.Kind() != types.FieldVal {
			return nil, false
		}
		p, ok := c.where(x.X)
		if !ok {
			return nil, false
		}
		return p.shift(pathOffset(s.Recv(), s.Index())), true
	case *ast.IndexExpr:
		p, ok := c.where(x.X)
		if !ok {
			return nil, false
		}
		array := arrayOf(c.f.Info.Types[x.X].Type)
		if array.Len() == 0 {
			c.fail(x.Pos(), "give the array at least one element", "an array without elements is indexed")
		}
		p = c.element(p, c.word(x.Index), int(array.Len()), parse.Size(array.Elem()))
		if len(p) > mostOptions {
			c.fail(x.Pos(), "use constants or loop variables as indices", "indices that depend on data choose among more than %d elements", mostOptions)
		}
		return p, true
	}
	return nil, false
}

func arrayOf(t types.Type) *types.Array {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	return t.Underlying().(*types.Array)
}

// pathOffset returns the word at which a field lies that is reached through embedded structs.
func pathOffset(t types.Type, index []int) int {
	offset := 0
	for _, i := range index {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		s := t.Underlying().(*types.Struct)
		offset += parse.Offset(s, i)
		t = s.Field(i).Type()
	}
	return offset
}

func (c *compiler) object(id *ast.Ident) types.Object {
	if o := c.f.Info.Defs[id]; o != nil {
		return o
	}
	return c.f.Info.Uses[id]
}
