package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"haul/internal/schema"
	"haul/internal/vrp/files"
)

// schemaNames are those of types whose schema has another name than the type.
var schemaNames = map[reflect.Type]string{
	reflect.TypeFor[solveRequest](): "Solve", reflect.TypeFor[solved](): "Solution", reflect.TypeFor[improved](): "Progress", reflect.TypeFor[jobState](): "Job",
	reflect.TypeFor[jobList](): "Jobs", reflect.TypeFor[evaluateRequest](): "Evaluate", reflect.TypeFor[evaluated](): "Evaluation", reflect.TypeFor[policyInfo](): "Policy",
	reflect.TypeFor[policyList](): "Policies", reflect.TypeFor[Summary](): "Run", reflect.TypeFor[Run](): "RunDetails", reflect.TypeFor[runList](): "Runs", reflect.TypeFor[offered](): "Trainable",
	reflect.TypeFor[trainRequest](): "Train", reflect.TypeFor[startedRun](): "Started", reflect.TypeFor[account](): "Ledger", reflect.TypeFor[known](): "Instance",
	reflect.TypeFor[exportRequest](): "Export", reflect.TypeFor[files.Route](): "PlanRoute", reflect.TypeFor[batchRequest](): "Batch",
}

// describer makes openapi.json.
type describer struct {
	t        *testing.T
	schemas  map[string]any
	names    []string          // of schemas, in the order of their first use
	comments map[string]string // by type and field
	asked    map[string]bool   // schemas of requests: unknown keys are refused
}

// readComments reads what stands beside and above the fields of a folder's types.
func (d *describer) readComments(folder string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), folder+"/"+e.Name(), nil, parser.ParseComments)
		if err != nil {
			d.t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			of, ok := spec.Type.(*ast.StructType)
			if !ok {
				return false
			}
			for _, f := range of.Fields.List {
				text := strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
				for _, name := range f.Names {
					d.comments[spec.Name.Name+"."+name.Name] = sentence(text)
				}
			}
			return false
		})
	}
}

// sentence begins a text with a capital letter and ends it with a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	r := []rune(text)
	r[0] = unicode.ToUpper(r[0])
	return strings.TrimSuffix(string(r), ".") + "."
}

// form lays the words of a tag over a schema.
func (d *describer) form(of fields, words string) fields {
	for word := range strings.FieldsSeq(words) {
		key, value, _ := strings.Cut(word, "=")
		number := func() any { return json.Number(value) }
		list := of.get("type") == "array"
		set := func(key string, v any) {
			of = slices.DeleteFunc(of, func(f field) bool { return f.key == key })
			of = append(of, field{key, v})
		}
		switch key {
		case "string", "integer", "number":
			set("type", key)
		case "int64":
			set("format", key)
		case "null":
			set("type", []any{of.get("type"), "null"})
		case "min":
			set(map[bool]string{true: "minItems", false: "minimum"}[list], number())
		case "max":
			set(map[bool]string{true: "maxItems", false: "maximum"}[list], number())
		case "above":
			set("exclusiveMinimum", number())
		case "letters":
			set("minLength", number())
		case "most":
			set("maxLength", number())
		case "pattern":
			set(key, value)
		case "enum":
			set(key, strings.Split(value, "|"))
		case "of":
			set("items", fields{{"$ref", "#/components/schemas/" + value}})
		case "default":
			if _, err := strconv.ParseFloat(value, 64); err == nil {
				set(key, number())
			} else {
				set(key, value)
			}
		default:
			d.t.Fatalf("the tag %q has the word %q", words, word)
		}
	}
	return of
}

// schema is that of a value: text for nil.
func (d *describer) schema(v any) fields {
	switch v := v.(type) {
	case nil:
		return fields{{"type", "string"}}
	case raw:
		text := parsed(d.t, []byte(v.schema))
		if v.name == "" {
			return text
		}
		d.name(v.name, func() any { return text })
		return fields{{"$ref", "#/components/schemas/" + v.name}}
	}
	return d.of(reflect.TypeOf(v))
}

// name notes a schema at its first use.
func (d *describer) name(name string, of func() any) {
	if _, ok := d.schemas[name]; ok {
		return
	}
	d.schemas[name] = nil
	d.names = append(d.names, name)
	d.schemas[name] = of()
}

