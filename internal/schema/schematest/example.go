// Package schematest lays the examples of schema.Parts over their base, for the tests of every
// place that states a part.
package schematest

import (
	"encoding/json"
	"fmt"
	"maps"

	"haul/internal/schema"
)

// Example returns a part's example as a problem in Haul's own JSON.
func Example(p *schema.Part) string { return Lay(p.Example) }

// Without returns a part's example without the part: the base's value of its key if the base has
// one, else no value. It is "" if nothing is left to compare, because the key is required.
func Without(p *schema.Part) string {
	if p.Required {
		return ""
	}
	all := object("{" + p.Example + "}")
	switch p.Of {
	case schema.Problem, schema.Place:
		delete(all, p.Key)
		if p.List == schema.Vehicle {
			delete(all, "capacity") // the base has one
		}
	default:
		take(all, p.Of, p.Key)
	}
	text, _ := json.Marshal(all)
	return Lay(string(text[1 : len(text)-1]))
}

// take removes a key from every object of a kind.
func take(in map[string]any, of schema.Object, key string) {
	for i := range schema.Parts {
		p := &schema.Parts[i]
		list, ok := in[p.Key].([]any)
		if p.Type != schema.Objects || !ok {
			continue
		}
		for _, one := range list {
			if p.List == of {
				delete(one.(map[string]any), key)
			}
			take(one.(map[string]any), of, key)
		}
	}
}

// Lay lays keys over the base; null takes a key away.
func Lay(keys string) string {
	all := object("{" + schema.Base + "}")
	maps.Copy(all, object("{"+keys+"}"))
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	text, _ := json.Marshal(all)
	return string(text)
}

func object(text string) (all map[string]any) {
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		panic(fmt.Sprintf("%v in %s", err, text))
	}
	return all
}

// Routes returns the routes that show what a part changes.
func Routes(p *schema.Part) (out [][]int32) {
	text := p.Routes
	if text == "" {
		text = schema.BaseRoutes
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		panic(err)
	}
	return out
}

// With returns a part's example with another value of the part.
func With(p *schema.Part, value any) string {
	all := object("{" + p.Example + "}")
	switch p.Of {
	case schema.Problem, schema.Place:
		all[p.Key] = value
	default:
		put(all, p.Of, p.Key, value)
	}
	text, _ := json.Marshal(all)
	return Lay(string(text[1 : len(text)-1]))
}

// put sets a key in every object of a kind.
func put(in map[string]any, of schema.Object, key string, value any) {
	for i := range schema.Parts {
		p := &schema.Parts[i]
		list, ok := in[p.Key].([]any)
		if p.Type != schema.Objects || !ok {
			continue
		}
		for _, one := range list {
			if one, ok := one.(map[string]any); ok {
				put(one, of, key, value)
				if p.List == of {
					one[key] = value
				}
			}
		}
	}
}
