package serve

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"haul/internal/vrp/files"
)

// described is openapi.json as far as tests look at it.
type described struct {
	OpenAPI string
	Tags    []struct{ Name string }
	Paths   map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Tags        []string
		Summary     string
		Parameters  []struct {
			Name   string
			Schema map[string]any
		}
		Responses map[string]any
	}
	Components struct {
		Schemas map[string]struct {
			Properties           map[string]map[string]any
			Required             []string
			AdditionalProperties any
		}
	}
}

func readAPI(t *testing.T) (doc described) {
	t.Helper()
	x := open(t, nil)
	a := x.do("GET", "/api/v1/openapi.json", "")
	if kind := a.header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("openapi.json is %q", kind)
	}
	a.json(t, &doc)
	return doc
}

// openapi.json lists the routes that there are, and no others; each has a name of its own, and a
// tag.
func TestOpenAPIIsComplete(t *testing.T) {
	doc := readAPI(t)
	tags, names, there := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, tag := range doc.Tags {
		tags[tag.Name] = true
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			there[strings.ToUpper(method)+" "+path] = true
			if op.OperationID == "" || names[op.OperationID] || len(op.Tags) != 1 || !tags[op.Tags[0]] || op.Summary == "" || op.Responses["default"] == nil {
				t.Errorf("%s %s: %+v", method, path, op)
			}
			names[op.OperationID] = true
		}
	}
	source, err := os.ReadFile("serve.go")
	if err != nil {
		t.Fatal(err)
	}
	constants := strings.NewReplacer(`"+healthPath`, healthPath+`"`, `"+readyPath`, readyPath+`"`, "{$}", "", "mux.HandleFunc(", "mux.Handle(")
	routes := 0
	for line := range strings.Lines(constants.Replace(string(source))) {
		_, rest, ok := strings.Cut(line, `mux.Handle("`)
		route, _, _ := strings.Cut(rest, `"`)
		if !ok || !strings.Contains(route, " /") {
			continue
		}
		if routes++; !there[route] {
			t.Errorf("openapi.json does not describe %s", route)
		}
		delete(there, route)
	}
	for route := range there {
		t.Errorf("openapi.json describes %s, which there is not", route)
	}
	if routes < 25 {
		t.Errorf("only %d routes were found: the search is broken", routes)
	}
}

// keysOf are the JSON keys of a struct, those of embedded ones included, and which are always
// there.
func keysOf(v reflect.Type) (all, always []string) {
	for i := range v.NumField() {
		f := v.Field(i)
		name, more, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			a, b := keysOf(f.Type)
			all, always = append(all, a...), append(always, b...)
		case !f.IsExported() || name == "-":
		default:
			all = append(all, name)
			if !strings.Contains(more, "omitempty") {
				always = append(always, name)
			}
		}
	}
	return all, always
}

// Schemas have the keys that the program reads and writes.
func TestOpenAPIAgreesWithTheTypes(t *testing.T) {
	doc := readAPI(t)
	for name, c := range map[string]struct {
		of     any
		answer bool // written: what is always there is required
	}{
		"Evaluate": {evaluateRequest{}, false},
		"Solution": {solved{}, true}, "Progress": {improved{}, true}, "Job": {jobState{}, true}, "Problem": {problem{}, true}, "Evaluation": {evaluated{}, true},
		"Plan": {files.Plan{}, true}, "PlanRoute": {files.Route{}, true}, "Stop": {files.Stop{}, true}, "Unserved": {files.Unserved{}, true},
		"Run": {Summary{}, true}, "Train": {trainRequest{}, false}, "Started": {startedRun{}, true}, "Trainable": {offered{}, true}, "RunDetails": {Run{}, true}, "Table": {table{}, true}, "Policy": {policyInfo{}, true}, "Diagnosis": {diagnosis{}, true},
	} {
		schema, ok := doc.Components.Schemas[name]
		if !ok {
			t.Errorf("there is no schema %s", name)
			continue
		}
		all, always := keysOf(reflect.TypeOf(c.of))
		slices.Sort(all)
		slices.Sort(always)
		keys := sortedKeys(schema.Properties)
		slices.Sort(schema.Required)
		if all = slices.Compact(all); !slices.Equal(keys, all) {
			t.Errorf("%s: the schema has %v, the program %v", name, keys, all)
		}
		if c.answer && !slices.Equal(schema.Required, always) {
			t.Errorf("%s: the schema requires %v, the program writes %v", name, schema.Required, always)
		}
		if !c.answer && schema.AdditionalProperties != false {
			t.Errorf("%s takes any key, and the program does not", name)
		}
	}
}

// The bounds that it states are the server's.
func TestOpenAPIStatesTheLimits(t *testing.T) {
	doc := readAPI(t)
	l := Limits{}.orDefault()
	s := doc.Components.Schemas
	for what, c := range map[string]struct{ got, want any }{
		"seconds of a job":           {s["Solve"].Properties["time"]["maximum"], l.JobTime.Seconds()},
		"instances of an evaluation": {s["Evaluate"].Properties["count"]["maximum"], float64(l.Count)},
		"customers of an evaluation": {s["Evaluate"].Properties["customers"]["maximum"], float64(l.PolicySize)},
		"customers that are drawn":   {doc.Paths["/api/v1/instances/random"]["get"].Parameters[0].Schema["maximum"], float64(l.Customers)},
		"an Idempotency-Key":         {doc.Paths["/api/v1/jobs"]["post"].Parameters[0].Schema["maxLength"], float64(keyMost)},
		"tasks of VROOM":             {s["VroomInput"].Properties["jobs"]["maxItems"], float64(vroomMost)},
	} {
		if c.got != c.want {
			t.Errorf("%s: openapi.json says %v, the server %v", what, c.got, c.want)
		}
	}
	var about struct{ Limits map[string]float64 }
	x := open(t, nil)
	x.do("GET", "/api/v1/about", "").json(t, &about)
	var raw struct {
		Components struct {
			Schemas struct {
				About struct {
					Properties struct{ Limits struct{ Required []string } }
				}
			}
		}
	}
	if err := json.Unmarshal(openAPIText, &raw); err != nil {
		t.Fatal(err)
	}
	want := raw.Components.Schemas.About.Properties.Limits.Required
	slices.Sort(want)
	if got := sortedKeys(about.Limits); !slices.Equal(got, want) {
		t.Errorf("limits are %v, openapi.json says %v", got, want)
	}
	formatNames := []any{}
	for _, f := range sortedKeys(formats) {
		formatNames = append(formatNames, f)
	}
	if got := doc.Paths["/api/v1/export/{format}"]["post"].Parameters[0].Schema["enum"]; !reflect.DeepEqual(got, formatNames) {
		t.Errorf("formats are %v, openapi.json says %v", formatNames, got)
	}
}
