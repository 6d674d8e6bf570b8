// Package recipe is the list of what can be trained. A recipe is a folder here and a line below.
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

// All are the recipes; the first is the default.
var All = []run.Recipe{
	routing.Recipe{},
	routing.Recipe{GAT: true},
	agent.Recipe{},
	ppo.Recipe{},
}

// Find is the recipe of a name.
func Find(name string) (run.Recipe, error) {
	for _, r := range All {
		if r.About().Name == name {
			return r, nil
		}
	}
	return nil, fmt.Errorf("unknown model %q: known are %s", name, strings.Join(Names(), ", "))
}

// Step compiles the training step of settings of any recipe.
func Step(dev kernel.Device, s config.Settings) (*run.Step, error) {
	r, err := Find(s.Recipe())
	if err != nil {
		return nil, err
	}
	return r.Step(dev, s)
}

// Names lists them.
func Names() []string {
	var names []string
	for _, r := range All {
		names = append(names, r.About().Name)
	}
	return names
}
