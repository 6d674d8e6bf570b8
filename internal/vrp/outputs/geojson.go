package outputs

import (
	"io"

	"haul/internal/vrp/files"
)

// geojson is a line per route, for maps.
var geojson = Output{
	Endings: []string{".geojson"},
	Map:     true,
	Write: func(w io.Writer, r Routes) error {
		if r.Plan == nil {
			return files.WriteSolutionGeoJSON(w, r.Problem, r.Solution)
		}
		return files.WritePlanGeoJSON(w, r.Problem, r.Plan)
	},
	Example: `"LineString"`,
}
