package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// visit calls f for every leaf field of a settings struct, in order, with its key: the yaml tags on
// the path, joined by dots. It skips fields with the tag "-" and nil pointers.
func visit(v reflect.Value, prefix string, f func(key string, field reflect.Value)) {
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag.Get("yaml")
		if tag == "-" {
			continue
		}
		field := v.Field(i)
		if field.Kind() == reflect.Pointer {
			if field.IsNil() {
				continue
			}
			field = field.Elem()
		}
		if field.Kind() == reflect.Struct {
			visit(field, prefix+tag+".", f)
		} else {
			f(prefix+tag, field)
		}
	}
}

// fill sets every field of *dst from the settings. A test of the schema ensures that each field has
// a key of a matching kind and that the defaults contain every key.
func fill(dst any, from layer) {
	visit(reflect.ValueOf(dst).Elem(), "", func(key string, field reflect.Value) {
		switch v := from[key].value.(type) {
		case int64:
			if field.CanUint() {
				field.SetUint(uint64(v))
			} else {
				field.SetInt(v)
			}
		case float64:
			field.SetFloat(v)
		case bool:
			field.SetBool(v)
		case string:
			field.SetString(v)
		case Sizes:
			field.Set(reflect.ValueOf(v))
		case [2]int64:
			field.Set(reflect.ValueOf([2]int{int(v[0]), int(v[1])}))
		default:
			panic("config: no default for " + key)
		}
	})
}

// marshal returns a settings struct as YAML, with all keys in the struct's order. Numbers have a
// point, because YAML 1.1 parsers read `1e-06` as text.
func marshal(src any) ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	sections := map[string]*yaml.Node{"": root}
	visit(reflect.ValueOf(src).Elem(), "", func(key string, field reflect.Value) {
		at := strings.LastIndexByte(key, '.')
		parent := section(sections, key[:max(at, 0)])
		parent.Content = append(parent.Content, scalar(key[at+1:], 0), node(field))
	})
	return yaml.Marshal(root)
}

// section returns the mapping of a dotted path. It creates a missing one.
func section(sections map[string]*yaml.Node, path string) *yaml.Node {
	if n := sections[path]; n != nil {
		return n
	}
	at := strings.LastIndexByte(path, '.')
	parent := section(sections, path[:max(at, 0)])
	n := &yaml.Node{Kind: yaml.MappingNode}
	parent.Content = append(parent.Content, scalar(path[at+1:], 0), n)
	sections[path] = n
	return n
}

func node(field reflect.Value) *yaml.Node {
	switch v := field.Interface().(type) {
	case string:
		return scalar(v, yaml.DoubleQuotedStyle)
	case Sizes:
		if v[0] == v[1] {
			return scalar(strconv.Itoa(v[0]), 0)
		}
		return pairNode(v)
	case [2]int:
		return pairNode(v)
	case float64:
		return scalar(formatFloat(v), 0)
	default:
		return scalar(fmt.Sprint(v), 0)
	}
}

func pairNode(v [2]int) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle,
		Content: []*yaml.Node{scalar(strconv.Itoa(v[0]), 0), scalar(strconv.Itoa(v[1]), 0)}}
}

func scalar(value string, style yaml.Style) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: value, Style: style}
}

// formatFloat returns the shortest text that parses to v, always with a point.
func formatFloat(v float64) string {
	t := strconv.FormatFloat(v, 'g', -1, 64)
	mantissa, exponent, hasExponent := strings.Cut(t, "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if hasExponent {
		return mantissa + "e" + exponent
	}
	return mantissa
}

// show formats a value for `haul config explain`.
func show(v any) string {
	switch v := v.(type) {
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		return strconv.Quote(v)
	case Sizes:
		return v.String()
	case [2]int64:
		return fmt.Sprintf("[%d, %d]", v[0], v[1])
	default:
		return fmt.Sprint(v)
	}
}
