package serve

import (
	"context"
	"net/http"
	"time"

	"haul/internal/search"
	"haul/internal/solve"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
)

// POST / as in vroom-express, and POST /optimization as in openrouteservice: VROOM's JSON in and
// out. What a reader could break: a refusal is VROOM's object with code and error, because its
// clients read nothing else.

// vroomMost bounds the tasks of a request: their matrices are places × places.
const vroomMost = 2000

// Codes of VROOM's answers beside 0.
const (
	vroomInternal = 1
	vroomInput    = 2
)

// VROOM's own objects.
var (
	vroomInputSchema = raw{"VroomInput", `{"type":"object","properties":{"jobs":{"type":["array","null"],"items":{"type":"object"},"maxItems":2000},` +
		`"shipments":{"type":["array","null"],"items":{"type":"object"},"maxItems":2000},"vehicles":{"type":"array","items":{"type":"object"},"minItems":1,"maxItems":2000},` +
		`"matrices":{"type":["object","null"]},"options":{"type":["object","null"]}},"required":["vehicles"],` +
		`"description":"docs/formats.md says what is honoured. options.l is the seconds of search, 1 where none is given."}`}
	vroomOutputSchema = raw{"VroomOutput", `{"type":"object","properties":{"code":{"type":"integer","enum":[0]},"summary":{"type":"object","additionalProperties":true},` +
		`"unassigned":{"type":"array","items":{"type":"object","additionalProperties":true}},"routes":{"type":"array","items":{"type":"object","additionalProperties":true}}},` +
		`"required":["code","summary","unassigned","routes"]}`}
	vroomErrorSchema = raw{"VroomError", `{"type":"object","properties":{"code":{"type":"integer","enum":[1,2,3]},"error":{"type":"string"}},"required":["code","error"]}`}
)

var vroomRoutes = []route{
	vroomRoute("POST /{$}", "vroom", "Solves VROOM's JSON and answers like vroom-express, so that its clients need only another address"),
	vroomRoute("POST /optimization", "optimize", "The same for clients of openrouteservice: `Client(base_url=\"http://127.0.0.1:8420\", key=TOKEN)`"),
}

func vroomRoute(at, id, text string) route {
	return route{at: at, id: id, tag: "routes", text: text, more: "`options.l` is seconds (default 1), `options.c` computes a plan's times.",
		takes: []media{{kind: "application/json", of: vroomInputSchema, example: `{"vehicles":[{"id":1,"start":[0,0],"end":[0,0]}],"jobs":[{"id":1,"location":[0.1,0.2]}]}`}},
		gives: []reply{{status: 200, text: "Routes in VROOM's own form.", content: asJSON(vroomOutputSchema)}}, fails: asJSON(vroomErrorSchema), do: writes((*Server).vroom)}
}

func (s *Server) vroom(w http.ResponseWriter, r *http.Request) {
	out, err := s.vroomAnswer(w, r)
	if err != nil {
		p, code := asProblem(err), vroomInput
		if p.Status >= http.StatusInternalServerError {
			code = vroomInternal
		}
		if p.Status == http.StatusUnprocessableEntity {
			p.Status = http.StatusBadRequest // as vroom-express answers an input that it refuses
		}
		out = files.VROOMError(code, p.Detail)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(p.Status)
		_, _ = w.Write(out) // who does not take the answer is gone
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(out)
}

func (s *Server) vroomAnswer(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	text, err := s.bodyJSON(w, r)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	v, err := files.ReadVROOM(text, min(vroomMost, s.limits.Customers), s.limits.Input)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%s", err)
	}
	if err := v.Problem.Within(s.limits.Input); err != nil {
		return nil, refuse(http.StatusBadRequest, "%s", err)
	}
	loading := time.Since(began).Seconds()
	if v.Plan {
		return v.Answer(*v.Start, solve.Reasons(v.Problem, *v.Start), vrp.Violations(v.Problem, *v.Start), loading, 0)
	}
	seconds := or(v.Seconds, 1)
	if !(seconds > 0) || seconds > s.limits.Search.Seconds() {
		return nil, refuse(http.StatusBadRequest, "options.l is %g: up to %g seconds can be asked for", seconds, s.limits.Search.Seconds())
	}
	m, err := solve.Choose(v.Problem, solve.Search, s.limits.bounds())
	if err != nil {
		return nil, asRefused(err)
	}
	found, err := s.searched(r.Context(), s.searchPlace(r), v.Problem, m, search.Options{Time: time.Duration(seconds * float64(time.Second)), Workers: 1, Start: v.Start})
	if err != nil {
		return nil, err
	}
	if found.Interrupted {
		return nil, context.Cause(r.Context())
	}
	return v.Answer(found.Solution, found.Reasons, nil, loading, found.Seconds)
}
