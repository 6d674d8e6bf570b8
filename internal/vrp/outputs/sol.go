package outputs

import (
	"io"

	"haul/internal/vrp/files"
)

// sol is CVRPLIB's format of solutions. It numbers vehicles, so some fleets have no place in it.
var sol = Output{
	Endings: []string{".sol", ".txt"},
	Takes:   files.NumbersVehicles,
	Write: func(w io.Writer, r Routes) error {
		return files.WriteSolution(w, r.Problem, r.Solution, r.Cost)
	},
	Example: "Route #1: 1 2 3\nCost 14\n",
}
