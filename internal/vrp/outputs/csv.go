package outputs

import (
	"io"

	"haul/internal/vrp/files"
)

// csv is a table with a row per stop.
var csv = Output{
	Endings: []string{".csv"},
	Write: func(w io.Writer, r Routes) error {
		if r.Plan == nil {
			return files.WriteSolutionCSV(w, r.Problem, r.Solution)
		}
		return files.WritePlanCSV(w, r.Problem, r.Plan)
	},
	Example: "route,stop,customer,id,demand",
}
