package config

import (
	"errors"
	"slices"
	"strings"
)

// Explain returns the entries of one recipe, or of all if recipe is "". key selects one key, the
// keys of a section such as `gpu`, or the keys that end in a word such as `batch_size`; "" and
// "all" select every key. A key that both routing recipes describe equally is returned once.
func Explain(recipe, key string) ([]Entry, error) {
	among, err := recipesNamed(recipe)
	if err != nil {
		return nil, err
	}
	key = strings.TrimSuffix(strings.TrimSpace(key), ".")
	var (
		out   []Entry
		known []string
	)
	for _, r := range among {
		base, err := r.defaults()
		if err != nil {
			return nil, err
		}
		for _, e := range r.explain(key, base) {
			if r != gatRecipe || !slices.ContainsFunc(out, e.same) {
				out = append(out, e)
			}
		}
		known = append(append(known, r.keys.sectionNames()...), r.keys.keys()...)
	}
	if out == nil {
		return nil, errors.New(unknownKey(key, known))
	}
	return out, nil
}

// same reports whether two recipes describe a key equally.
func (e Entry) same(o Entry) bool {
	return e.Key == o.Key && e.Default == o.Default && e.Allowed == o.Allowed && e.Effect == o.Effect && e.About == o.About
}

func (r *recipe) explain(key string, base layer) []Entry {
	var out []Entry
	for _, e := range r.keys.entries {
		if key == "" || key == "all" || key == e.Key || strings.HasPrefix(e.Key, key+".") || strings.HasSuffix(e.Key, "."+key) {
			e.Recipe, e.Default = r.name, "none"
			if set, ok := base[e.Key]; ok {
				e.Default = show(set.value)
			}
			out = append(out, e)
		}
	}
	return out
}

func (s *schema) keys() []string {
	keys := make([]string, len(s.entries))
	for i, e := range s.entries {
		keys[i] = e.Key
	}
	return keys
}

// sectionNames returns the names of the sections, sorted.
func (s *schema) sectionNames() []string {
	var names []string
	for name := range s.sections {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
