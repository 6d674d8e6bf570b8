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
		return fmt.Sprintf("not read back: %v in\n%s", err, file)
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
				got, fault := judged(t, p, schema.Format(f))
				fmt.Fprintf(&table, "  %s: %s\n", name, got)
				if fault != "" {
					t.Error(fault)
				}
			})
		}
	}
	golden(t, "testdata/formats.txt", table.String())
}

// judged is what a format does with a part's example, and what is wrong about it.
func judged(t *testing.T, p *schema.Part, f schema.Format) (got, fault string) {
	t.Helper()
	word := p.Formats[f]
	if f == schema.Table && word.Key == "" && len(p.Columns) > 0 {
		word.Key = p.Columns[0].Name
	}
	text := schematest.Example(p)
	if word.Example != "" {
		text = schematest.Lay(word.Example)
	}
	got = inFormat(t, p, f, text)
	silent := word.Key == "" && p.Effect != schema.Shown && !slices.Contains(byFlag, p.Key)
	switch {
	case word.Key != "" && got != "written":
		fault = fmt.Sprintf("has the word %q for it, and it is %s", word.Key, got)
	case silent && got == "written":
		fault = "has no word for it, and it is written"
	case silent && !strings.HasPrefix(got, "refused"):
		fault = "leaves it out in silence: " + got
	case word.Key == "" && strings.HasPrefix(got, "refused") && p.Group != "" && !strings.Contains(got, p.Group) && !strings.Contains(got, nounOf(p)) &&
		!slices.ContainsFunc(exampleOf(t, text).Parts(), func(has string) bool { return strings.Contains(got, has) }):
		fault = fmt.Sprintf("refuses it without naming %q: %s", p.Group, got)
	}
	if fault != "" {
		fault = p.Name + "/" + schema.FormatNames[f] + ": the format " + fault
	}
	return got, fault
}

// TestForgottenRowsAreFound takes every column and every section out of its reader, and every word
// of a format out of the table of parts, one at a time: TestPart's judgement names the part and the
// format.
func TestForgottenRowsAreFound(t *testing.T) {
	tried := 0
	found := func(of func(*schema.Part) bool, f schema.Format, what string) {
		tried++
		for i := range schema.Parts {
			if p := &schema.Parts[i]; of(p) {
				if _, fault := judged(t, p, f); strings.HasPrefix(fault, p.Name+"/"+schema.FormatNames[f]) {
					return
				}
			}
		}
		t.Errorf("%s is taken out, and no part misses it", what)
	}
	has := func(sheet schema.Sheet, name string) func(*schema.Part) bool {
		return func(p *schema.Part) bool {
			return slices.ContainsFunc(p.Columns, func(c schema.Column) bool { return c.Sheet == sheet && c.Name == name })
		}
	}
	for name, read := range placeColumns {
		if slices.Contains(unwritten, name) {
			continue
		}
		placeColumns[name] = func(*reader, *place, string) error { return nil }
		found(has(schema.Customers, name), schema.Table, "column "+name+" of customers")
		placeColumns[name] = read
	}
	for name, read := range vehicleColumns {
		if slices.Contains(unwritten, name) {
			continue
		}
		vehicleColumns[name] = func(*reader, *vehicle, string) error { return nil }
		found(has(schema.Vehicles, name), schema.Table, "column "+name+" of vehicles")
		vehicleColumns[name] = read
	}
	for key, form := range tableSections {
		delete(tableSections, key)
		found(func(p *schema.Part) bool { return p.Formats[schema.VRPLIB].Key != "" }, schema.VRPLIB, key)
		tableSections[key] = form
	}
	for i := range schema.Parts {
		p := &schema.Parts[i]
		for f := range schema.Formats {
			word := p.Formats[f]
			if got, _ := judged(t, p, f); word.Key == "" || got != "written" || p.Effect == schema.Shown || slices.Contains(byFlag, p.Key) {
				continue
			}
			p.Formats[f].Key = ""
			if f != schema.Table {
				found(func(of *schema.Part) bool { return of == p }, f, fmt.Sprintf("the word %q of %s in %s", word.Key, p.Name, schema.FormatNames[f]))
			}
			p.Formats[f] = word
		}
	}
	if tried < 100 {
		t.Errorf("only %d rows were taken out", tried)
	}
}

// unwritten are columns that the writer of tables does not choose for an example: it has others for
// the part. TestColumnsHaveReaders misses their readers.
var unwritten = []string{"windows", "ready", "shipment", "required", "shift", "shift_start", "depot", "cost_per_km", "cost_per_hour"}

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
