package files

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"haul/internal/schema"
	"haul/internal/schema/schematest"
	"haul/internal/vrp"
)

// writers are the formats that have words of their own, in the order of schema.FormatNames.
var writers = [schema.Formats]struct {
	write func(io.Writer, *vrp.Problem) error
	name  string
	o     Options
}{{WriteProblem, "f.vrp", Options{}}, {WriteSolomon, "f.txt", Options{}}, {WriteLiLim, "f.txt", Options{}},
	{WriteCordeau, "f.txt", Options{}}, {WriteXLSX, "f.xlsx", Options{}}}

func exampleOf(t *testing.T, text string) *vrp.Problem {
	t.Helper()
	p, err := ReadJSON(strings.NewReader(text), "example")
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return p
}

// fieldsOf are the values of a part's fields in every object of its kind.
func fieldsOf(p *schema.Part, v reflect.Value) (out []any) {
	of := p.Of
	if of == schema.Place {
		of = schema.Problem
	}
	if v.Type() == objects[of] {
		for _, name := range p.Fields {
			out = append(out, v.FieldByName(name).Interface())
		}
		return out
	}
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct {
			for k := range f.Len() {
				out = append(out, fieldsOf(p, f.Index(k))...)
			}
		}
	}
	return out
}

// inFormat is what a format does with a part: "written" where its file is read back as the part
// was, "refused: " with the reason, or "left out".
func inFormat(t *testing.T, p *schema.Part, f schema.Format, text string) string {
	t.Helper()
	problem := exampleOf(t, text)
	var b bytes.Buffer
	if err := writers[f].write(&b, problem); err != nil {
		return "refused: " + strings.TrimPrefix(err.Error(), "write problem: ")
	}
	file := b.String()
	back, err := ReadProblem(&b, writers[f].name, writers[f].o)
	if err != nil {
		t.Fatalf("%v in\n%s", err, file)
	}
	if cmp.Equal(fieldsOf(p, reflect.ValueOf(problem).Elem()), fieldsOf(p, reflect.ValueOf(back).Elem()), cmpopts.EquateEmpty()) {
		return "written"
	}
	return "left out"
}

// TestPart: the example of every part is read and written unchanged, in Haul's own JSON and in each
// format with a word for the part. A format without one refuses it by the name of its group, and
// may leave out what only people read.
func TestPart(t *testing.T) {
	var table strings.Builder
	for i := range schema.Parts {
		p := &schema.Parts[i]
		t.Run(p.Name+"/json", func(t *testing.T) { inJSON(t, p) })
		fmt.Fprintf(&table, "%s\n", p.Name)
		for f, name := range schema.FormatNames {
			t.Run(p.Name+"/"+name, func(t *testing.T) {
				word := p.Formats[f]
				if f == int(schema.Table) && word.Key == "" && len(p.Columns) > 0 {
					word.Key = p.Columns[0]
				}
				text := schematest.Example(p)
				if word.Example != "" {
					text = schematest.Lay(word.Example)
				}
				got := inFormat(t, p, schema.Format(f), text)
				fmt.Fprintf(&table, "  %s: %s\n", name, got)
				switch {
				case word.Key != "" && got != "written":
					t.Errorf("%s has the word %q for it, and it is %s", name, word.Key, got)
				case word.Key == "" && got == "written" && p.Effect != schema.Shown && !slices.Contains(byFlag, p.Key):
					t.Errorf("%s has no word for it, and it is written", name)
				case word.Key == "" && got == "left out" && p.Effect != schema.Shown && !slices.Contains(byFlag, p.Key):
					t.Errorf("%s leaves it out in silence", name)
				case word.Key == "" && strings.HasPrefix(got, "refused") && p.Group != "" && !strings.Contains(got, p.Group) && !strings.Contains(got, nounOf(p)) &&
					!slices.ContainsFunc(exampleOf(t, text).Parts(), func(has string) bool { return strings.Contains(got, has) }):
					t.Errorf("%s refuses it without naming %q: %s", name, p.Group, got)
				}
			})
		}
	}
	golden(t, "testdata/formats.txt", table.String())
}

// nounOf is the noun by which a refusal names a part of an object that a format knows.
func nounOf(p *schema.Part) string {
	if p.Refs == schema.ProfileIndex {
		return "profiles"
	}
	return map[schema.Object]string{schema.Vehicle: "vehicle", schema.Break: "vehicle", schema.Group: "group", schema.Shipment: "shipment"}[p.Of]
}

// byFlag are the keys that a format leaves to a flag of its reader.
var byFlag = []string{"distance"}

// inJSON reads and writes a part's example.
func inJSON(t *testing.T, part *schema.Part) {
	p := exampleOf(t, schematest.Example(part))
	if len(part.Fields) == 0 || part.Key == "notes" {
		return
	}
	if all := fieldsOf(part, reflect.ValueOf(p).Elem()); len(all) == 0 || !slices.ContainsFunc(all, func(v any) bool { return !reflect.ValueOf(v).IsZero() }) && part.Default == "" {
		t.Fatalf("the example sets no field of %v: %v", part.Fields, all)
	}
	var b bytes.Buffer
	if err := WriteJSON(&b, p); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, `"`+part.Key+`":`) && part.Key != "durations" {
		t.Errorf("it is not written: %s", text)
	}
	if q := exampleOf(t, b.String()); !cmp.Equal(p, q, cmpopts.EquateEmpty()) {
		t.Error(cmp.Diff(p, q))
	}
	if without := schematest.Without(part); without != "" {
		if err := shaped(without); err != nil {
			t.Errorf("without it there is no problem: %v", err)
		}
	}
}

// shaped reports why a text is no problem, before it is checked.
func shaped(text string) error {
	d, err := ReadDraft([]byte(text), nil)
	if err == nil {
		_, err = d.Problem()
	}
	return err
}
