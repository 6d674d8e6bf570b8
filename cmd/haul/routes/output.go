package routes

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"haul/cmd/haul/cli"
	"haul/internal/draw"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
)

// Read reads routes to improve, or to write in another format. They must keep every rule of this
// very problem; customers
// whom they leave out are taken in where that is possible.
func Read(path string, p *vrp.Problem, v *files.VROOM) (*vrp.Solution, error) {
	s, _, err := cli.LoadSolution(path, p, v)
	if err != nil {
		return nil, err
	}
	for _, v := range vrp.Violations(p, s) {
		if v.Rule != vrp.VisitedAtAll && v.Rule != vrp.GroupServed {
			return nil, fmt.Errorf("%s is not a solution of %s: %w", cli.Spoken(path), p.Name, v)
		}
	}
	return &s, nil
}

// endings are those of the files that routes are written to.
var endings = []string{"", ".sol", ".txt", ".csv", ".geojson", ".json", ".xlsx"}

// KnownOut refuses a file of routes whose name says what cannot be written.
func KnownOut(path string) error {
	ext := strings.ToLower(filepath.Ext(path))
	for _, known := range endings {
		if ext == known {
			return nil
		}
	}
	return cli.Usagef("--out %s: cannot write %q, use .sol, .json, .csv, .xlsx or .geojson", path, ext[1:])
}

// KnownPicture refuses a picture in a format that cannot be drawn; "" passes.
func KnownPicture(path string) error {
	if path == "" {
		return nil
	}
	_, err := draw.FormatOf(path)
	return cli.AsUsage(err)
}

// IsMap reports whether a file of routes has the places of their stops.
func IsMap(path string) bool { return strings.EqualFold(filepath.Ext(path), ".geojson") }

// CanWrite says why a file of routes cannot have those of a problem.
func CanWrite(path string, p *vrp.Problem) error {
	if ext := strings.ToLower(filepath.Ext(path)); path != "" && (ext == "" || ext == ".sol" || ext == ".txt") {
		if err := files.NumbersVehicles(p); err != nil {
			return fmt.Errorf("--out %s: %w: write .json, .csv, .xlsx or .geojson", path, err)
		}
	}
	return nil
}

// Write writes routes to a file, in the format of its ending. plan is nil where routes have no
// times and serve everybody.
func Write(path string, p *vrp.Problem, s vrp.Solution, cost float64, plan *files.Plan) error {
	ext := strings.ToLower(filepath.Ext(path))
	if plan == nil && (ext == ".json" || ext == ".xlsx") {
		var err error
		if plan, err = files.NewPlan(p, s, nil); err != nil {
			return err
		}
	}
	return cli.WriteFile(path, func(w io.Writer) error {
		switch {
		case ext == ".json":
			return files.WriteSolutionJSON(w, p, s, plan)
		case ext == ".xlsx":
			return files.WritePlanXLSX(w, p, plan)
		case ext == ".csv" && plan != nil:
			return files.WritePlanCSV(w, p, plan)
		case ext == ".csv":
			return files.WriteSolutionCSV(w, p, s)
		case ext == ".geojson" && plan != nil:
			return files.WritePlanGeoJSON(w, p, plan)
		case ext == ".geojson":
			return files.WriteSolutionGeoJSON(w, p, s)
		}
		return files.WriteSolution(w, p, s, cost)
	})
}
