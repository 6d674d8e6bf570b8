package outputs

import (
	"io"

	"haul/internal/vrp/files"
)

// xlsx is a spreadsheet of stops, routes and unserved customers.
var xlsx = Output{
	Endings: []string{".xlsx"},
	Write: func(w io.Writer, r Routes) error {
		plan, err := r.plan()
		if err != nil {
			return err
		}
		return files.WritePlanXLSX(w, r.Problem, plan)
	},
	Example: "PK",
}
