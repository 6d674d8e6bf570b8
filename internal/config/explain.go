package config

import (
	"errors"
	"slices"
	"strings"
)

// Explain describes settings: one key, every key of a section such as `gpu`, or all of them for
// "" and "all".
func Explain(key string) ([]Entry, error) {
	base, err := gtDefaults()
	if err != nil {
		return nil, err
	}
	return gtKeys.explain(key, base)
}

func (s *schema) explain(key string, base layer) ([]Entry, error) {
	key = strings.TrimSuffix(strings.TrimSpace(key), ".")
	var out []Entry
	for _, e := range s.entries {
		if key == "" || key == "all" || key == e.Key || strings.HasPrefix(e.Key, key+".") {
			e.Default = show(base[e.Key].value)
			out = append(out, e)
		}
	}
	if out != nil {
		return out, nil
	}
	return nil, errors.New(unknownKey(key, append(s.sectionNames(), s.keys()...)))
}

func (s *schema) keys() []string {
	keys := make([]string, len(s.entries))
	for i, e := range s.entries {
		keys[i] = e.Key
	}
	return keys
}

// sectionNames lists the sections, sorted.
func (s *schema) sectionNames() []string {
	var names []string
	for name := range s.sections {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
