package random

import "fmt"

// expr returns a random expression of a kind.
func (g *generator) expr(k kind, depth int) string {
	g.budget--
	if depth <= 0 || g.budget < 0 || g.chance(5) {
		return g.leaf(k)
	}
	switch k {
	case float:
		return g.floatExpr(depth - 1)
	case integer:
		return g.intExpr(depth - 1)
	}
	return g.boolExpr(depth - 1)
}

// leaf returns a variable or a constant.
func (g *generator) leaf(k kind) string {
	if names := g.scope.reads[k]; len(names) > 0 && !g.chance(4) {
		return names[g.r.IntN(len(names))]
	}
	if arrays := g.scope.arrays[k]; len(arrays) > 0 && g.chance(2) {
		return fmt.Sprintf("%s[%d]", arrays[g.r.IntN(len(arrays))], g.r.IntN(3))
	}
	switch k {
	case float:
		if g.chance(12) {
			return "problem.Infinity()"
		}
		return []string{"float32(0.5)", "float32(1)", "float32(-2.25)", "float32(0.1)", "float32(1e-30)", "float32(3e8)", "float32(0)", "float32(7)"}[g.r.IntN(8)]
	case integer:
		return []string{"int32(0)", "int32(1)", "int32(2)", "int32(-3)", "int32(31)", "int32(1000)", "int32(-2147483648)", "int32(2147483647)"}[g.r.IntN(8)]
	}
	return []string{"true", "false"}[g.r.IntN(2)]
}

// element returns an array's element by an index that depends on data.
func (g *generator) element(array string, depth int) string {
	index := g.expr(integer, depth)
	if !g.Wild {
		index = fmt.Sprintf("(%s)&1", index)
	}
	return fmt.Sprintf("%s[%s]", array, index)
}

func (g *generator) place() string { return g.scope.places[g.r.IntN(len(g.scope.places))] }

func (g *generator) floatExpr(d int) string {
	a := func() string { return g.expr(float, d) }
	switch g.r.IntN(14) {
	case 0, 1:
		return fmt.Sprintf("(%s + %s)", a(), a())
	case 2:
		return fmt.Sprintf("(%s - %s)", a(), a())
	case 3, 4:
		return fmt.Sprintf("float32(%s * %s)", a(), a())
	case 5:
		return fmt.Sprintf("(%s / %s)", a(), a())
	case 6:
		return fmt.Sprintf("min(%s, %s)", a(), a())
	case 7:
		return fmt.Sprintf("max(%s, %s)", a(), a())
	case 8:
		return fmt.Sprintf("(-%s)", a())
	case 9:
		return []string{"problem.Abs", "problem.Sqrt"}[g.r.IntN(2)] + "(" + a() + ")"
	case 10:
		if len(g.scope.places) > 0 {
			return fmt.Sprintf("problem.Distance(%s, %s)", g.place(), g.place())
		}
	case 11:
		return "float32(" + g.expr(integer, d) + ")"
	case 12:
		if arrays := g.scope.arrays[float]; len(arrays) > 0 {
			return g.element(arrays[g.r.IntN(len(arrays))], d)
		}
	}
	if g.helper {
		return a()
	}
	return fmt.Sprintf("%s(%s, %s, %s)", g.name("pick"), g.expr(boolean, d), a(), a())
}

func (g *generator) intExpr(d int) string {
	a := func() string { return g.expr(integer, d) }
	guard := func(form string) string {
		if g.Wild {
			return a()
		}
		return fmt.Sprintf(form, a())
	}
	switch g.r.IntN(16) {
	case 0, 1, 2, 3, 4, 5:
		return fmt.Sprintf("(%s %s %s)", a(), []string{"+", "-", "*", "&", "|", "^", "&^"}[g.r.IntN(7)], a())
	case 6:
		return fmt.Sprintf("(%s / %s)", a(), guard("(%s|1)"))
	case 7:
		return fmt.Sprintf("(%s %% %s)", a(), guard("(%s|1)"))
	case 8:
		return fmt.Sprintf("(%s << %s)", a(), guard("(%s&63)"))
	case 9:
		return fmt.Sprintf("(%s >> %s)", a(), guard("(%s&63)"))
	case 10:
		return fmt.Sprintf("min(%s, %s)", a(), a())
	case 11:
		return fmt.Sprintf("max(%s, %s, %s)", a(), a(), a())
	case 12:
		return []string{"(-%s)", "(^%s)"}[g.r.IntN(2)][:2] + a() + ")"
	case 13:
		if g.Wild {
			return "int32(" + g.expr(float, d) + ")"
		}
		if !g.helper {
			return g.name("whole") + "(" + g.expr(float, d) + ")"
		}
	case 14:
		return fmt.Sprintf("problem.MulDiv(%s, %s, %s)", a(), a(), a())
	case 15:
		if arrays := g.scope.arrays[integer]; len(arrays) > 0 {
			return g.element(arrays[g.r.IntN(len(arrays))], d)
		}
	}
	if g.helper {
		return a()
	}
	return fmt.Sprintf("%s(%s, %s)", g.name("mix"), a(), a())
}

func (g *generator) boolExpr(d int) string {
	switch g.r.IntN(6) {
	case 0:
		return fmt.Sprintf("(%s %s %s)", g.expr(float, d), []string{"<", "<=", ">", ">=", "==", "!="}[g.r.IntN(6)], g.expr(float, d))
	case 1, 2:
		return fmt.Sprintf("(%s %s %s)", g.expr(integer, d), []string{"<", "<=", ">", ">=", "==", "!="}[g.r.IntN(6)], g.expr(integer, d))
	case 3:
		return fmt.Sprintf("(!%s)", g.expr(boolean, d))
	case 4:
		return fmt.Sprintf("(%s %s %s)", g.expr(boolean, d), []string{"==", "!="}[g.r.IntN(2)], g.expr(boolean, d))
	}
	return fmt.Sprintf("(%s %s %s)", g.expr(boolean, d), []string{"&&", "||"}[g.r.IntN(2)], g.expr(boolean, d))
}
