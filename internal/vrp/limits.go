package vrp

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"haul/internal/schema"
)

// group is an optional constraint: its name in a refusal, and the fields that state it.
type group struct {
	words  string
	fields []statedBy
}

// statedBy is a field that states a part, and its values beside zero that ask for nothing.
type statedBy struct {
	index   int
	neutral []string
}

// groups are the groups of schema.Parts, in the order of the fields.
var groups = func() (out []group) {
	of := reflect.TypeFor[Problem]()
	for _, p := range schema.Top() {
		if p.Group == "" {
			continue
		}
		f, ok := of.FieldByName(p.Fields[0])
		if !ok {
			panic("schema: no field " + p.Fields[0])
		}
		i := slices.IndexFunc(out, func(g group) bool { return g.words == p.Group })
		if i < 0 {
			i, out = len(out), append(out, group{words: p.Group})
		}
		out[i].fields = append(out[i].fields, statedBy{f.Index[0], p.Neutral})
	}
	slices.SortFunc(out, func(a, b group) int { return a.fields[0].index - b.fields[0].index })
	return out
}()

// states reports whether a field asks for anything.
func (f statedBy) states(p reflect.Value) bool {
	v := p.Field(f.index)
	return !v.IsZero() && (len(f.neutral) == 0 || !slices.Contains(f.neutral, fmt.Sprint(v.Interface())))
}

// Parts names the optional parts that the problem has.
func (p *Problem) Parts() []string {
	var out []string
	v := reflect.ValueOf(p).Elem()
	for _, g := range groups {
		if slices.ContainsFunc(g.fields, func(f statedBy) bool { return f.states(v) }) {
			out = append(out, g.words)
		}
	}
	return out
}

// Limited says in one line which optional parts the problem has, for methods that know a route's
// duration, the number of vehicles and open routes, and nothing else; nil if none.
func (p *Problem) Limited() error {
	if has := p.Parts(); len(has) > 0 {
		return fmt.Errorf("it has %s", strings.Join(has, ", "))
	}
	return nil
}

// Plain says in one line which limit the problem has beside the capacity, for methods that know no
// other; nil if none.
func (p *Problem) Plain() error {
	switch {
	case p.MaxDuration > 0:
		return fmt.Errorf("it limits a route's duration to %g", p.MaxDuration)
	case p.Vehicles > 0:
		return fmt.Errorf("it has a fleet of %d", p.Vehicles)
	case p.Open:
		return fmt.Errorf("its routes are open")
	}
	return p.Limited()
}

// Only says in one line which optional parts the problem has beyond those named, by their words in
// Parts, for formats and methods that know some of them; nil if none.
func (p *Problem) Only(known ...string) error {
	var others []string
	for _, has := range p.Parts() {
		if !slices.Contains(known, has) {
			others = append(others, has)
		}
	}
	if others != nil {
		return fmt.Errorf("it has %s", strings.Join(others, ", "))
	}
	return nil
}
