package vrp

import (
	"fmt"
	"slices"
	"strings"
)

// part is an optional constraint: its name in a refusal, and whether a problem has it.
type part struct {
	words string
	has   func(p *Problem) bool
}

// parts is the list of them, in the order of the fields.
var parts = []part{
	{"several depots", func(p *Problem) bool { return p.Depots > 1 }},
	{"a speed", func(p *Problem) bool { return p.Speed != 0 && p.Speed != 1 }},
	{"a fleet of its own", func(p *Problem) bool { return p.Fleet != nil }},
	{"matrices of distance and duration", func(p *Problem) bool { return p.Profiles != nil }},
	{"pickups", func(p *Problem) bool { return p.Pickup != nil }},
	{"several dimensions of load", func(p *Problem) bool { return p.Dimensions != nil }},
	{"time windows", func(p *Problem) bool { return p.Windows != nil }},
	{"setup times", func(p *Problem) bool { return p.Setup != nil }},
	{"release times", func(p *Problem) bool { return p.Release != nil }},
	{"optional customers", func(p *Problem) bool { return p.Optional != nil || p.Prize != nil }},
	{"groups", func(p *Problem) bool { return p.Groups != nil }},
	{"shipments", func(p *Problem) bool { return p.Shipments != nil || p.LIFO }},
	{"skills", func(p *Problem) bool { return p.Needs != nil }},
	{"priorities", func(p *Problem) bool { return p.Priority != nil }},
	{"backhauls last", func(p *Problem) bool { return p.Backhauls != Mixed }},
	{"soft windows", func(p *Problem) bool { return p.Late != nil }},
	{"another objective than the cost", func(p *Problem) bool { return p.Objective != MinCost }},
}

// Parts names the optional parts that the problem has.
func (p *Problem) Parts() []string {
	var out []string
	for _, part := range parts {
		if part.has(p) {
			out = append(out, part.words)
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
