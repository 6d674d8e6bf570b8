// Package random writes random problem files: valid rules that no person would write, which use
// every statement, operator and method of the language. Tests run them in all forms.
package random

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Options configure a file.
type Options struct {
	Seed uint64
	// Suffix is appended to the names of the types and functions of the file, so that many files fit
	// in one package.
	Suffix string
	// Wild leaves out guards: divisors may be 0, indices may be outside, floats may fit no int32. Go
	// stops at these, so wild files are not run natively.
	Wild bool
}

// kind is a type of the language.
type kind int

const (
	float kind = iota
	integer
	boolean
	kinds
)

func (k kind) String() string { return [...]string{"float32", "int32", "bool"}[k] }

// fields are the fields that a struct has of each kind, and arrays of 3.
type fields struct {
	name   string
	count  [kinds]int
	arrays [kinds]bool
}

// File returns the text of a problem file. It is a pure function of its options; files that differ
// in Suffix alone are the same rules.
func File(o Options) string {
	g := &generator{Options: o, r: rand.New(rand.NewPCG(o.Seed, 17))}
	g.opens, g.changing, g.depots = g.r.IntN(4) == 0, g.r.IntN(3) == 0, 1
	if g.chance(4) {
		g.depots = 2 + g.r.IntN(2)
	}
	g.settings = g.r.IntN(4) > 0
	g.node, g.instance, g.vehicle = g.fields("Node"), g.fields("Instance"), g.fields("Vehicle")
	g.vehicle.count[integer] = max(1, g.vehicle.count[integer]) // counts moves
	g.node.count[integer] = max(1, g.node.count[integer])
	g.vehicle.count[boolean] = max(1, g.vehicle.count[boolean])
	g.types()
	g.helpers()
	g.methods()
	return g.out.String()
}

type generator struct {
	Options
	r                       *rand.Rand
	out                     strings.Builder
	node, instance, vehicle fields
	opens, changing         bool
	settings                bool
	depots                  int
	indent                  int
	scope                   scope
	locals                  int
	budget                  int  // expressions that the method may still have
	helper                  bool // within a helper, which calls none
}

// scope holds the variables that expressions may read and statements may write, by kind.
type scope struct {
	reads, writes [kinds][]string
	arrays        [kinds][]string // arrays of 3
	arrayWrites   [kinds][]string
	places        []string
	vehicle       bool   // v may be changed
	result        string // of an early return: "float32" or "bool"; "" forbids it
	loop          int
}

func (g *generator) fields(name string) fields {
	f := fields{name: name}
	for k := range f.count {
		f.count[k] = g.r.IntN(3)
		f.arrays[k] = g.r.IntN(3) == 0
	}
	return f
}

func (g *generator) line(format string, args ...any) {
	g.out.WriteString(strings.Repeat("\t", g.indent) + fmt.Sprintf(format, args...) + "\n")
}

// chance is true once in n times.
func (g *generator) chance(n int) bool { return g.r.IntN(n) == 0 }

func (g *generator) name(s string) string { return s + g.Suffix }

// types writes the structs.
func (g *generator) types() {
	g.line("// Package random has rules that nobody would write.\npackage random\n\nimport \"haul/problem\"\n")
	if g.depots > 1 {
		g.line("const %s = %d\n", g.name("Depots"), g.depots)
	}
	g.line("type %s struct {", g.name("Node"))
	g.line("\tproblem.Place\n\tproblem.Site")
	if g.opens {
		g.line("\tproblem.Opens")
	}
	if g.changing {
		g.line("\tproblem.Changing")
	}
	g.body(g.node)
	g.line("type %s struct {", g.name("Instance"))
	g.body(g.instance)
	g.line("type %s struct {", g.name("Vehicle"))
	g.body(g.vehicle)
	if g.settings {
		g.line("type %s struct {\n\tF float32 `default:\"%v\"`\n\tI int32 `default:\"%d\"`\n\tB bool `default:\"%v\"`\n}\n", g.name("Settings"), float32(g.r.IntN(100))/16, g.r.IntN(20)-5, g.chance(2))
	}
}

func (g *generator) body(f fields) {
	for k := range kinds {
		for i := range f.count[k] {
			g.line("\t%s%d %s", letter(k), i, k)
		}
		if f.arrays[k] {
			g.line("\tA%s [3]%s", letter(k), k)
		}
	}
	g.line("}\n")
}

func letter(k kind) string { return [...]string{"F", "I", "B"}[k] }

// read adds the fields of a variable to a scope.
func (s *scope) read(variable string, f fields, write bool) {
	for k := range kinds {
		for i := range f.count[k] {
			name := fmt.Sprintf("%s.%s%d", variable, letter(k), i)
			s.reads[k] = append(s.reads[k], name)
			if write {
				s.writes[k] = append(s.writes[k], name)
			}
		}
		if f.arrays[k] {
			name := fmt.Sprintf("%s.A%s", variable, letter(k))
			s.arrays[k] = append(s.arrays[k], name)
			if write {
				s.arrayWrites[k] = append(s.arrayWrites[k], name)
			}
		}
	}
}

// readNode adds what a node embeds.
func (g *generator) readNode(variable string, write bool) {
	s := &g.scope
	s.read(variable, g.node, write)
	s.reads[float] = append(s.reads[float], variable+".X", variable+".Y")
	s.reads[integer] = append(s.reads[integer], variable+".Index", variable+".Depot")
	s.places = append(s.places, variable+".Place")
	if g.changing {
		s.reads[integer] = append(s.reads[integer], variable+".Amount")
	}
}
