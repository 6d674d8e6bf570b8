package random

import "fmt"

// statements writes up to n random statements. Variables that they declare end with them.
func (g *generator) statements(n, depth int) {
	outer := g.scope
	for range n {
		if g.budget <= 0 {
			break
		}
		g.statement(depth)
	}
	g.scope = outer
}

// block writes statements in braces.
func (g *generator) block(n, depth int) {
	g.indent++
	g.statements(n, depth)
	g.indent--
}

func (g *generator) statement(depth int) {
	k := kind(g.r.IntN(int(kinds)))
	s := &g.scope
	choice := g.r.IntN(12)
	if depth <= 0 && choice >= 6 {
		choice %= 6
	}
	switch choice {
	case 0: // a local variable
		name := fmt.Sprintf("x%d", g.locals)
		g.locals++
		if g.chance(2) {
			g.line("%s := %s", name, g.typed(k))
		} else {
			g.line("var %s %s", name, k)
			g.line("%s = %s", name, g.expr(k, 2))
		}
		g.line("_ = %s", name)
		s.reads[k] = append(s.reads[k][:len(s.reads[k]):len(s.reads[k])], name)
		s.writes[k] = append(s.writes[k][:len(s.writes[k]):len(s.writes[k])], name)
	case 1, 2, 3:
		g.assign(k)
	case 4:
		if arrays := s.arrayWrites[k]; len(arrays) > 0 {
			g.line("%s = %s", g.element(arrays[g.r.IntN(len(arrays))], 1), g.expr(k, 2))
			return
		}
		g.assign(k)
	case 5:
		if s.vehicle && !g.helper {
			g.line("v.%s(%s)", g.name("bump"), g.expr(integer, 2))
			return
		}
		g.assign(k)
	case 6, 7:
		g.line("if %s {", g.expr(boolean, 2))
		g.block(1+g.r.IntN(2), depth-1)
		if g.chance(2) {
			g.line("} else {")
			g.block(1+g.r.IntN(2), depth-1)
		}
		g.line("}")
	case 8:
		g.choose(depth)
	case 9, 10:
		g.loop(depth)
	case 11:
		g.leave()
	}
}

// typed is an expression that gives a variable its type by :=.
func (g *generator) typed(k kind) string { return k.String() + "(" + g.expr(k, 2) + ")" }

func (g *generator) assign(k kind) {
	names := g.scope.writes[k]
	if len(names) == 0 {
		return
	}
	name := names[g.r.IntN(len(names))]
	switch {
	case k == integer && g.chance(4):
		g.line("%s%s", name, []string{"++", "--"}[g.r.IntN(2)])
	case k == integer && g.chance(3):
		g.line("%s %s= %s", name, []string{"+", "-", "|", "^", "&"}[g.r.IntN(5)], g.expr(k, 2))
	case k == float && g.chance(3):
		g.line("%s %s= %s", name, []string{"+", "-", "/"}[g.r.IntN(3)], g.expr(k, 2))
	case g.chance(5):
		other := names[g.r.IntN(len(names))]
		if other != name {
			g.line("%s, %s = %s, %s", name, other, other, g.expr(k, 1))
			return
		}
		fallthrough
	default:
		g.line("%s = %s", name, g.expr(k, 3))
	}
}

// choose writes a switch, by a number or by conditions.
func (g *generator) choose(depth int) {
	if g.chance(2) {
		g.line("switch %s & 3 {", g.expr(integer, 2))
		g.line("case 0, 2:")
		g.block(1, depth-1)
		g.line("case 1:")
	} else {
		g.line("switch {")
		g.line("case %s:", g.expr(boolean, 2))
		g.block(1, depth-1)
		g.line("case %s, %s:", g.expr(boolean, 1), g.expr(boolean, 1))
	}
	g.block(1, depth-1)
	if g.chance(2) {
		g.line("default:")
		g.block(1, depth-1)
	}
	g.line("}")
}

// loop writes a loop to a constant.
func (g *generator) loop(depth int) {
	i := fmt.Sprintf("i%d", g.locals)
	g.locals++
	s := g.scope
	rounds := 1 + g.r.IntN(3)
	switch g.r.IntN(3) {
	case 0:
		g.line("for %s := range %d {\n\t_ = %s", i, rounds, i)
		g.scope.reads[integer] = append(s.reads[integer][:len(s.reads[integer]):len(s.reads[integer])], "int32("+i+")")
	case 1:
		g.line("for %s := int32(0); %s < %d; %s++ {\n\t_ = %s", i, i, rounds, i, i)
		g.scope.reads[integer] = append(s.reads[integer][:len(s.reads[integer]):len(s.reads[integer])], i)
	default:
		k := kind(g.r.IntN(int(kinds)))
		if arrays := s.arrays[k]; len(arrays) > 0 {
			g.line("for _, %s := range %s {", i, arrays[g.r.IntN(len(arrays))])
			g.line("\t_ = %s", i)
			g.scope.reads[k] = append(s.reads[k][:len(s.reads[k]):len(s.reads[k])], i)
		} else {
			g.line("for range %d {", rounds)
		}
	}
	g.scope.loop++
	g.block(1+g.r.IntN(2), depth-1)
	g.scope = s
	g.line("}")
}

// leave writes an early return, or a break or continue, under a condition.
func (g *generator) leave() {
	how := ""
	switch {
	case g.scope.loop > 0 && g.chance(2):
		how = []string{"break", "continue"}[g.r.IntN(2)]
	case g.scope.result == "float32":
		how = "return " + g.expr(float, 2)
	case g.scope.result == "bool":
		how = "return " + g.expr(boolean, 2)
	case g.scope.result == "int32":
		how = "return " + g.expr(integer, 2)
	default:
		return
	}
	g.line("if %s {\n\t%s\n}", g.expr(boolean, 2), how)
}
