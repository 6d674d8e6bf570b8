// Package outputs has the formats that routes are written in, a file and a line of the table each.
//
// What a reader could break: a format writes routes whole or refuses them by name.
package outputs

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"haul/internal/vrp"
	"haul/internal/vrp/files"
)

// Output is a format.
type Output struct {
	Endings []string // of its files; the first is the one that people are told
	Map     bool     // it has the places of the stops
	// Takes says why it cannot state routes of a problem; nil: it states those of any.
	Takes func(p *vrp.Problem) error
	Write func(w io.Writer, r Routes) error
	// Only is which routes alone it states, in words of a refusal; "": any.
	Only string
	// Example is a part of what it writes of the triangle in the tests.
	Example string
}

// Routes are what is written.
type Routes struct {
	Problem  *vrp.Problem
	Solution vrp.Solution
	Cost     float64
	Plan     *files.Plan // nil: the routes have no times and serve everybody
}

// Table has the formats.
var Table = []*Output{&sol, &json, &csv, &xlsx, &geojson, &tour}

// Endings lists the endings for people.
func Endings() string {
	var all []string
	for _, o := range Table {
		all = append(all, o.Endings[0])
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// Of is the format of a file, by its ending; one without an ending is a .sol.
func Of(path string) (*Output, error) {
	ext := strings.ToLower(filepath.Ext(path))
	for _, o := range Table {
		if slices.Contains(o.Endings, ext) || ext == "" {
			return o, nil
		}
	}
	return nil, fmt.Errorf("cannot write %q, use %s", ext[1:], Endings())
}

// plan is the plan of the routes, evaluated where they came without one.
func (r *Routes) plan() (*files.Plan, error) {
	if r.Plan != nil {
		return r.Plan, nil
	}
	return files.NewPlan(r.Problem, r.Solution, nil)
}
