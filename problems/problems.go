// Package problems lists the built-in routing problems. Each is a folder with one Go file of
// rules. Haul compiles the text of the file; the package is the same rules run natively, with which
// tests compare the compiled ones.
//
// Only commands and tests import this package: nothing below them names a problem.
package problems

import (
	"embed"
	"slices"

	"haul/problems/cvrp"
	"haul/problems/cvrpl"
	"haul/problems/mdvrp"
	"haul/problems/op"
	"haul/problems/tsp"
	"haul/problems/vrp"
)

//go:embed cvrp/cvrp.go cvrpl/cvrpl.go mdvrp/mdvrp.go op/op.go tsp/tsp.go vrp/vrp.go
var files embed.FS

// Problem is a built-in problem.
type Problem struct {
	Name  string
	Types []any               // pointers to an Instance, a Node, a Vehicle and, if it has any, Settings
	Steps func(n int32) int32 // nil if the file has none
}

// All returns the built-in problems by name.
func All() []Problem {
	return []Problem{
		{"cvrp", []any{new(cvrp.Instance), new(cvrp.Node), new(cvrp.Vehicle), new(cvrp.Settings)}, nil},
		{"cvrpl", []any{new(cvrpl.Instance), new(cvrpl.Node), new(cvrpl.Vehicle), new(cvrpl.Settings)}, nil},
		{"mdvrp", []any{new(mdvrp.Instance), new(mdvrp.Node), new(mdvrp.Vehicle), new(mdvrp.Settings)}, mdvrp.Steps},
		{"op", []any{new(op.Instance), new(op.Node), new(op.Vehicle), new(op.Settings)}, op.Steps},
		{"tsp", []any{new(tsp.Instance), new(tsp.Node), new(tsp.Vehicle)}, tsp.Steps},
		{"vrp", []any{new(vrp.Instance), new(vrp.Node), new(vrp.Vehicle), new(vrp.Settings)}, nil},
	}
}

// Find returns a built-in problem by its name, and whether there is one.
func Find(name string) (Problem, bool) {
	all := All()
	i := slices.IndexFunc(all, func(p Problem) bool { return p.Name == name })
	if i < 0 {
		return Problem{}, false
	}
	return all[i], true
}

// Source returns the text of the problem's file.
func (p Problem) Source() []byte {
	text, err := files.ReadFile(p.Name + "/" + p.Name + ".go")
	if err != nil {
		panic("problems: " + err.Error())
	}
	return text
}
