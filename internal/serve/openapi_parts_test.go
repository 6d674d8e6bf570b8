package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"haul/internal/schema"
	"haul/internal/schema/schematest"
	"haul/internal/vrp/files"
	"haul/internal/vrp/vrptest"
)

// named are the objects that openapi.json has a schema of.
var named = map[schema.Object]string{schema.Vehicle: "Vehicle", schema.Break: "Break", schema.Profile: "Profile", schema.Dimension: "Dimension", schema.Group: "Group", schema.Shipment: "Shipment"}

// fields is a JSON object whose keys keep their order.
type fields []field

type field struct {
	key   string
	value any
}

func (f fields) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, one := range f {
		if i > 0 {
			b = append(b, ',')
		}
		text, err := json.Marshal(one.value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, '"'), one.key...), '"', ':')
		b = append(b, text...)
	}
	return append(b, '}'), nil
}

// schemaOf is the JSON Schema of a part.
func schemaOf(p *schema.Part) fields {
	most := p.Most
	if most == 0 {
		most = schema.Places
	}
	list := func(of any) fields {
		return fields{{"type", "array"}, {"items", of}, {"maxItems", most}}
	}
	span := fields{{"type", "array"}, {"items", fields{{"type", "number"}}}, {"minItems", 1}, {"maxItems", 2}}
	number := fields{{"type", "number"}}
	if p.Max != 0 {
		number = append(number, field{"minimum", p.Min})
	}
	if p.Max != 0 && p.Max < schema.NoMax {
		number = append(number, field{"maximum", p.Max})
	}
	whole := fields{{"type", "integer"}}
	switch {
	case p.Bits == 64:
		whole = append(whole, fields{{"format", "int64"}, {"minimum", math.MinInt64}, {"maximum", math.MaxInt64}}...)
	case p.Max != 0:
		whole = append(whole, fields{{"format", "int32"}, {"minimum", p.Min}, {"maximum", p.Max}}...)
	default:
		whole = append(whole, fields{{"format", "int32"}, {"minimum", math.MinInt32}, {"maximum", math.MaxInt32}}...)
	}
	var of fields
	switch p.Type {
	case schema.Int:
		of = whole
	case schema.Number:
		of = number
	case schema.Bool:
		of = fields{{"type", "boolean"}}
	case schema.Text:
		of = fields{{"type", "string"}}
	case schema.Choice:
		words := slices.DeleteFunc(slices.Clone(p.Words), func(w string) bool { return w == "" })
		of = fields{{"type", "string"}, {"enum", words}, {"default", words[0]}}
	case schema.Point:
		of = fields{{"type", "array"}, {"items", fields{{"type", "number"}}}, {"minItems", 2}, {"maxItems", 2}}
	case schema.Span:
		of = span
	case schema.Spans:
		of = list(span)
	case schema.Ints:
		of = list(whole)
	case schema.Texts:
		of = list(fields{{"type", "string"}})
	case schema.Matrix:
		of = list(list(number))
	case schema.Objects:
		of = list(fields{{"$ref", "#/components/schemas/" + named[p.List]}})
	}
	if p.Of == schema.Place {
		of = list(of)
	}
	if p.Default != "" && p.Default != "none" {
		of = append(of, field{"default", json.RawMessage(p.Default)})
	}
	return append(of, field{"description", p.Text})
}

// objectSchema is the JSON Schema of an object, whose keys come before more.
func objectSchema(parts []*schema.Part, about string, more ...field) fields {
	keys, required := fields{}, []string{}
	for _, p := range parts {
		keys = append(keys, field{p.Key, schemaOf(p)})
		if p.Required {
			required = append(required, p.Key)
		}
	}
	out := fields{{"type", "object"}, {"properties", append(keys, more...)}, {"additionalProperties", false}}
	if len(required) > 0 {
		out = append(out, field{"required", required})
	}
	if about != "" {
		out = append(out, field{"description", about})
	}
	return out
}

// parsed is a JSON object with the order of its keys.
func parsed(t *testing.T, text []byte) fields {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := parseNext(d)
	if err != nil {
		t.Fatal(err)
	}
	return v.(fields)
}

func parseNext(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		out := fields{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := parseNext(d)
			if err != nil {
				return nil, err
			}
			out = append(out, field{key.(string), v})
		}
		_, err := d.Token()
		return out, err
	case json.Delim('['):
		out := []any{}
		for d.More() {
			v, err := parseNext(d)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		_, err := d.Token()
		return out, err
	}
	return token, nil
}

func (f fields) get(key string) any {
	for _, one := range f {
		if one.key == key {
			return one.value
		}
	}
	return nil
}

func (f fields) at(key string) fields { v, _ := f.get(key).(fields); return v }

