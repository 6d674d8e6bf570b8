package random

import (
	"fmt"
	"strings"
)

// helpers writes the functions that expressions call.
func (g *generator) helpers() {
	g.helper = true
	g.line("func %s(c bool, a, b float32) float32 {\n\tif c {\n\t\treturn a\n\t}\n\treturn b\n}\n", g.name("pick"))
	g.line("func %s(x float32) int32 {\n\tif x > -1e9 && x < 1e9 {\n\t\treturn int32(x)\n\t}\n\treturn 7\n}\n", g.name("whole"))
	g.scope = scope{result: "int32"}
	g.scope.reads[integer], g.scope.writes[integer] = []string{"a", "b"}, []string{"a", "b"}
	g.method("int32", func() string { return g.expr(integer, 2) }, 12, "func %s(a, b int32) int32 {", g.name("mix"))
	g.scope = scope{}
	g.scope.read("v", g.vehicle, true)
	g.scope.reads[integer] = append(g.scope.reads[integer], "a")
	g.method("", nil, 20, "func (v *%s) %s(a int32) {", g.name("Vehicle"), g.name("bump"))
	g.helper = false
}

// method writes a method: its head, random statements and its result.
func (g *generator) method(result string, last func() string, budget int, head string, args ...any) {
	g.scope.result, g.budget, g.locals = result, budget, 0
	g.line(head, args...)
	g.indent++
	g.statements(g.r.IntN(4), 2)
	g.indent--
	if last != nil {
		g.budget = max(g.budget, 8)
		g.line("\treturn %s", last())
	}
	g.line("}\n")
}

// methods writes the methods that Haul calls.
func (g *generator) methods() {
	Node, Instance, Vehicle := g.name("Node"), g.name("Instance"), g.name("Vehicle")
	settings := ""
	if g.settings {
		settings = ", s *" + g.name("Settings")
	}
	in := func(write bool) { g.scope = scope{}; g.scope.read("in", g.instance, write) }
	if g.chance(2) {
		in(true)
		g.readNode("node", false)
		g.readNode("depot", false)
		g.method("", nil, 25, "func (in *%s) Before(node, depot *%s) {", Instance, Node)
	}
	in(true)
	g.scope.reads[integer] = append(g.scope.reads[integer], "n")
	g.readSettings()
	g.line("func (in *%s) Draw(r *problem.Random%s, n int32) {", Instance, settings)
	g.draws(g.scope.writes, "n > 4")
	g.line("}\n")

	g.scope = scope{}
	g.readNode("n", true)
	g.scope.read("in", g.instance, false)
	g.readNode("depot", false)
	g.readSettings()
	g.line("func (n *%s) Draw(r *problem.Random%s, in *%s, depot *%s) {", Node, settings, Instance, Node)
	g.draws(g.node.names("n"), "n.Index&1 == 0")
	if g.opens {
		g.line("\tif n.Index&3 == 1 {\n\t\tn.Opens.Opens = n.Index + 1\n\t}\n\tif n.Index&3 == 2 {\n\t\tn.Closed = true\n\t}")
	}
	if g.changing {
		g.line("\tn.Amount = 3 + n.Index&3")
	}
	g.line("}\n")
	if g.chance(2) {
		g.scope = scope{}
		g.readNode("n", true)
		g.scope.read("in", g.instance, false)
		g.readNode("depot", false)
		g.method("", nil, 30, "func (n *%s) Derive(in *%s, depot *%s) {", Node, Instance, Node)
	}
	if g.chance(2) {
		in(true)
		g.readNode("node", false)
		g.method("", nil, 25, "func (in *%s) After(node *%s) {", Instance, Node)
	}
	g.routeMethods(Node, Instance, Vehicle)
	g.useEverything(Node, Instance, Vehicle)
}

// readSettings adds the settings to the scope.
func (g *generator) readSettings() {
	if g.settings {
		for k := range kinds {
			g.scope.reads[k] = append(g.scope.reads[k], "s."+letter(k))
		}
	}
}

// names returns the fields of a variable by kind.
func (f fields) names(variable string) (out [kinds][]string) {
	var s scope
	s.read(variable, f, true)
	return s.writes
}

// draws writes a random number to each field: in the order of calls, and by At in a branch.
func (g *generator) draws(to [kinds][]string, condition string) {
	g.budget = 20
	for _, name := range to[float] {
		g.line("\t%s = %s", name, []string{"r.Float()", "r.Uniform(-1, 2)", "r.Uniform(0, 1)"}[g.r.IntN(3)])
	}
	for _, name := range to[integer] {
		g.line("\t%s = r.Below(%d)", name, 2+g.r.IntN(30))
	}
	for _, name := range to[boolean] {
		g.line("\t%s = r.Float() < 0.5", name)
	}
	if len(to[float]) > 0 {
		g.line("\tif %s {\n\t\t%s = r.At(%d).Float()\n\t}", condition, to[float][0], g.r.IntN(9))
	}
	if len(to[integer]) > 0 {
		g.line("\tfor k := range 2 {\n\t\t%s += r.At(int32(k)).Below(%s)\n\t}", to[integer][0], g.expr(integer, 1))
	}
}

// vehicleScope is the scope of a method of Vehicle.
func (g *generator) vehicleScope(write bool, nodes ...string) {
	g.scope = scope{vehicle: write}
	g.scope.read("v", g.vehicle, write)
	g.scope.read("in", g.instance, false)
	for _, n := range nodes {
		g.readNode(n, false)
	}
}

