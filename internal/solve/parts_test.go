package solve

import (
	"fmt"
	"strings"
	"testing"

	"haul/internal/schema"
	"haul/internal/schema/schematest"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
)

func problemOf(t *testing.T, text string) *vrp.Problem {
	t.Helper()
	p, err := files.ReadJSON(strings.NewReader(text), "example")
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return p
}

// judged is what the validator says of routes: the rules that they break, their times and their
// cost.
func judged(t *testing.T, p *vrp.Problem, routes [][]int32) (rules, times, cost string) {
	t.Helper()
	s := vrp.Solution{Routes: routes}
	if p.Fleet != nil {
		s.Types = make([]int32, len(routes))
	}
	for _, v := range vrp.Violations(p, s) {
		rules += fmt.Sprintf("%d of %d; ", v.Rule, v.Node)
	}
	e, err := vrp.Evaluate(p, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range e.Routes {
		for _, stop := range r.Stops {
			times += fmt.Sprintf("%g-%g ", stop.Begin, stop.Depart)
		}
	}
	return rules, times, fmt.Sprint(e.Cost)
}

// TestPart: each method takes the examples of the parts that it may honour, and refuses all others
// by the name of their group. A part changes the judgement of routes as its Effect says.
func TestPart(t *testing.T) {
	for i := range schema.Parts {
		part := &schema.Parts[i]
		t.Run(part.Name+"/methods", func(t *testing.T) {
			p := problemOf(t, schematest.Example(part))
			for name, bit := range map[string]schema.Methods{Search: schema.Search, Policy: schema.Policy, Exact: schema.Exact, Savings: schema.Savings} {
				why := Find(name).refuse(p, nil)
				named := part.Group
				if named == "" { // a limit that Plain words with its number
					named = map[string]string{"vehicles": "a fleet of", "max_duration": "limits a route's duration", "open": "its routes are open"}[part.Key]
				}
				switch takes := part.Methods&bit != 0; {
				case !takes && why == "":
					t.Errorf("%s takes it", name)
				case !takes && name != Policy && !strings.Contains(why, named): // a policy says which variant it is not
					t.Errorf("%s refuses it without the words %q: %s", name, named, why)
				case takes && name != Policy && why != "": // a policy has learned some of what policies know
					t.Errorf("%s refuses it: %s", name, why)
				}
			}
		})
		t.Run(part.Name+"/effect", func(t *testing.T) {
			without := schematest.Without(part)
			if _, err := files.ReadJSON(strings.NewReader(without), ""); err != nil { // other keys of the example need the part
				without = "{" + schema.Base + "}"
			}
			routes := schematest.Routes(part)
			rules, times, cost := judged(t, problemOf(t, schematest.Example(part)), routes)
			other, later, dearer := judged(t, problemOf(t, without), routes)
			said := fmt.Sprintf("rules %q and %q, times %q and %q, cost %s and %s", rules, other, times, later, cost, dearer)
			changed := map[schema.Effect]bool{schema.Rule: rules != other, schema.Times: times != later, schema.Cost: cost != dearer}[part.Effect]
			switch part.Effect {
			case schema.Shown, schema.Choose:
				if rules != other || times != later || cost != dearer {
					t.Errorf("it changes what it does not say: %s", said)
				}
			default:
				if !changed {
					t.Errorf("it does not change what it says: %s", said)
				}
			}
		})
	}
}