// judge says where a value is not what a schema takes, with the keywords that openapi.json has of
// problems; "" where it is.
func (f fields) judge(all fields, v any, path string) string {
	if ref, ok := f.get("$ref").(string); ok {
		return all.at("components").at("schemas").at(ref[strings.LastIndexByte(ref, '/')+1:]).judge(all, v, path)
	}
	limit := func(key string) (float64, bool) {
		n, ok := f.get(key).(json.Number)
		x, _ := n.Float64()
		return x, ok
	}
	bad := func(x float64, least, most string) string {
		if lo, ok := limit(least); ok && x < lo {
			return fmt.Sprintf("%s: %g is below %g", path, x, lo)
		}
		if hi, ok := limit(most); ok && x > hi {
			return fmt.Sprintf("%s: %g is above %g", path, x, hi)
		}
		return ""
	}
	switch kind := f.get("type"); x := v.(type) {
	case map[string]any:
		if kind != "object" {
			return fmt.Sprintf("%s is an object, and %v is taken", path, kind)
		}
		required, _ := f.get("required").([]any)
		for _, key := range required {
			if _, ok := x[key.(string)]; !ok {
				return path + "." + key.(string) + " is missing"
			}
		}
		for _, key := range slices.Sorted(maps.Keys(x)) {
			of := f.at("properties").at(key)
			if of == nil {
				return path + "." + key + " is unknown"
			}
			if why := of.judge(all, x[key], path+"."+key); why != "" {
				return why
			}
		}
	case []any:
		if kind != "array" {
			return fmt.Sprintf("%s is a list, and %v is taken", path, kind)
		}
		for i, one := range x {
			if why := f.at("items").judge(all, one, fmt.Sprintf("%s[%d]", path, i)); why != "" {
				return why
			}
		}
		return bad(float64(len(x)), "minItems", "maxItems")
	case string:
		if words, ok := f.get("enum").([]any); kind != "string" || ok && !slices.Contains(words, any(x)) {
			return fmt.Sprintf("%s: %q is not taken", path, x)
		}
	case bool:
		if kind != "boolean" {
			return fmt.Sprintf("%s: %v is not taken", path, x)
		}
	case float64:
		if kind != "number" && (kind != "integer" || x != math.Trunc(x)) {
			return fmt.Sprintf("%s: %g is not taken", path, x)
		}
		return bad(x, "minimum", "maximum")
	default:
		return fmt.Sprintf("%s: %v is not taken", path, v)
	}
	return ""
}

// TestTheSchemaTakesWhatTheServerTakes: openapi.json's schema of a problem takes 5,000 drawn
// problems and the example of every part. With one value of a part of another type, or past its
// bounds, the schema rejects the problem and the server refuses it; no answer is a fault of the
// server.
func TestTheSchemaTakesWhatTheServerTakes(t *testing.T) {
	all := parsed(t, openAPIText)
	instance := all.at("components").at("schemas").at("Instance")
	takes := func(text []byte) string {
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		return instance.judge(all, v, "")
	}
	r := rand.New(rand.NewPCG(55, 4))
	for range 5000 {
		text, err := files.AppendProblem([]byte(`{"haul":1`), vrptest.Draw(r))
		if err != nil {
			t.Fatal(err)
		}
		if why := takes(append(text, '}')); why != "" {
			t.Fatalf("the schema rejects a problem: %s in %s", why, text)
		}
	}
	x := open(t, nil)
	for i := range schema.Parts {
		p := &schema.Parts[i]
		t.Run(p.Name, func(t *testing.T) {
			good := schematest.Example(p)
			if why := takes([]byte(good)); why != "" {
				t.Errorf("the schema rejects the example: %s", why)
			}
			rejected := 0
			for _, wrong := range []any{"text", []any{"text"}, 1.5, true, map[string]any{"a": 1.0}, -1e18, -1.0, 1e305, 1<<31 - 1.0, 1 << 31, 1 << 32, []any{-1.0}, []any{1 << 31}, []any{1.0, 1e305}, []any{[]any{[]any{1.5}}}} {
				bad := schematest.With(p, wrong)
				why := takes([]byte(bad))
				a := x.do("POST", "/api/v1/export/vrp", bad)
				if why != "" && a.status >= 400 {
					rejected++
				}
				if a.status >= 500 {
					t.Errorf("%v: %d %s", wrong, a.status, a.body)
				}
				if why != "" && a.status < 400 {
					t.Errorf("the schema rejects %v (%s), and the server takes it", wrong, why)
				}
				if why == "" && a.status == 400 {
					t.Errorf("the schema takes %v, and the server refuses its form: %s", wrong, a.body)
				}
			}
			if rejected < 4 {
				t.Errorf("of values of other types %d are rejected", rejected)
			}
		})
	}
}
