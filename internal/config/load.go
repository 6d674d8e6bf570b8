package config

import "fmt"

// The shipped files that are taken when none is asked for.
const (
	DefaultName = "quick"
	DefaultAD   = "ad_dr"
	DefaultData = "darkroom"
)

// Settings is what all recipes' settings have in common: *Config, *AD or *Data.
type Settings interface {
	YAML() ([]byte, error)
}

// Load reads a routing run's settings by a shipped name (`tiny_1`) or a path, with `key=value` sets
// over them. A path that does not exist falls back to the shipped file of its base name, so that
// `configs/tiny_1.yaml` works from any folder; "" is DefaultName.
func Load(nameOrPath string, sets []string) (*Config, error) {
	f, err := gtRecipe.find(nameOrPath)
	if err != nil {
		return nil, err
	}
	return parseGT(f, sets)
}

// LoadAD is Load for the in-context agent; "" is DefaultAD.
func LoadAD(nameOrPath string, sets []string) (*AD, error) {
	f, err := adRecipe.find(nameOrPath)
	if err != nil {
		return nil, err
	}
	return parseAD(f, sets)
}

// LoadData is Load for learning histories; "" is DefaultData.
func LoadData(nameOrPath string, sets []string) (*Data, error) {
	f, err := dataRecipe.find(nameOrPath)
	if err != nil {
		return nil, err
	}
	return parseData(f, sets)
}

// LoadAny reads settings of the recipe named, or of the one that the file's keys tell when it is "".
// The file is read once, so that a pipe will do.
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
	switch r {
	case adRecipe:
		return settings(parseAD(f, sets))
	case dataRecipe:
		return settings(parseData(f, sets))
	default:
		return settings(parseGT(f, sets))
	}
}

// settings keeps a nil pointer from becoming a Settings that is not nil.
func settings[T Settings](c T, err error) (Settings, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Parse reads a routing run's settings from YAML text; name is what errors call it, and its base is
// Config.Name.
func Parse(name string, data []byte, sets []string) (*Config, error) {
	return parseGT(&file{name: name, text: data}, sets)
}

// ParseAD is Parse for the in-context agent; what the text includes is looked for from name's folder.
func ParseAD(name string, data []byte, sets []string) (*AD, error) {
	return parseAD(&file{name: name, text: data}, sets)
}

// ParseData is Parse for learning histories; what the text includes is looked for from name's folder.
func ParseData(name string, data []byte, sets []string) (*Data, error) {
	return parseData(&file{name: name, text: data}, sets)
}

func parseGT(f *file, sets []string) (*Config, error) {
	c := &Config{Name: baseName(f.name)}
	if err := gtRecipe.read(c, f, sets); err != nil {
		return nil, err
	}
	return c, nil
}

func parseAD(f *file, sets []string) (*AD, error) {
	c := &AD{Name: baseName(f.name)}
	if err := adRecipe.read(c, f, sets); err != nil {
		return nil, err
	}
	return c, nil
}

func parseData(f *file, sets []string) (*Data, error) {
	c := &Data{Name: baseName(f.name)}
	if err := dataRecipe.read(c, f, sets); err != nil {
		return nil, err
	}
	return c, nil
}

// find reads the file that a user names as settings of this recipe. A file that has none of its keys
// and some of another's is refused here: a list of unknown keys would hide what is wrong.
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

// read fills dst, a settings struct, from the defaults, f with what it includes, and the sets.
func (r *recipe) read(dst interface{ conflicts() []conflict }, f *file, sets []string) error {
	base, err := r.defaults()
	if err != nil {
		return err
	}
	said, err := r.readChain(f, rankFile)
	if err != nil {
		return err
	}
	flags, err := r.keys.readSets(sets)
	if err != nil {
		return err
	}
	all := merged(base, said, flags)
	fill(dst, all)
	if bad := dst.conflicts(); len(bad) > 0 {
		return bad[0].at(all).errorf("%s", bad[0].text)
	}
	return nil
}

// readChain is what f says over what it includes.
func (r *recipe) readChain(f *file, rank rank) (layer, error) {
	own, err := r.keys.readLayer(f.name, f.text, rank)
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
	below, err := r.readChain(next, rankIncluded)
	if err != nil {
		return nil, err
	}
	return merged(below, own), nil
}
