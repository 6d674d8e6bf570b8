package lower

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
)

// mostRounds bounds the rounds of a loop.
const mostRounds = 64

// branch runs one of two arms by a bool: both, if it is no constant. Variables that an arm declares
// end with it.
func (c *compiler) branch(when int32, yes, no func()) {
	if w, ok := c.b.IsConst(when); ok {
		if w != 0 {
			yes()
		} else {
			no()
		}
		return
	}
	before := slices.Clone(c.cells)
	yes()
	then := c.cells
	c.cells = slices.Clone(before)
	no()
	for i := range before {
		before[i] = c.b.Select(when, then[i], c.cells[i])
	}
	c.cells = before
}

// block runs statements. After a statement that may leave the block, the rest runs in a branch.
func (c *compiler) block(list []ast.Stmt) {
	for i, s := range list {
		c.statement(s)
		if c.b.Len() > 8*MostOps {
			c.fail(s.Pos(), "shorten loops, or move what does not change into Derive", "the method has far more than %d operations", MostOps)
		}
		leave := c.left()
		if w, ok := c.b.IsConst(leave); ok {
			if w != 0 {
				return
			}
			continue
		}
		c.branch(leave, func() {}, func() { c.block(list[i+1:]) })
		return
	}
}

// left returns whether the block was left by a return, break or continue.
func (c *compiler) left() int32 {
	out := c.cells[c.call.returned]
	if c.call.inLoop {
		out = c.b.Do(ir.Or, out, c.b.Do(ir.Or, c.cells[c.call.broke], c.cells[c.call.continued]))
	}
	return out
}

func (c *compiler) statement(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.EmptyStmt:
	case *ast.BlockStmt:
		c.block(s.List)
	case *ast.ExprStmt:
		c.value(s.X)
	case *ast.DeclStmt:
		c.declaration(s.Decl.(*ast.GenDecl))
	case *ast.AssignStmt:
		c.assign(s)
	case *ast.IncDecStmt:
		c.incDec(s)
	case *ast.ReturnStmt:
		c.giveBack(s)
	case *ast.BranchStmt:
		if s.Tok == token.BREAK {
			c.cells[c.call.broke] = c.b.Const(1)
		} else {
			c.cells[c.call.continued] = c.b.Const(1)
		}
	case *ast.IfStmt:
		if s.Init != nil {
			c.statement(s.Init)
		}
		c.branch(c.word(s.Cond), func() { c.block(s.Body.List) }, func() {
			if s.Else != nil {
				c.statement(s.Else)
			}
		})
	case *ast.SwitchStmt:
		c.choose(s)
	case *ast.ForStmt:
		c.loop(s)
	case *ast.RangeStmt:
		c.rangeOver(s)
	default:
		c.fail(s.Pos(), "docs/rules.md lists the statements of rules", "a statement outside the language of rules")
	}
}

func (c *compiler) declaration(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok || d.Tok == token.CONST {
			continue
		}
		var words [][]int32
		if len(v.Values) > 0 {
			words = c.values(v.Values, len(v.Names))
		}
		for i, name := range v.Names {
			at := c.declare(parse.Size(c.f.Info.Defs[name].Type()))
			if words != nil {
				c.store(at, words[i])
			}
			c.vars[c.f.Info.Defs[name]] = at
		}
	}
}

// values returns the words of n variables on the left: of as many expressions, or of one call.
func (c *compiler) values(list []ast.Expr, n int) [][]int32 {
	out := make([][]int32, 0, n)
	if len(list) == n {
		for _, e := range list {
			out = append(out, c.value(e))
		}
		return out
	}
	words := c.value(list[0])
	results := c.f.Info.Types[list[0]].Type.(*types.Tuple)
	for i := range n {
		size := parse.Size(results.At(i).Type())
		out = append(out, words[:size])
		words = words[size:]
	}
	return out
}

func (c *compiler) assign(s *ast.AssignStmt) {
	if s.Tok != token.ASSIGN && s.Tok != token.DEFINE {
		at, _ := c.where(s.Lhs[0])
		op := s.Tok - token.ADD_ASSIGN + token.ADD
		kind, _ := parse.KindOf(c.f.Info.Types[s.Lhs[0]].Type)
		c.store(at, []int32{c.binary(s.TokPos, op, kind, c.load(at, 1)[0], c.word(s.Rhs[0]))})
		return
	}
	var places []place
	if s.Tok == token.ASSIGN { // indices of the left are computed before the right
		for _, x := range s.Lhs {
			places = append(places, c.target(x))
		}
	}
	words := c.values(s.Rhs, len(s.Lhs))
	if s.Tok == token.DEFINE {
		for i, x := range s.Lhs {
			id := x.(*ast.Ident)
			if obj := c.f.Info.Defs[id]; obj != nil && id.Name != "_" {
				c.vars[obj] = c.declare(len(words[i]))
			}
			places = append(places, c.target(x))
		}
	}
	for i, at := range places {
		if at != nil {
			c.store(at, words[i])
		}
	}
}

