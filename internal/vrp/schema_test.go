package vrp

import (
	"reflect"
	"slices"
	"testing"

	"haul/internal/schema"
)

// TestFieldsHaveParts: a part of the table names every field of a problem and of the objects in its
// lists, and every part names fields that exist.
func TestFieldsHaveParts(t *testing.T) {
	for object, of := range map[schema.Object]reflect.Type{
		schema.Problem: reflect.TypeFor[Problem](), schema.Vehicle: reflect.TypeFor[VehicleType](), schema.Break: reflect.TypeFor[Break](), schema.Profile: reflect.TypeFor[Profile](),
		schema.Dimension: reflect.TypeFor[Dimension](), schema.Group: reflect.TypeFor[Group](), schema.Shipment: reflect.TypeFor[Shipment](),
	} {
		parts := schema.Of(object)
		if object == schema.Problem {
			parts = schema.Top()
		}
		var named []string
		for _, p := range parts {
			named = append(named, p.Fields...)
			for _, f := range p.Fields {
				if _, ok := of.FieldByName(f); !ok {
					t.Errorf("part %s names the field %s.%s, which there is not", p.Name, of.Name(), f)
				}
			}
		}
		for i := range of.NumField() {
			if f := of.Field(i).Name; !slices.Contains(named, f) {
				t.Errorf("no part names the field %s.%s", of.Name(), f)
			}
		}
	}
}

// TestTableIsWhole: names and keys are unique, and each part has what every document needs.
func TestTableIsWhole(t *testing.T) {
	names, keys := map[string]bool{}, map[string]bool{}
	for i := range schema.Parts {
		p := &schema.Parts[i]
		of := p.Of
		if of == schema.Place {
			of = schema.Problem
		}
		key := string(rune('0'+of)) + p.Key
		if names[p.Name] || keys[key] || p.Name == "" || p.Key == "" || p.Text == "" || p.Example == "" || p.Methods == 0 {
			t.Errorf("part %q: a name or a key is given twice, or something is missing: %+v", p.Name, p)
		}
		names[p.Name], keys[key] = true, true
		if p.Group == "" && p.Methods != schema.EveryMethod && p.Key != "vehicles" && p.Key != "max_duration" && p.Key != "open" {
			t.Errorf("part %q: some methods refuse it, and it has no name in their refusals", p.Name)
		}
	}
}
