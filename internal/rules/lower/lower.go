// Package lower compiles the methods of a problem file into straight-line code (package ir).
//
// A method is run with symbolic values: every word of every variable is a cell that holds a value
// of the builder. Calls are inlined and loops unrolled, so their bounds must be constants. Both
// arms of a branch run, each on its own copy of the cells, and cells that differ are joined by a
// select. A return, break or continue sets a separate cell; the statements that follow run in a
// branch that asks for it (statement.go).
package lower

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
)

// MostOps is the number of operations that a method may have.
const MostOps = 4096

// Program is a compiled problem file.
type Program struct {
	File                              *parse.File
	Settings, Instance, Node, Vehicle []parse.Field
	Roles
	funcs map[parse.Method]*ir.Func
}

// Func returns a compiled method, nil if the file leaves it out.
func (p *Program) Func(m parse.Method) *ir.Func { return p.funcs[m] }

// Roles are the words of a node that Haul itself reads or writes; -1 if a node has no such word.
type Roles struct {
	X, Y          int // problem.Place
	Index, Depot  int // problem.Site
	Opens, Closed int // problem.Opens
	Amount        int // problem.Changing
}

// Compile compiles all methods of a file. The error is a parse.ErrorList.
func Compile(f *parse.File) (*Program, error) {
	p := &Program{File: f, funcs: map[parse.Method]*ir.Func{}}
	p.Instance, _ = parse.Words(f.Instance)
	p.Node, _ = parse.Words(f.Node)
	p.Vehicle, _ = parse.Words(f.Vehicle)
	if f.Settings != nil {
		p.Settings, _ = parse.Words(f.Settings)
	}
	p.Roles = rolesOf(f.Node)
	var list parse.ErrorList
	for _, m := range parse.Methods() {
		if f.Methods[m] == nil {
			continue
		}
		fn, err := p.compile(m)
		if err != nil {
			list = append(list, err)
			continue
		}
		p.funcs[m] = fn
	}
	if len(list) > 0 {
		return nil, list
	}
	return p, nil
}

// rolesOf finds the structs of package problem that a node embeds.
func rolesOf(node *types.Named) Roles {
	r := Roles{-1, -1, -1, -1, -1, -1, -1}
	s := node.Underlying().(*types.Struct)
	for i := range s.NumFields() {
		named, ok := s.Field(i).Type().(*types.Named)
		if !ok || !s.Field(i).Embedded() || named.Obj().Pkg() == node.Obj().Pkg() {
			continue
		}
		at := parse.Offset(s, i)
		switch named.Obj().Name() {
		case "Place":
			r.X, r.Y = at, at+1
		case "Site":
			r.Index, r.Depot = at, at+1
		case "Opens":
			r.Opens, r.Closed = at, at+1
		case "Changing":
			r.Amount = at
		}
	}
	return r
}

// compiler compiles one method.
type compiler struct {
	p     *Program
	f     *parse.File
	b     *ir.Builder
	cells []int32 // value of each word of each variable in scope
	vars  map[types.Object]place
	call  frame
	next  int32 // random word that the next call takes
	depth int
}

// frame holds the results of a function that is being inlined, and the flags of its loops.
type frame struct {
	results          []place
	returned         int // cells that hold a bool
	broke, continued int
	inLoop           bool
}

// failure stops a compilation; compile turns it into an error.
type failure struct{ err *parse.Error }

func (c *compiler) fail(at token.Pos, remedy, format string, args ...any) {
	panic(failure{c.f.Errorf(at, remedy, format, args...)})
}

// parameter is a variable of a method whose words are inputs, and whether the method may change it.
type parameter struct {
	source ir.Source
	writes bool
}

// parametersOf lists the receiver and the parameters of each method.
var parametersOf = map[parse.Method][]parameter{
	parse.Before:       {{ir.Instance, true}, {ir.To, false}, {ir.Depot, false}},
	parse.DrawInstance: {{ir.Instance, true}, {ir.Random, false}, {ir.Settings, false}, {ir.Count, false}},
	parse.DrawNode:     {{ir.To, true}, {ir.Random, false}, {ir.Settings, false}, {ir.Instance, false}, {ir.Depot, false}},
	parse.Derive:       {{ir.To, true}, {ir.Instance, false}, {ir.Depot, false}},
	parse.After:        {{ir.Instance, true}, {ir.To, false}},
	parse.Features:     {{ir.To, false}, {ir.Instance, false}},
	parse.Start:        {{ir.Vehicle, true}, {ir.Instance, false}},
	parse.Fits:         {{ir.Vehicle, false}, {ir.Instance, false}, {ir.At, false}, {ir.To, false}},
	parse.Returns:      {{ir.Vehicle, false}, {ir.Instance, false}, {ir.At, false}, {ir.To, false}, {ir.Unvisited, false}},
	parse.Move:         {{ir.Vehicle, true}, {ir.Instance, false}, {ir.At, false}, {ir.To, true}},
	parse.Stays:        {{ir.To, false}, {ir.Instance, false}, {ir.Vehicle, false}},
	parse.Ended:        {{ir.Vehicle, false}, {ir.Instance, false}, {ir.At, false}, {ir.Unvisited, false}},
	parse.Stuck:        {{ir.Vehicle, false}, {ir.Instance, false}, {ir.Unvisited, false}},
	parse.Context:      {{ir.Vehicle, false}, {ir.Instance, false}, {ir.At, false}, {ir.Unvisited, false}},
	parse.Steps:        {{ir.Count, false}},
}