// of is the schema of a type.
func (d *describer) of(t reflect.Type) fields {
	switch t {
	case reflect.TypeFor[time.Time]():
		return fields{{"type", "string"}, {"format", "date-time"}}
	case reflect.TypeFor[json.RawMessage]():
		return fields{{"type", "object"}, {"additionalProperties", true}}
	case reflect.TypeFor[[]json.RawMessage](): // rows of a table
		return fields{{"type", "array"}, {"items", fields{{"type", "array"}, {"items", fields{}}}}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.of(t.Elem())
	case reflect.String:
		return fields{{"type", "string"}}
	case reflect.Bool:
		return fields{{"type", "boolean"}}
	case reflect.Float64:
		return fields{{"type", "number"}}
	case reflect.Int, reflect.Int64:
		return fields{{"type", "integer"}}
	case reflect.Int32:
		return fields{{"type", "integer"}, {"format", "int32"}, {"minimum", 0}, {"maximum", math.MaxInt32}}
	case reflect.Uint64:
		return fields{{"type", "integer"}, {"minimum", 0}, {"maximum", uint64(math.MaxUint64)}}
	case reflect.Interface:
		return fields{{"type", "object"}, {"additionalProperties", true}}
	case reflect.Slice:
		return fields{{"type", "array"}, {"items", d.of(t.Elem())}}
	case reflect.Map:
		var of any = d.of(t.Elem())
		if t.Elem() == reflect.TypeFor[json.RawMessage]() {
			of = true
		}
		return fields{{"type", "object"}, {"additionalProperties", of}}
	case reflect.Struct:
		name := schemaNames[t]
		if name == "" {
			name = strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
		}
		d.name(name, func() any { return d.object(t, name) })
		return fields{{"$ref", "#/components/schemas/" + name}}
	}
	d.t.Fatalf("no schema of %v", t)
	return nil
}

// object is the schema of a struct, of which a problem's keys come first.
func (d *describer) object(t reflect.Type, name string) fields {
	asked := d.asked[name]
	keys, required := d.keys(t, asked)
	switch t {
	case reflect.TypeFor[account]():
		return fields{{"type", "object"}, {"properties", fields{{"note", fields{{"type", "string"}}}}}, {"required", []string{"note"}},
			{"additionalProperties", true}, {"description", "What haul profile --json prints, and a note."}}
	case reflect.TypeFor[known]():
		return objectSchema(schema.Top(), "An instance as the server reads and writes it.")
	case reflect.TypeFor[exportRequest](), reflect.TypeFor[solveRequest]():
		keys, required = slices.Concat(objectSchema(schema.Top(), "").at("properties"), keys), nil
	}
	out := fields{{"type", "object"}, {"properties", keys}}
	if len(required) > 0 {
		out = append(out, field{"required", required})
	}
	if asked {
		out = append(out, field{"additionalProperties", false})
	}
	return out
}

// keys are those of a struct, and which of them must be there.
func (d *describer) keys(t reflect.Type, asked bool) (keys fields, required []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, more, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			inner, must := d.keys(f.Type, asked)
			keys, required = append(keys, inner...), append(required, must...)
		case name == "" || name == "-":
		default:
			of := d.form(d.of(f.Type), f.Tag.Get("api"))
			if of.get("items") != nil && d.schemas["Solve"] == nil && strings.Contains(f.Tag.Get("api"), "of=Solve") {
				d.of(reflect.TypeFor[solveRequest]())
			}
			if about := d.comments[t.Name()+"."+f.Name]; about != "" {
				of = append(of, field{"description", about})
			}
			keys = append(keys, field{name, of})
			if !strings.Contains(more, "omitempty") {
				required = append(required, name)
			}
		}
	}
	return keys, required
}

// content is a body in its forms.
func (d *describer) content(all []media) (out fields) {
	for _, m := range all {
		of := fields{{"schema", d.schema(m.of)}}
		if m.example != "" {
			of = append(of, field{"example", json.RawMessage(m.example)})
		}
		out = append(out, field{m.kind, of})
	}
	return out
}

// operation is a route in openapi.json.
func (d *describer) operation(r *route) fields {
	out := fields{{"operationId", r.id}, {"tags", []string{r.tag}}, {"summary", plainText(r.text)}}
	if r.more != "" {
		out = append(out, field{"description", r.more})
	}
	var params []any
	for _, p := range r.params {
		one := fields{{"name", p.name}, {"in", p.in}}
		if p.in == "path" {
			one = append(one, field{"required", true})
		}
		params = append(params, append(one, fields{{"schema", d.form(nil, p.form)}, {"description", p.text}}...))
	}
	if params != nil {
		out = append(out, field{"parameters", params})
	}
	if r.takes != nil {
		for _, m := range r.takes {
			if m.kind == "application/json" && reflect.TypeOf(m.of) != reflect.TypeFor[raw]() {
				d.asked[schemaNames[reflect.TypeOf(m.of)]] = true
			}
		}
		out = append(out, field{"requestBody", fields{{"required", true}, {"content", d.content(r.takes)}}})
	}
	gives := r.gives
	if gives == nil {
		gives = []reply{{status: http.StatusOK, text: "Done.", content: asJSON(r.do.out)}}
	}
	var links fields
	for _, id := range r.links {
		links = append(links, field{strings.ToUpper(id[:1]) + id[1:], fields{{"operationId", id}, {"parameters", fields{{"id", "$response.body#/id"}}}}})
	}
	var responses fields
	for _, g := range gives {
		one := fields{{"description", g.text}}
		if g.content != nil {
			one = append(one, field{"content", d.content(g.content)})
		}
		if g.location != "" {
			one = append(one, field{"headers", fields{{"Location", fields{{"schema", fields{{"type", "string"}}}, {"description", g.location}}}}})
		}
		if links != nil {
			one = append(one, field{"links", links})
		}
		responses = append(responses, field{strconv.Itoa(g.status), one})
	}
	about := "What is wrong, as problem details (RFC 9457)."
	if r.fails != nil {
		about = "What is wrong, as VROOM says it."
	}
	fails := append(slices.Clone(r.fails), media{kind: "application/problem+json", of: problem{}})
	responses = append(responses, field{"default", fields{{"description", about}, {"content", d.content(fails)}}})
	out = append(out, field{"responses", responses})
	if r.open {
		out = append(out, field{"security", []any{}})
	}
	return out
}

