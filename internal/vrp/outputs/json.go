package outputs

import (
	"io"

	"haul/internal/vrp/files"
)

// json is Haul's own: the routes, the plan and the problem.
var json = Output{
	Endings: []string{".json"},
	Write: func(w io.Writer, r Routes) error {
		plan, err := r.plan()
		if err != nil {
			return err
		}
		return files.WriteSolutionJSON(w, r.Problem, r.Solution, plan)
	},
	Example: `"routes":[[1,2,3]]`,
}
