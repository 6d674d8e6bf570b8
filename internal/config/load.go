package config

import (
	"fmt"
	"slices"
	"strings"
)

// The default settings of each recipe.
const (
	DefaultName = "quick"
	DefaultGAT  = "gat_quick"
	DefaultAD   = "ad_dr"
	DefaultPPO  = "darkroom"
)

// Settings is the common interface of *Config, *AD and *PPO.
type Settings interface {
	YAML() ([]byte, error) // all keys that have an effect
	Recipe() string        // one of the Recipe constants
	Title() string         // name of run folders and reports
	Named(string) Settings // a copy with another name
}

// SetError is a fault of --set arguments that does not depend on the settings below them.
type SetError struct{ err error }

func (e *SetError) Error() string { return e.err.Error() }

// Unwrap returns the fault.
func (e *SetError) Unwrap() error { return e.err }

// Load reads a routing run's settings by a shipped name (`tiny_1`) or a path, with `key=value`
// arguments over them. For a path that does not exist it takes the shipped file with its base name,
// so that `configs/tiny_1.yaml` works in any folder. "" means DefaultName.
func Load(nameOrPath string, sets []string) (*Config, error) {
	return load[*Config](gtRecipe, nameOrPath, sets)
}

// LoadAD is Load for the in-context agent. "" means DefaultAD.
func LoadAD(nameOrPath string, sets []string) (*AD, error) {
	return load[*AD](adRecipe, nameOrPath, sets)
}

// LoadPPO is Load for the learner of histories. "" means DefaultPPO.
func LoadPPO(nameOrPath string, sets []string) (*PPO, error) {
	return load[*PPO](ppoRecipe, nameOrPath, sets)
}

// LoadAny reads settings of the named recipe; "" recognizes the recipe by the file's keys. It reads
// the file once, so that nameOrPath may be a pipe.
func LoadAny(recipe, nameOrPath string, sets []string) (Settings, error) {
	among, err := recipesNamed(recipe)
	if err != nil {
		return nil, err
	}
	r := among[0]
	var f *file
	if recipe != "" {
		f, err = r.find(nameOrPath)
	} else if f, err = find(nameOrPath, ""); err == nil {
		r, err = f.recipe()
	}
	if err != nil {
		return nil, err
	}
	return r.parse(f, sets)
}

// ParseAny reads settings of the recipe named from YAML text; name is what errors call it, and what
// the text includes is looked for from its folder.
func ParseAny(recipe, name string, data []byte) (Settings, error) {
	return ParseSet(recipe, name, data, nil)
}

// ParseSet is ParseAny with --set arguments over the text.
func ParseSet(recipe, name string, data []byte, sets []string) (Settings, error) {
	for _, r := range recipes {
		if r.name == recipe {
			return r.parse(&file{name: name, text: data}, sets)
		}
	}
	return nil, fmt.Errorf("no settings are called %s; there are %s", shorten(recipe), strings.Join(Recipes(), ", "))
}

func load[T Settings](r *recipe, nameOrPath string, sets []string) (T, error) {
	f, err := r.find(nameOrPath)
	if err != nil {
		var none T
		return none, err
	}
	return as[T](r.parse(f, sets))
}

// as converts settings to their type.
func as[T Settings](s Settings, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return s.(T), nil
}

// parse parses a file as settings of this recipe.
func (r *recipe) parse(f *file, sets []string) (Settings, error) {
	c := r.empty(baseName(f.name))
	if err := r.read(c, f, sets); err != nil {
		return nil, err
	}
	return c, nil
}

// find reads the file that a user names. A file with keys of another recipe and none of this one's
// is an error: a list of unknown keys would hide the cause.
func (r *recipe) find(nameOrPath string) (*file, error) {
	f, err := find(nameOrPath, r.name)
	if err != nil {
		return nil, err
	}
	if n, _ := r.votes(rootKeys(f.text)); n > 0 {
		return f, nil
	}
	if of, err := f.recipe(); err == nil && of != r {
		if n, _ := of.votes(rootKeys(f.text)); n > 0 {
			return nil, fmt.Errorf("config %s: these are settings of %s, not of %s", f.name, of, r)
		}
	}
	return f, nil
}

// read fills dst, a settings struct, from the defaults, the chain of f, and the --set arguments.
func (r *recipe) read(dst settable, f *file, sets []string) error {
	base, err := r.defaults()
	if err != nil {
		return err
	}
	said, err := r.readChain(f, precedenceFile)
	flags, bad := r.keys.readSets(sets)
	switch {
	case err != nil && bad != nil:
		return ErrorList(slices.Concat(All(err), All(bad)))
	case err != nil:
		return err
	case bad != nil:
		return &SetError{bad}
	}
	all := merged(base, said, flags)
	fill(dst, all)
	gat := r == gatRecipe
	if gat {
		for key, set := range flags {
			if own, ok := gatInstead[key]; ok {
				return &SetError{set.from.errorf("%s takes %s in place of %s: set that", r.name, own, key)}
			}
		}
		dst.(*Config).copyOwnKeys()
	}
	var faults ErrorList
	for _, bad := range dst.conflicts() {
		if gat {
			bad = gatWords(bad)
		}
		faults = append(faults, bad.at(all).errorf("%s", bad.text))
	}
	return faults.err()
}

// readChain returns the layer of f merged over the files that it includes.
func (r *recipe) readChain(f *file, precedence precedence) (layer, error) {
	own, err := r.keys.readLayer(f.name, f.text, precedence)
	if err != nil {
		return nil, err
	}
	named, ok := own[includeKey]
	if !ok {
		return own, nil
	}
	delete(own, includeKey)
	next, err := f.include(named.value.(string), named.from)
	if err != nil {
		return nil, err
	}
	below, err := r.readChain(next, precedenceIncluded)
	if err != nil {
		return nil, err
	}
	return merged(below, own), nil
}