// target returns the place of the left side of an assignment, nil if it is the blank identifier.
func (c *compiler) target(x ast.Expr) place {
	if id, ok := ast.Unparen(x).(*ast.Ident); ok && id.Name == "_" {
		return nil
	}
	at, ok := c.where(x)
	if !ok {
		c.fail(x.Pos(), "assign to a variable, a field or an element", "this cannot be assigned")
	}
	return at
}

func (c *compiler) incDec(s *ast.IncDecStmt) {
	at := c.target(s.X)
	op := token.ADD
	if s.Tok == token.DEC {
		op = token.SUB
	}
	kind, _ := parse.KindOf(c.f.Info.Types[s.X].Type)
	one := c.b.Const(1)
	if kind == ir.Float32 {
		one = c.b.Float(1)
	}
	c.store(at, []int32{c.binary(s.TokPos, op, kind, c.load(at, 1)[0], one)})
}

func (c *compiler) giveBack(s *ast.ReturnStmt) {
	if len(s.Results) > 0 {
		for i, words := range c.values(s.Results, len(c.call.results)) {
			c.store(c.call.results[i], words)
		}
	}
	c.cells[c.call.returned] = c.b.Const(1)
}

// choose runs a switch as a chain of branches. A break leaves the switch.
func (c *compiler) choose(s *ast.SwitchStmt) {
	if s.Init != nil {
		c.statement(s.Init)
	}
	tag, kind := c.b.Const(1), ir.Bool
	if s.Tag != nil {
		tag = c.word(s.Tag)
		kind, _ = parse.KindOf(c.f.Info.Types[s.Tag].Type)
	}
	outer := c.call
	c.call.inLoop, c.call.broke = true, c.flag()
	if !outer.inLoop {
		c.call.continued = c.flag()
	}
	var clauses []*ast.CaseClause
	var fallback []ast.Stmt
	for _, clause := range s.Body.List {
		if cc := clause.(*ast.CaseClause); cc.List != nil {
			clauses = append(clauses, cc)
		} else {
			fallback = cc.Body
		}
	}
	var try func(k int)
	try = func(k int) {
		if k == len(clauses) {
			c.block(fallback)
			return
		}
		match := c.b.Const(0)
		for _, e := range clauses[k].List {
			match = c.b.Do(ir.Or, match, c.equal(kind, tag, c.word(e)))
		}
		c.branch(match, func() { c.block(clauses[k].Body) }, func() { try(k + 1) })
	}
	try(0)
	c.call = outer
}

// loop runs a for statement round by round.
func (c *compiler) loop(s *ast.ForStmt) {
	if s.Init != nil {
		c.statement(s.Init)
	}
	c.rounds(s, func(int) bool {
		if s.Cond == nil {
			return true
		}
		w, ok := c.b.IsConst(c.word(s.Cond))
		if !ok {
			c.fail(s.Cond.Pos(), "loop to a constant and use an if within", "a loop whose bound depends on data")
		}
		return w != 0
	}, s.Body, func() {
		if s.Post != nil {
			c.statement(s.Post)
		}
	})
}

// rangeOver runs a loop over a constant or an array.
func (c *compiler) rangeOver(s *ast.RangeStmt) {
	t := c.f.Info.Types[s.X].Type
	n := 0
	var over []int32
	size := 0
	if b, ok := t.Underlying().(*types.Basic); ok && b.Info()&types.IsInteger != 0 {
		w, constant := c.b.IsConst(c.word(s.X))
		if !constant {
			c.fail(s.X.Pos(), "loop to a constant and use an if within", "a loop whose bound depends on data")
		}
		n = int(int32(w))
	} else {
		array := arrayOf(t)
		n, size = int(array.Len()), parse.Size(array.Elem())
		if s.Value != nil {
			over = c.value(s.X)
		}
	}
	c.rounds(s, func(k int) bool {
		if k >= n {
			return false
		}
		c.bind(s, s.Key, []int32{c.b.Const(uint32(k))})
		if s.Value != nil {
			c.bind(s, s.Value, over[k*size:][:size])
		}
		return true
	}, s.Body, func() {})
}

// bind gives a variable of a range statement its words of a round.
func (c *compiler) bind(s *ast.RangeStmt, e ast.Expr, words []int32) {
	id, ok := e.(*ast.Ident)
	if e == nil || ok && id.Name == "_" {
		return
	}
	if s.Tok == token.DEFINE {
		c.vars[c.f.Info.Defs[id]] = c.declare(len(words))
	}
	c.store(c.target(e), words)
}

// rounds runs the rounds of a loop: more reports whether round k is run.
func (c *compiler) rounds(s ast.Stmt, more func(k int) bool, body *ast.BlockStmt, post func()) {
	outer := c.call
	c.call.inLoop, c.call.broke, c.call.continued = true, c.flag(), c.flag()
	broke, continued := c.call.broke, c.call.continued
	var run func(k int)
	run = func(k int) {
		if !more(k) {
			return
		}
		if k >= mostRounds {
			c.fail(s.Pos(), "shorten the loop", "a loop of more than %d rounds", mostRounds)
		}
		c.block(body.List)
		c.cells[continued] = c.b.Const(0)
		stop := c.b.Do(ir.Or, c.cells[c.call.returned], c.cells[broke])
		c.branch(stop, func() {}, func() { post(); run(k + 1) })
	}
	run(0)
	c.call = outer
}
