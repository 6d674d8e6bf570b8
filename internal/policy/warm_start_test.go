package policy

import (
	"strings"
	"testing"

	"haul/internal/config"
)

// TestGrows: weights of one depot are the beginning of weights of several; all other pairs of rule
// sets have none.
func TestGrows(t *testing.T) {
	settings := func(name, attributes string) *config.Config {
		c, err := config.Load(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Problem.Attributes = attributes
		return c
	}
	plain, one, several := settings("cvrp50", ""), settings("vrp50", "all"), settings("vrp50", "all, mdall")
	axes, sees := Grows(one, several)
	m, err := NewNetwork(several)
	if err != nil {
		t.Fatal(err)
	}
	old, err := NewNetwork(one)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range m.Layout().Params {
		was := old.Layout().Params[i]
		axis, grows := axes[p.Name]
		if grows != (p.Len() != was.Len()) || grows && p.Shape[axis] <= was.Shape[axis] {
			t.Errorf("%s: %v to %v, named: %t", p.Name, was.Shape, p.Shape, grows)
		}
	}
	if !strings.Contains(sees, "several, dx, dy, home") {
		t.Errorf("it says %q", sees)
	}
	for _, c := range [][2]*config.Config{{several, one}, {one, one}, {plain, several}, {plain, one}} {
		if axes, sees := Grows(c[0], c[1]); axes != nil || sees != "" {
			t.Errorf("%s, %q to %q: %v, %q", c[0].Name, c[0].Problem.Attributes, c[1].Problem.Attributes, axes, sees)
		}
	}
}