// plainText takes Markdown's marks of code out of a summary.
func plainText(text string) string { return strings.ReplaceAll(text, "`", "") }

// TestOpenAPIIsGenerated compares openapi.json with the table of routes, the types that it names
// and the table of parts.
func TestOpenAPIIsGenerated(t *testing.T) {
	d := &describer{t: t, schemas: map[string]any{}, comments: map[string]string{}, asked: map[string]bool{}}
	d.readComments(".")
	d.readComments("../vrp/files")
	var paths fields
	known := map[string]bool{}
	for _, tag := range tags {
		known[tag[0]] = true
	}
	for _, r := range allRoutes() {
		if !known[r.tag] || r.text == "" || r.id == "" || r.do.out == nil && r.gives == nil {
			t.Errorf("the row %s lacks a tag, a text, a name or its answers", r.at)
		}
		method, path, _ := strings.Cut(strings.TrimSuffix(r.at, "{$}"), " ")
		one := field{strings.ToLower(method), d.operation(&r)}
		if i := slices.IndexFunc(paths, func(f field) bool { return f.key == path }); i >= 0 {
			paths[i].value = append(paths[i].value.(fields), one)
		} else {
			paths = append(paths, field{path, fields{one}})
		}
	}
	for o := schema.Vehicle; o <= schema.Shipment; o++ {
		d.name(named[o], func() any { return objectSchema(schema.Of(o), "") })
	}
	var schemas fields
	for _, name := range d.names {
		schemas = append(schemas, field{name, d.schemas[name]})
	}
	var list []any
	for _, tag := range tags {
		list = append(list, fields{{"name", tag[0]}, {"description", tag[1]}})
	}
	text, err := json.Marshal(fields{{"openapi", "3.1.0"}, {"x-generated", "scripts/generate schema"},
		{"info", fields{{"title", "Haul"}, {"version", "1"}, {"license", fields{{"name", "Apache-2.0"}}},
			{"description", "Solve vehicle routing problems, read training runs, and diagnose profilers' traces. Every refusal is an object of problem details; 429 and 503 say in Retry-After when to come back. Where the server listens beyond its own machine, requests carry the token that it was given or printed as Authorization: Bearer."}}},
		{"servers", []any{fields{{"url", "/"}}}}, {"tags", list}, {"security", []any{fields{{"token", []any{}}}, fields{}}}, {"paths", paths},
		{"components", fields{{"securitySchemes", fields{{"token", fields{{"type", "http"}, {"scheme", "bearer"}}}}}, {"schemas", schemas}}}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", " "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	generated(t, "openapi.json", b.String())
}

// Marks around the table of routes in docs/serve.md.
const (
	docsPath   = "../../docs/serve.md"
	tableBegin = "<!-- The table is generated from internal/serve by scripts/generate schema. -->\n"
	tableEnd   = "\n**Instances** are"
)

// TestTableOfRoutesIsGenerated compares the table of docs/serve.md with the table of routes.
func TestTableOfRoutesIsGenerated(t *testing.T) {
	page, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), tableBegin)
	_, tail, found := strings.Cut(rest, tableEnd)
	if !ok || !found {
		t.Fatalf("%s has lost the marks of its table", docsPath)
	}
	var b strings.Builder
	b.WriteString(head + tableBegin + "\n| request | what it does |\n| --- | --- |\n")
	for _, r := range allRoutes() {
		more := r.text
		var asked []string
		for _, p := range r.params {
			if p.in == "query" {
				asked = append(asked, "`"+p.name+"`")
			}
		}
		if asked != nil {
			more += " (" + strings.Join(asked, ", ") + ")"
		}
		if r.more != "" {
			more += ". " + strings.TrimSuffix(r.more, ".")
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.TrimSuffix(r.at, "{$}"), more)
	}
	generated(t, docsPath, b.String()+tableEnd+tail)
}
