package config

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"haul/configs"
)

// The names of the recipes in --model, in checkpoints and in the registry of recipes. Each recipe
// has its own settings files and keys.
const (
	RecipeGT  = "GT+RL"  // routing with a graph transformer and reinforcement learning: Config
	RecipeAD  = "AD"     // the in-context agent, by algorithm distillation: AD
	RecipeGAT = "GAT+RL" // routing with a graph attention network: Config
	RecipePPO = "PPO"    // the learner whose histories the agent reads: PPO
)

// recipe describes a family of settings files. A file's recipe is recognized by its keys alone:
// mark must be a plain key that no other recipe has.
type recipe struct {
	name, about string
	keys        *schema
	mark        string // the key whose value states the recipe; "" if there is none
	standard    string // the default settings file
	base        string // the shipped file that has every key
	defaults    func() (layer, error)
	empty       func(name string) settable
}

// settable is a pointer to settings that fill can set.
type settable interface {
	Settings
	conflicts() []conflict
}

// newRecipe returns a recipe. It reads base, the shipped file that has every key, once at first
// use.
func newRecipe(name, about string, keys *schema, mark, base, standard string, empty func(name string) settable) *recipe {
	return &recipe{name: name, about: about, keys: keys, mark: mark, standard: standard, base: base, empty: empty,
		defaults: sync.OnceValues(func() (layer, error) { return keys.defaults(base) })}
}

// defaults reads a shipped file that has every key, with its includes.
func (s *schema) defaults(base string) (layer, error) {
	text, err := configs.FS.ReadFile(base + ".yaml")
	if err != nil {
		return nil, err
	}
	own, err := s.readLayer("configs/"+base+".yaml", text, precedenceDefault)
	if err != nil {
		return nil, err
	}
	named, ok := own[includeKey]
	if !ok {
		return own, nil
	}
	delete(own, includeKey)
	below, err := s.defaults(baseName(named.value.(string)))
	if err != nil {
		return nil, err
	}
	return merged(below, own), nil
}

var (
	gtRecipe = newRecipe(RecipeGT, "routing", gtKeys, "", "default", DefaultName,
		func(name string) settable { return &Config{Name: name} })
	adRecipe = newRecipe(RecipeAD, "the in-context agent", adKeys, "model", "ad_default", DefaultAD,
		func(name string) settable { return &AD{Name: name} })
	gatRecipe = newRecipe(RecipeGAT, "routing with graph attention", gatKeys, "network", "gat_default", DefaultGAT,
		func(name string) settable {
			network := RecipeGAT
			return &Config{Name: name, Network: &network, GAT: new(GAT), GATTraining: new(GATTraining)}
		})
	ppoRecipe = newRecipe(RecipePPO, "the source learner", ppoKeys, "env", "ppo_default", DefaultPPO,
		func(name string) settable { return &PPO{Name: name} })

	// recipes lists all recipes. The first one is assumed for a file that no key identifies.
	recipes = []*recipe{gtRecipe, gatRecipe, adRecipe, ppoRecipe}
)

func (r *recipe) String() string { return r.name + " (" + r.about + ")" }

// Recipes returns the names of all recipes.
func Recipes() []string {
	var names []string
	for _, r := range recipes {
		names = append(names, r.name)
	}
	return names
}

// recipesNamed returns the recipe of a name, or all recipes for "".
func recipesNamed(name string) ([]*recipe, error) {
	if name == "" {
		return recipes, nil
	}
	for _, r := range recipes {
		if strings.EqualFold(r.name, name) {
			return []*recipe{r}, nil
		}
	}
	return nil, fmt.Errorf("no settings are called %s; there are %s", shorten(name), strings.Join(Recipes(), ", "))
}

// Names returns the names of the shipped settings of a recipe, or of all recipes for "".
func Names(recipe string) []string {
	among, err := recipesNamed(recipe)
	if err != nil {
		return nil
	}
	byRecipe := shippedNames()
	var names []string
	for _, r := range among {
		names = append(names, byRecipe[r]...)
	}
	return names
}

// shippedNames holds the names of the embedded files by recipe.
var shippedNames = sync.OnceValue(func() map[*recipe][]string {
	names := map[*recipe][]string{}
	for _, name := range shippedFiles() {
		if f, ok := shipped(name); ok {
			r, _ := f.recipe() // cannot fail: shipped files include only shipped files, as a test ensures
			names[r] = append(names[r], name)
		}
	}
	return names
})

// Recipe returns the recipe of a settings file. `model: AD` and `env: ...` decide, else the recipe
// that has most of the file's keys. nameOrPath is an argument of Load.
func Recipe(nameOrPath string) (string, error) {
	f, err := find(nameOrPath, "")
	if err != nil {
		return "", err
	}
	r, err := f.recipe()
	if err != nil {
		return "", err
	}
	return r.name, nil
}

// RecipeOf is Recipe for a text.
func RecipeOf(name string, text []byte) (string, error) {
	r, err := (&file{name: name, text: text}).recipe()
	if err != nil {
		return "", err
	}
	return r.name, nil
}

// recipe recognizes a file's recipe by its keys, or by the file it includes if it has no others. If
// no key decides, it is the first recipe, whose reader reports the fault.
func (f *file) recipe() (*recipe, error) {
	keys := rootKeys(f.text)
	var best *recipe
	most := 0
	for _, r := range recipes {
		n, marked := r.votes(keys)
		if marked {
			return r, nil
		}
		if n > most {
			best, most = r, n
		}
	}
	if best != nil {
		return best, nil
	}
	for _, k := range keys {
		if path := fromNode(k.value); k.key.Value == includeKey && path.shape == "" && path.text != "" {
			next, err := f.include(path.text, origin{file: f.name, line: k.key.Line})
			if err != nil {
				return nil, err
			}
			return next.recipe()
		}
	}
	return recipes[0], nil
}

// votes counts the keys that only this recipe has. marked is true if the mark is among them.
func (r *recipe) votes(keys []keyValue) (n int, marked bool) {
	for _, k := range keys {
		key, section := k.key.Value, follow(k.value).Kind == yaml.MappingNode
		switch {
		case key == includeKey:
			// a section without keys, or a key without a value, does not identify a recipe
		case fromNode(k.value).isNull():
		case section && r.keys.sections[key] != "":
			n++
		case !section && r.keys.entry(key) != nil:
			n++
			marked = marked || key == r.mark
		}
	}
	return n, marked
}

// rootKeys returns the keys at the root of a YAML text, up to the first syntax error.
func rootKeys(text []byte) []keyValue {
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	var keys []keyValue
	for pair := range slices.Chunk(doc.Content[0].Content, 2) {
		keys = append(keys, keyValue{pair[0], pair[1]})
	}
	return keys
}
