package model

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"haul/internal/vrp"
)

// How a field of a problem reaches the search.
const (
	compiled = "compiled"              // this package selects it
	types    = "by Problem.Types"      // as a field of the vehicle types
	distance = "by Problem.DistanceOf" // as a distance or duration
	text     = "text for people"       // no constraint
)

// fields names every field of a problem. A new field fails TestEveryFieldIsCompiled until it is
// here and, if it is a constraint, until it is compiled.
var fields = map[reflect.Type]map[string]string{
	reflect.TypeFor[vrp.Problem](): {
		"Name": text, "Comment": text, "IDs": text, "Names": text, "Fractions": text, "Clock": text, "SkillWords": text, "Notes": text,
		"Capacity": types, "MaxDuration": types, "Vehicles": types, "Open": types, "Fleet": types,
		"X": compiled, "Y": compiled, "Metric": compiled, "Weights": distance, "Speed": compiled, "Profiles": compiled,
		"Demand": compiled, "Service": compiled, "Depots": "by Problem.DepotCount", "Pickup": compiled, "Dimensions": compiled,
		"Windows": compiled, "Setup": compiled, "Release": compiled, "Optional": compiled, "Prize": compiled, "Groups": compiled,
		"Shipments": compiled, "LIFO": compiled, "Needs": compiled, "Priority": compiled, "Backhauls": compiled, "Late": compiled,
		"Objective": compiled,
	},
	reflect.TypeFor[vrp.VehicleType](): {
		"Name": text, "Numbers": text,
		"Count": compiled, "Capacity": compiled, "Start": compiled, "End": compiled, "Shift": compiled, "LatestStart": compiled,
		"MaxDuration": compiled, "MaxDistance": compiled, "MaxStops": compiled, "FixedCost": compiled, "DistanceCost": compiled,
		"DurationCost": compiled, "Profile": compiled, "Skills": compiled, "Allowed": compiled, "Reloads": compiled,
		"MaxReloads": compiled, "Breaks": compiled, "InitialLoad": compiled,
	},
	reflect.TypeFor[vrp.Break]():     {"Windows": compiled, "Duration": compiled, "MaxLoad": compiled},
	reflect.TypeFor[vrp.Profile]():   {"Name": text, "Distance": distance, "Duration": compiled},
	reflect.TypeFor[vrp.Dimension](): {"Name": text, "Delivery": compiled, "Pickup": compiled},
	reflect.TypeFor[vrp.Group]():     {"Name": text, "Members": compiled, "Required": compiled},
	reflect.TypeFor[vrp.Shipment]():  {"Pickup": compiled, "Delivery": compiled, "Amount": compiled},
}

// Every field of a problem is named here, and those that are compiled are read by this package.
func TestEveryFieldIsCompiled(t *testing.T) {
	selected := map[string]bool{}
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, data, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				selected[s.Sel.Name] = true
			}
			return true
		})
	}
	for typ, named := range fields {
		left := map[string]bool{}
		for name := range named {
			left[name] = true
		}
		for i := range typ.NumField() {
			name := typ.Field(i).Name
			how, ok := named[name]
			switch {
			case !ok:
				t.Errorf("%v.%s: nobody says how it reaches the search", typ, name)
			case how == compiled && !selected[name]:
				t.Errorf("%v.%s: no file of this package reads it", typ, name)
			}
			delete(left, name)
		}
		for name := range left {
			t.Errorf("%v has no field %s", typ, name)
		}
	}
}
