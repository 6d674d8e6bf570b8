// Package recipe lists the recipes that `haul train` and the other commands offer. A recipe is a
// folder below this one and a line in All.
package recipe

import (
	"fmt"
	"strings"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/recipe/agent"
	"haul/internal/recipe/ppo"
	"haul/internal/recipe/routing"
	"haul/internal/run"
)

// All lists the recipes. The first one is the default.
var All = []run.Recipe{
	routing.Recipe{},
	routing.Recipe{GAT: true},
	agent.Recipe{},
	ppo.Recipe{},
}

// Find returns the recipe with the given name.
func Find(name string) (run.Recipe, error) {
	for _, r := range All {
		if r.About().Name == name {
			return r, nil
		}
	}
	return nil, fmt.Errorf("unknown model %q: known are %s", name, strings.Join(Names(), ", "))
}

// Step compiles the training step of the recipe that the settings belong to.
func Step(dev kernel.Device, s config.Settings) (*run.Step, error) {
	r, err := Find(s.Recipe())
	if err != nil {
		return nil, err
	}
	return r.Step(dev, s)
}

// Names returns the names of all recipes.
func Names() []string {
	var names []string
	for _, r := range All {
		names = append(names, r.About().Name)
	}
	return names
}
