package serve

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
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
		Responses map[string]struct{ Content map[string]any }
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

// TestEveryRouteAnswersAsDescribed asks each route without a body and with names that there are
// not: the status and the content type are among those that its row states, and no answer is a
// fault of the server.
func TestEveryRouteAnswersAsDescribed(t *testing.T) {
	doc, x, names := readAPI(t), open(t, nil), map[string]bool{}
	for _, r := range allRoutes() {
		method, path, _ := strings.Cut(strings.TrimSuffix(r.at, "{$}"), " ")
		op := doc.Paths[path][strings.ToLower(method)]
		if op.OperationID != r.id || names[r.id] || len(op.Tags) != 1 || op.Summary == "" || op.Responses["default"].Content == nil {
			t.Errorf("%s is described as %+v", r.at, op)
		}
		names[r.id] = true
		if strings.HasSuffix(path, "/events") {
			path = strings.Replace(path, "events", "event", 1) // the stream of runs has no end
		}
		a := x.do(method, strings.NewReplacer("{id}", "x", "{name}", "x", "{file}", "x", "{format}", "sol").Replace(path), "")
		given, ok := op.Responses[strconv.Itoa(a.status)]
		if !ok {
			given = op.Responses["default"]
		}
		kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
		if _, ok := given.Content[kind]; (!ok && len(given.Content) > 0) || a.status >= 500 {
			t.Errorf("%s answers %d %s", r.at, a.status, kind)
		}
	}
	if len(names) < 25 {
		t.Errorf("only %d routes were found", len(names))
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
		"problems of a batch":        {s["Batch"].Properties["problems"]["maxItems"], float64(batchMost)},
	} {
		if c.got != c.want {
			t.Errorf("%s: openapi.json says %v, the server %v", what, c.got, c.want)
		}
	}
	var about struct{ Limits map[string]float64 }
	x := open(t, nil)
	x.do("GET", "/api/v1/about", "").json(t, &about)
	want := slices.Clone(doc.Components.Schemas["AboutLimits"].Required)
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
