package routes

import (
	"fmt"
	"io"

	"haul/cmd/haul/cli"
	"haul/internal/draw"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
	"haul/internal/vrp/outputs"
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

// KnownOut refuses a file of routes whose name says what cannot be written; "" passes.
func KnownOut(path string) error {
	if _, err := outputs.Of(path); err != nil {
		return cli.Usagef("--out %s: %w", path, err)
	}
	return nil
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
func IsMap(path string) bool {
	o, err := outputs.Of(path)
	return err == nil && path != "" && o.Map
}

// CanWrite says why a file of routes cannot have those of a problem.
func CanWrite(path string, p *vrp.Problem) error {
	o, err := outputs.Of(path)
	if err != nil || path == "" || o.Takes == nil {
		return err
	}
	if err := o.Takes(p); err != nil {
		return fmt.Errorf("--out %s: %w: write .json", path, err)
	}
	return nil
}

// Write writes routes to a file, in the format of its ending. plan is nil where routes have no
// times and serve everybody.
func Write(path string, p *vrp.Problem, s vrp.Solution, cost float64, plan *files.Plan) error {
	o, err := outputs.Of(path)
	if err != nil {
		return err
	}
	return cli.WriteFile(path, func(w io.Writer) error {
		return o.Write(w, outputs.Routes{Problem: p, Solution: s, Cost: cost, Plan: plan})
	})
}