// routeMethods writes the methods of a route. Fits hashes the vehicle and the node, so that masks
// are mixed; random conditions change it.
func (g *generator) routeMethods(Node, Instance, Vehicle string) {
	if g.chance(2) {
		g.vehicleScope(true)
		g.method("", nil, 25, "func (v *%s) Start(in *%s) {", Vehicle, Instance)
	}
	hash := func() string {
		return fmt.Sprintf("(to.Index*%d+v.I0*%d+to.I0*%d)>>2&3", 1+2*g.r.IntN(20), 1+2*g.r.IntN(20), 1+2*g.r.IntN(20))
	}
	g.vehicleScope(false, "at", "to")
	g.method("bool", func() string {
		return fmt.Sprintf("%s != 0 != (%s && %s)", hash(), g.expr(boolean, 3), g.expr(boolean, 2))
	}, 60, "func (v *%s) Fits(in *%s, at, to *%s) bool {", Vehicle, Instance, Node)
	g.vehicleScope(false, "at", "to")
	g.scope.reads[integer] = append(g.scope.reads[integer], "unvisited")
	g.method("bool", func() string { return fmt.Sprintf("unvisited == 0 || %s < 2", hash()) }, 10,
		"func (v *%s) Returns(in *%s, at, to *%s, unvisited int32) bool {", Vehicle, Instance, Node)
	g.vehicleScope(true, "at", "to")
	if g.changing {
		g.scope.writes[integer] = append(g.scope.writes[integer], "to.Amount")
	}
	g.line("// Move counts the moves first, so that masks change.")
	g.method("float32", func() string { return g.expr(float, 3) }, 60, "func (v *%s) Move(in *%s, at, to *%s) float32 {\n\tv.I0 += 3", Vehicle, Instance, Node)
	if g.changing {
		g.scope = scope{}
		g.readNode("n", false)
		g.scope.read("in", g.instance, false)
		g.scope.read("v", g.vehicle, false)
		g.method("bool", func() string { return "n.Amount > 4" }, 10, "func (n *%s) Stays(in *%s, v *%s) bool {", Node, Instance, Vehicle)
	}
	g.vehicleScope(false, "at")
	g.scope.reads[integer] = append(g.scope.reads[integer], "unvisited")
	g.line("func (v *%s) Ended(in *%s, at *%s, unvisited int32) bool {", Vehicle, Instance, Node)
	g.budget = 10
	g.line("\treturn unvisited == 0 || at.Depot >= 0 && %s && v.I0&31 == 5\n}\n", g.expr(boolean, 2))
	if g.chance(2) {
		g.vehicleScope(false)
		g.scope.reads[integer] = append(g.scope.reads[integer], "unvisited")
		g.method("float32", func() string { return g.expr(float, 2) }, 15, "func (v *%s) Stuck(in *%s, unvisited int32) float32 {", Vehicle, Instance)
	}
	if g.chance(2) {
		g.line("func %s(n int32) int32 {\n\treturn %d*n + 3\n}\n", g.name("Steps"), 1+g.r.IntN(3))
	}
}

// useEverything writes Features and Context, which read every field, so that none is unused.
func (g *generator) useEverything(Node, Instance, Vehicle string) {
	write := func(head string, variables map[string]fields, extra []string) {
		var values []string
		for _, name := range []string{"n", "in", "v"} {
			f, ok := variables[name]
			if !ok {
				continue
			}
			var s scope
			s.read(name, f, false)
			values = append(values, s.reads[float]...)
			for _, x := range s.reads[integer] {
				values = append(values, "float32("+x+")")
			}
			for _, x := range s.reads[boolean] {
				values = append(values, fmt.Sprintf("%s(%s, 1, 2)", g.name("pick"), x))
			}
			var sums []string
			for _, x := range s.arrays[float] {
				sums = append(sums, x+"[0] + "+x+"[2]")
			}
			for _, x := range s.arrays[integer] {
				sums = append(sums, "float32("+x+"[1])")
			}
			for _, x := range s.arrays[boolean] {
				sums = append(sums, fmt.Sprintf("%s(%s[2], 0.5, 3)", g.name("pick"), x))
			}
			values = append(values, sums...)
		}
		values = append(values, extra...)
		g.line("func "+head+" [%d]float32 {\n\treturn [...]float32{%s}\n}\n", len(values), strings.Join(values, ", "))
	}
	g.scope = scope{}
	g.readNode("n", false)
	g.scope.read("in", g.instance, false)
	g.budget = 10
	used := []string{"n.X", g.expr(float, 2)}
	if g.settings {
		g.line("func (s *%s) %s() float32 { return %s(s.B, s.F, float32(s.I)) }\n", g.name("Settings"), g.name("sum"), g.name("pick"))
	}
	write(fmt.Sprintf("(n *%s) Features(in *%s)", Node, Instance), map[string]fields{"n": g.node, "in": g.instance}, used)
	g.vehicleScope(false, "at")
	g.scope.reads[integer] = append(g.scope.reads[integer], "unvisited")
	write(fmt.Sprintf("(v *%s) Context(in *%s, at *%s, unvisited int32)", Vehicle, Instance, Node), map[string]fields{"v": g.vehicle}, []string{g.expr(float, 3), "float32(unvisited)"})
}