// compile compiles one method. Its outputs are its results, then the words that it may change.
func (p *Program) compile(m parse.Method) (fn *ir.Func, err *parse.Error) {
	c := &compiler{p: p, f: p.File, b: ir.NewBuilder(m.String()), vars: map[types.Object]place{}}
	defer func() {
		if r := recover(); r != nil {
			stop, ok := r.(failure)
			if !ok {
				panic(r)
			}
			err = stop.err
		}
	}()
	decl := c.f.Methods[m]
	vars := c.variables(decl)
	type bound struct {
		parameter
		at    place
		words []parse.Field
	}
	var inputs []bound
	pars := parametersOf[m]
	if c.f.Settings == nil {
		pars = slices.DeleteFunc(slices.Clone(pars), func(p parameter) bool { return p.source == ir.Settings })
	}
	for i, par := range pars {
		words := p.words(par.source)
		first := len(c.cells)
		for k, w := range words {
			c.cells = append(c.cells, c.b.Input(ir.Word{Source: par.source, Index: int32(k), Kind: w.Kind}))
		}
		inputs = append(inputs, bound{par, cellsAt(first), words})
		if vars[i] != nil {
			c.vars[vars[i]] = cellsAt(first)
		}
	}
	before := append([]int32(nil), c.cells...)
	outputs := c.run(decl)
	for _, in := range inputs {
		first := in.at[0].cell
		for k := range in.words {
			now := c.cells[first+k]
			if in.writes && (m != parse.Move || in.source != ir.To || k == p.Amount) {
				outputs = append(outputs, now)
			} else if now != before[first+k] {
				c.fail(decl.Name.Pos(), "keep it in a local variable", "%s changes %s.%s", m, sourceType(in.source), in.words[k].Path)
			}
		}
	}
	fn = c.b.Finish(outputs)
	if n := fn.Cost(); n > MostOps {
		c.fail(decl.Name.Pos(), "shorten loops, or move what does not change into Derive", "%s has %d operations; at most %d are allowed", m, n, MostOps)
	}
	return fn, nil
}

func sourceType(s ir.Source) string {
	return map[ir.Source]string{ir.Instance: "Instance", ir.Vehicle: "Vehicle", ir.At: "Node", ir.To: "Node", ir.Depot: "Node"}[s]
}

// words returns the words of a source.
func (p *Program) words(s ir.Source) []parse.Field {
	switch s {
	case ir.Settings:
		return p.Settings
	case ir.Instance:
		return p.Instance
	case ir.Vehicle:
		return p.Vehicle
	case ir.At, ir.To, ir.Depot:
		return p.Node
	case ir.Count, ir.Unvisited:
		return []parse.Field{{Kind: ir.Int32}}
	}
	return nil // Random: words are taken one by one
}

// variables returns the receiver and the parameters of a function; nil for those without a name.
func (c *compiler) variables(d *ast.FuncDecl) (out []types.Object) {
	lists := []*ast.FieldList{d.Recv, d.Type.Params}
	for _, l := range lists {
		if l == nil {
			continue
		}
		for _, field := range l.List {
			if len(field.Names) == 0 {
				out = append(out, nil)
			}
			for _, name := range field.Names {
				out = append(out, c.f.Info.Defs[name])
			}
		}
	}
	return out
}

// run runs the body of a function whose parameters are bound and returns the words of its results.
func (c *compiler) run(d *ast.FuncDecl) []int32 {
	if c.depth++; c.depth > 64 {
		c.fail(d.Pos(), "call fewer functions within each other", "calls nest deeper than 64")
	}
	outer := c.call
	c.call = frame{returned: c.flag()}
	if d.Type.Results != nil {
		for _, field := range d.Type.Results.List {
			for i := range max(1, len(field.Names)) {
				at := c.declare(parse.Size(c.f.Info.Types[field.Type].Type))
				c.call.results = append(c.call.results, at)
				if len(field.Names) > 0 {
					c.vars[c.f.Info.Defs[field.Names[i]]] = at
				}
			}
		}
	}
	sizes := c.resultSizes(d)
	c.block(d.Body.List)
	var out []int32
	for i, at := range c.call.results {
		out = append(out, c.load(at, sizes[i])...)
	}
	c.call = outer
	c.depth--
	return out
}

func (c *compiler) resultSizes(d *ast.FuncDecl) (sizes []int) {
	if d.Type.Results == nil {
		return nil
	}
	for _, field := range d.Type.Results.List {
		for range max(1, len(field.Names)) {
			sizes = append(sizes, parse.Size(c.f.Info.Types[field.Type].Type))
		}
	}
	return sizes
}

// flag returns a cell that holds false.
func (c *compiler) flag() int {
	c.cells = append(c.cells, c.b.Const(0))
	return len(c.cells) - 1
}

// declare returns a variable of n words that are 0.
func (c *compiler) declare(n int) place {
	first := len(c.cells)
	zero := c.b.Const(0)
	for range n {
		c.cells = append(c.cells, zero)
	}
	if len(c.cells) > mostCells {
		panic(failure{&parse.Error{Text: fmt.Sprintf("variables have more than %d words", mostCells), Remedy: "use smaller arrays"}})
	}
	return cellsAt(first)
}

const mostCells = 1 << 16
