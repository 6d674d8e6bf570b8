package serve

import (
	"net/http"
	"slices"
)

// The HTTP API is one table: a row per route, beside the handler that it names. The mux is made
// from the rows. openapi.json and the table of docs/serve.md are generated from them by
// TestAPIIsGenerated, which also reads the comments of the types that rows name.

// route is a row.
type route struct {
	at     string   // method and path, as http.ServeMux has them
	id     string   // operationId in openapi.json
	tag    string   // one of tags
	text   string   // what it does
	more   string   // sentences that follow in openapi.json and docs/serve.md
	params []param  // of path, query and header
	takes  []media  // the body, in one of these forms; none: no body is read
	gives  []reply  // nil: 200 with what the action returns
	fails  []media  // beside problem details
	open   bool     // it is answered without a token
	do     action   // how it is answered
	links  []string // operations that take the id of the answer
}

// tags are the areas of the API with a sentence each.
var tags = [][2]string{
	{"routes", "Problems and their routes."}, {"jobs", "Long solves that outlive their request."}, {"policies", "Trained policies."},
	{"runs", "Training runs."}, {"doctor", "Why a run is slow."}, {"server", "The server itself."},
}

// param is a parameter of a route. Its form is that of the tag `api` of fields: words such as
// integer, min=1, max=9, above=0, default=1, enum=a|b.
type param struct{ name, in, form, text string }

// media is a body or an answer of a content type. of is a value of a Go type, a raw schema, or nil
// for text.
type media struct {
	kind    string
	of      any
	example string // JSON
}

// raw is a JSON Schema in its own words; one without a name stands where it is used.
type raw struct{ name, schema string }

// anything is the schema of an object with any keys, aFile that of a file.
var (
	anything = raw{"", `{"type":"object","additionalProperties":true}`}
	aFile    = raw{"", `{"type":"string","format":"binary"}`}
)

// reply is an answer.
type reply struct {
	status   int
	text     string
	content  []media
	location string // what the header Location names; "": there is none
}

// plain is an answer in text.
func plain(status int, text string) reply {
	return reply{status: status, text: text, content: []media{{kind: "text/plain"}}}
}

// eventStream is an answer of server-sent events.
func eventStream(text string) []reply {
	return []reply{{status: http.StatusOK, text: text, content: []media{{kind: "text/event-stream"}}}}
}

func asJSON(of any) []media { return []media{{kind: "application/json", of: of}} }

// action answers a route's requests; out is a value of the type of its answer in JSON.
type action struct {
	handle func(*Server, http.ResponseWriter, *http.Request)
	out    any
}

// answers makes an action of a function: what it returns is the answer in JSON, and its error one
// of problem details.
func answers[T any](f func(*Server, http.ResponseWriter, *http.Request) (T, error)) action {
	return action{func(s *Server, w http.ResponseWriter, r *http.Request) {
		out, err := f(s, w, r)
		if err != nil {
			s.fail(w, err)
			return
		}
		s.answer(w, out)
	}, *new(T)}
}

// writes makes an action of a handler that writes its answers itself.
func writes(f func(*Server, http.ResponseWriter, *http.Request)) action { return action{f, nil} }

// allRoutes is the table.
func allRoutes() []route {
	return slices.Concat(solveRoutes, jobRoutes, policyRoutes, runRoutes, doctorRoutes, instanceRoutes, vroomRoutes, serverRoutes)
}

// routes is the mux of the table, and of what is no part of the API: the page's files, and answers
// to paths and methods that there are not.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range allRoutes() {
		mux.HandleFunc(r.at, func(w http.ResponseWriter, req *http.Request) { r.do.handle(s, w, req) })
	}
	mux.HandleFunc("/api/", s.noSuch)
	mux.HandleFunc("/optimization", s.noSuch)
	mux.HandleFunc("/", s.page)
	return mux
}
