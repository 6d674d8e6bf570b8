package lower

import (
	"go/ast"
	"go/types"
	"math"

	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
)

// callOf is a conversion or a call.
func (c *compiler) callOf(x *ast.CallExpr) []int32 {
	if c.f.Info.Types[x.Fun].IsType() {
		return c.convert(x)
	}
	if name := c.f.Builtin(x); name != "" {
		return []int32{c.minMax(name, x)}
	}
	fn := c.f.Callee(x)
	switch {
	case fn.Pkg() == c.f.Pkg:
		return c.inline(x, fn)
	case c.f.IsRandom(fn):
		return []int32{c.random(x, fn.Name())}
	}
	return []int32{c.library(x, fn.Name())}
}

// convert is a conversion. Between types of the same words it changes nothing.
func (c *compiler) convert(x *ast.CallExpr) []int32 {
	words := c.value(x.Args[0])
	to, basic := parse.KindOf(c.f.Info.Types[x.Fun].Type)
	if !basic {
		return words
	}
	from, _ := parse.KindOf(c.f.Info.Types[x.Args[0]].Type)
	switch {
	case from == ir.Int32 && to == ir.Float32:
		return []int32{c.b.Do(ir.Float, words[0])}
	case from == ir.Float32 && to == ir.Int32:
		return []int32{c.b.Do(ir.Int, words[0])}
	}
	return words
}

func (c *compiler) minMax(name string, x *ast.CallExpr) int32 {
	kind, _ := parse.KindOf(c.f.Info.Types[x].Type)
	op := map[string][2]ir.Op{"min": {ir.Min, ir.FMin}, "max": {ir.Max, ir.FMax}}[name][0]
	if kind == ir.Float32 {
		op = map[string]ir.Op{"min": ir.FMin, "max": ir.FMax}[name]
	}
	out := c.word(x.Args[0])
	for _, arg := range x.Args[1:] {
		out = c.b.Do(op, out, c.word(arg))
	}
	return out
}

// library is a function of the package problem.
func (c *compiler) library(x *ast.CallExpr, name string) int32 {
	var args [][]int32
	for _, arg := range x.Args {
		args = append(args, c.value(arg))
	}
	switch name {
	case "Distance":
		dx, dy := c.b.Do(ir.FSub, args[1][0], args[0][0]), c.b.Do(ir.FSub, args[1][1], args[0][1])
		return c.b.Do(ir.FSqrt, c.b.Do(ir.FAdd, c.b.Do(ir.FMul, dx, dx), c.b.Do(ir.FMul, dy, dy)))
	case "Sqrt":
		return c.b.Do(ir.FSqrt, args[0][0])
	case "Abs":
		return c.b.Do(ir.FAbs, args[0][0])
	case "Infinity":
		return c.b.Float(float32(math.Inf(1)))
	case "MulDiv":
		return c.b.Do(ir.MulDiv, args[0][0], args[1][0], args[2][0])
	}
	c.fail(x.Pos(), "docs/rules.md lists what the package problem has", "a call of problem.%s", name)
	return 0
}

// mostDraws bounds the random words of an instance or a node.
const mostDraws = 64

// random is a method of problem.Random.
func (c *compiler) random(x *ast.CallExpr, name string) int32 {
	sel := ast.Unparen(x.Fun).(*ast.SelectorExpr)
	k := c.next
	if at, ok := ast.Unparen(sel.X).(*ast.CallExpr); ok {
		w, constant := c.b.IsConst(c.word(at.Args[0]))
		if !constant {
			c.fail(at.Pos(), "name the word by a constant or a loop variable", "At with a number that depends on data")
		}
		k = int32(w)
	} else {
		c.next++
	}
	if k < 0 || k >= mostDraws {
		c.fail(x.Pos(), "draw fewer numbers", "random word %d; words 0 to %d may be drawn", k, mostDraws-1)
	}
	word := c.b.Input(ir.Word{Source: ir.Random, Index: k})
	switch name {
	case "Float":
		return c.b.Do(ir.Unit, word)
	case "Below":
		return c.b.Do(ir.Below, word, c.word(x.Args[0]))
	case "Uniform":
		low, high := c.word(x.Args[0]), c.word(x.Args[1])
		return c.b.Do(ir.FAdd, low, c.b.Do(ir.FMul, c.b.Do(ir.Unit, word), c.b.Do(ir.FSub, high, low)))
	}
	c.fail(x.Pos(), "use Float, Below or Uniform", "a call of Random.%s", name)
	return 0
}

// inline runs a function of the file. A pointer stands for the place that it points at.
func (c *compiler) inline(x *ast.CallExpr, fn *types.Func) []int32 {
	d := c.f.Funcs[fn]
	args := x.Args
	var places []place
	if d.Recv != nil {
		sel := ast.Unparen(x.Fun).(*ast.SelectorExpr)
		places = append(places, c.receiver(sel, d))
	}
	params := fn.Type().(*types.Signature).Params()
	if params.Len() != len(args) {
		c.fail(x.Pos(), "give the call's results names first", "a call whose arguments are the results of another")
	}
	for i, arg := range args {
		places = append(places, c.argument(arg, isPointer(params.At(i).Type())))
	}
	outer := c.vars
	c.vars = map[types.Object]place{}
	for i, v := range c.variables(d) {
		if v != nil {
			c.vars[v] = places[i]
		}
	}
	out := c.run(d)
	c.vars = outer
	return out
}

func isPointer(t types.Type) bool {
	_, ok := t.(*types.Pointer)
	return ok
}

// argument returns where a parameter lies: where a pointer points, else in a copy.
func (c *compiler) argument(arg ast.Expr, pointer bool) place {
	if pointer {
		at, ok := c.where(arg)
		if !ok {
			c.fail(arg.Pos(), "pass a variable's address", "a pointer to what is no variable")
		}
		return at
	}
	words := c.value(arg)
	at := c.declare(len(words))
	c.store(at, words)
	return at
}

// receiver returns where the receiver of a method lies, which may be an embedded struct.
func (c *compiler) receiver(sel *ast.SelectorExpr, d *ast.FuncDecl) place {
	s := c.f.Info.Selections[sel]
	path := s.Index()[:len(s.Index())-1]
	offset := pathOffset(s.Recv(), path)
	size := parse.Size(deref(c.f.Info.Types[d.Recv.List[0].Type].Type))
	at, ok := c.where(sel.X)
	pointer := isPointer(c.f.Info.Types[d.Recv.List[0].Type].Type)
	if ok && pointer {
		return at.shift(offset)
	}
	words := c.value(sel.X)[offset:][:size]
	copied := c.declare(size)
	c.store(copied, words)
	return copied
}
