package config

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"haul/configs"
)

// The recipes, by the names that --model, checkpoints and the registry of recipes use: families of
// settings files, each with keys of its own.
const (
	RecipeGT  = "GT+RL"  // routing with a graph transformer and reinforcement learning: Config
	RecipeAD  = "AD"     // the in-context agent, by algorithm distillation: AD
	RecipeGAT = "GAT+RL" // routing with a graph attention network: Config
	RecipePPO = "PPO"    // the learner whose histories the agent reads: PPO
)

// recipe is what a family of files shares. What a settable could break: a file is told by its keys
// alone, so a mark must stay a plain key of one recipe only.
type recipe struct {
	name, about string
	keys        *schema
	mark        string // the key by which a file says that it is of this recipe; "" when it has none
	standard    string // the shipped file that is taken when none is asked for
	base        string // the shipped file that names every key
	defaults    func() (layer, error)
	empty       func(name string) settable
}

// settable is settings that can be filled.
type settable interface {
	Settings
	conflicts() []conflict
}

// newRecipe makes a recipe; base is the shipped file that names every key, read once.
func newRecipe(name, about string, keys *schema, mark, base, standard string, empty func(name string) settable) *recipe {
	return &recipe{name: name, about: about, keys: keys, mark: mark, standard: standard, base: base, empty: empty,
		defaults: sync.OnceValues(func() (layer, error) { return keys.defaults(base) })}
}

// defaults reads a shipped file that names every key, itself or by what it includes.
func (s *schema) defaults(base string) (layer, error) {
	text, err := configs.FS.ReadFile(base + ".yaml")
	if err != nil {
		return nil, err
	}
	own, err := s.readLayer("configs/"+base+".yaml", text, rankDefault)
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

	// recipes are all there are; the first takes a file that no key tells.
	recipes = []*recipe{gtRecipe, gatRecipe, adRecipe, ppoRecipe}
)

func (r *recipe) String() string { return r.name + " (" + r.about + ")" }

// Recipes lists the recipes' names.
func Recipes() []string {
	var names []string
	for _, r := range recipes {
		names = append(names, r.name)
	}
	return names
}

// recipesNamed finds the recipe of a name; "" is all of them.
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

// Names lists the shipped settings files of a recipe, or of all for "", without their ending.
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

// shippedNames sorts the embedded files by recipe.
var shippedNames = sync.OnceValue(func() map[*recipe][]string {
	names := map[*recipe][]string{}
	for _, name := range shippedFiles() {
		if f, ok := shipped(name); ok {
			r, _ := f.recipe() // what a shipped file includes is shipped, as a test makes sure
			names[r] = append(names[r], name)
		}
	}
	return names
})

// Recipe says whose settings a file holds, by its keys: `model: AD` and `env: ...` decide, else the
// recipe that knows most of them. nameOrPath is as Load takes it.
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

// RecipeOf is Recipe for settings that were read already.
func RecipeOf(name string, text []byte) (string, error) {
	r, err := (&file{name: name, text: text}).recipe()
	if err != nil {
		return "", err
	}
	return r.name, nil
}

// recipe tells a file by its keys, or by what it includes when it has no others. A file that
// cannot be told is the first recipe's, whose settable says what is wrong with it.
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

// votes counts the keys that the recipe knows, apart from those that every recipe may have.
func (r *recipe) votes(keys []keyValue) (n int, marked bool) {
	for _, k := range keys {
		key, section := k.key.Value, follow(k.value).Kind == yaml.MappingNode
		switch {
		case key == includeKey:
		// a section that lost its keys, or a key its value: whose it is the others tell
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

// rootKeys lists the keys at the root of a YAML text as far as it can be read.
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
