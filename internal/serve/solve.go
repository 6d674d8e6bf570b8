package serve

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"haul/internal/limits"
	"haul/internal/policy"
	"haul/internal/search"
	"haul/internal/solve"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
)

// exactMost is the largest number of customers that the server solves exactly: more would hold a
// core for minutes.
const exactMost = 18

// bounds are the customers that each method takes here.
func (l Limits) bounds() solve.Bounds {
	return solve.Bounds{solve.Exact: exactMost, solve.Policy: l.PolicySize}
}

// solveRequest is what POST /api/v1/solve takes.
type solveRequest struct {
	instance
	// Where none is given: policy beside policy or decode, search beside time or start, else exact
	// up to 12 customers and search past that. exact takes 18 at most.
	Method string `json:"method,omitempty" api:"enum=exact|search|savings|policy"`
	// Seconds of a search; 1 where none is given. Up to 60 for a solve, up to 3,600 for a job.
	Time float64 `json:"time,omitempty" api:"min=0 max=3600 default=1"`
	// Of a search, or of the routes that a policy draws: equal seeds, equal routes. Where none is
	// given, a policy draws by its training run's.
	Seed *uint64 `json:"seed,omitempty"`
	// Of /api/v1/policies; the shipped one nearest in size where none is given.
	Policy string `json:"policy,omitempty"`
	// As haul eval --decode: greedy, pomo, pomo8, pomo8:T, sample:K, sample8:K, sgbs, sgbs8, eas:I,
	// eas8:I. Where none is given, as haul solve: pomo8 up to 200 customers, pomo up to 400, greedy
	// past that; pomo8:1 and pomo:1 where the policy's starts are viewed, up to twice the customers
	// that it was trained on.
	Decode string `json:"decode,omitempty"`
	// Routes that a search improves; customers whom they leave out are taken in.
	Start [][]int32 `json:"start,omitempty"`

	StartTypes []int32 `json:"start_types,omitempty"` // the vehicle type of each route of start; none: all 0
	Gap        bool    `json:"gap,omitempty"`         // also tell the gap to the optimum, up to 12 customers
}

// solved is what it answers.
type solved struct {
	Cost float64 `json:"cost"`
	// Customers in the order of their visits, numbered as in coords; every route begins and ends at
	// its depot, and open routes go back for nothing. A depot among them is a reload.
	Routes     [][]int32 `json:"routes"`
	Method     string    `json:"method"`
	Policy     string    `json:"policy,omitempty"`
	Decode     string    `json:"decode,omitempty"` // how the policy built the routes
	Seconds    float64   `json:"seconds" api:"min=0"`
	Iterations int       `json:"iterations,omitempty" api:"min=0"`
	Optimum    *float64  `json:"optimum,omitempty"`         // the lowest cost there is, where it is known
	Gap        *float64  `json:"gap,omitempty" api:"min=0"` // a fraction of the optimum

	Types   []int32     `json:"types,omitempty"`                         // the vehicle type of each route, where there are several
	Missing int         `json:"unserved_required,omitempty" api:"min=0"` // required customers that are on no route
	Plan    *files.Plan `json:"plan,omitempty"`                          // where routes have times

	interrupted bool // the context ended first: the best routes so far
}

// improved is how a search stands.
type improved struct {
	Seconds    float64   `json:"seconds" api:"min=0"`
	Iterations int       `json:"iterations" api:"min=0"`
	Cost       float64   `json:"cost"`
	Routes     [][]int32 `json:"routes,omitempty"` // where they are others than before
	Types      []int32   `json:"types,omitempty"`  // with routes: the vehicle type of each, where there are several
}

// solveExample is a body of POST /api/v1/solve.
const solveExample = `{"coords":[[0,0],[10,0],[0,10],[-10,0],[0,-10]],"demands":[0,5,5,5,5],"capacity":10,"method":"search","time":0.1}`

var solveRoutes = []route{
	{at: "POST /api/v1/solve", id: "solve", tag: "routes", text: "Solves an instance by `exact` (up to 18 customers), `search` (for `time` seconds) or `policy`",
		more:  "With Accept: text/event-stream the answer is a stream of server-sent events: `progress` (cost and, where they are better, routes) while a search runs, then `result`, or `problem`. A search takes up to 60 seconds here; a job takes an hour.",
		takes: []media{{kind: "application/json", of: solveRequest{}, example: solveExample}}, do: writes((*Server).solve),
		gives: []reply{{status: 200, text: "The routes.", content: []media{{kind: "application/json", of: solved{}}, {kind: "text/event-stream"}}}}},
	{at: "POST /api/v1/batch", id: "solveBatch", tag: "routes", text: "Solves up to 100 instances, each a body of `/api/v1/solve`, and answers in their order",
		more:  "Each answer has a `solution`, or a `problem` that says why there is none. The searches take 60 seconds together at most; those without a `time` share them, up to a second each.",
		takes: []media{{kind: "application/json", of: batchRequest{}, example: `{"problems":[` + solveExample + `]}`}}, do: answers((*Server).batch)},
}

// batchMost is the most problems of a batch.
const batchMost = 100

// batchRequest is the body of POST /api/v1/batch.
type batchRequest struct {
	Problems []json.RawMessage `json:"problems" api:"of=Solve min=1 max=100"`
}

// batchAnswers are the answers to its problems, in their order.
type batchAnswers struct {
	Answers []batchAnswer `json:"answers"`
}

// batchAnswer is a solution, or why there is none.
type batchAnswer struct {
	Solution *solved  `json:"solution,omitempty"`
	Problem  *problem `json:"problem,omitempty"`
}

// batch solves many small problems in one request, as many at once as there are cores.
func (s *Server) batch(w http.ResponseWriter, r *http.Request) (*batchAnswers, error) {
	var ask batchRequest
	if err := s.decode(w, r, &ask); err != nil {
		return nil, err
	}
	n := len(ask.Problems)
	if n == 0 || n > batchMost {
		return nil, refuse(http.StatusUnprocessableEntity, "problems has %d entries: from 1 to %d are solved in one request; send more as jobs (POST /api/v1/jobs)", n, batchMost)
	}
	share := min(1, s.limits.Search.Seconds()/float64(n)) // of a search whose time is not given
	out, work, asked := &batchAnswers{make([]batchAnswer, n)}, make(chan func(), n), 0.0
	for i, text := range ask.Problems {
		var one solveRequest
		p, m, timed, err := (*vrp.Problem)(nil), (*solve.Method)(nil), false, one.decode(text, &one)
		if err == nil {
			timed = one.Time != 0
			p, m, err = one.check(s.limits)
		}
		if err != nil {
			out.Answers[i].Problem = asProblem(err)
			continue
		}
		if !timed {
			one.Time = share
		}
		if m.Name == solve.Search {
			asked += one.Time
		}
		work <- func() {
			if out.Answers[i].Solution, err = s.solveBy(r, p, m, &one, nil); err != nil {
				out.Answers[i].Problem = asProblem(err)
			}
		}
	}
	close(work)
	if most := s.limits.Search.Seconds(); asked > most*(1+1e-9) {
		return nil, refuse(http.StatusUnprocessableEntity, "the searches of the batch take %g seconds together: up to %g can be asked for; send long ones as jobs (POST /api/v1/jobs)", asked, most)
	}
	var group sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0), clientLong) {
		group.Go(func() {
			for f := range work {
				f()
			}
		})
	}
	group.Wait()
	return out, r.Context().Err()
}

func (s *Server) solve(w http.ResponseWriter, r *http.Request) {
	var ask solveRequest
	if err := s.decodeProblem(w, r, &ask.instance, &ask); err != nil {
		s.fail(w, err)
		return
	}
	p, m, err := ask.check(s.limits)
	if err != nil {
		s.fail(w, err)
		return
	}
	if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		out, err := s.solveBy(r, p, m, &ask, nil)
		if err != nil {
			s.fail(w, err)
			return
		}
		s.answer(w, out)
		return
	}
	// A refusal before the first event is an answer of its own; behind it an event.
	var out *stream
	tell := func(event string, v any) {
		if out == nil {
			out = newStream(w)
		}
		_ = out.tell(event, v) // who has gone ends the request's context
	}
	result, err := s.solveBy(r, p, m, &ask, func(i improved) { tell("progress", i) })
	switch {
	case err == nil:
		tell("result", result)
	case out == nil:
		s.fail(w, err)
	default:
		tell("problem", asProblem(err))
	}
}

// check gives the request its defaults, picks its method and refuses what cannot be done before any
// of it is done.
func (ask *solveRequest) check(l Limits) (*vrp.Problem, *solve.Method, error) {
	p, err := ask.problem(&l)
	if err != nil {
		return nil, nil, err
	}
	if ask.Method != "" {
		if err := solve.Known(ask.Method, solve.Policy); err != nil {
			return nil, nil, asRefused(err)
		}
	}
	m, err := solve.Choose(p, ask.meant(), l.bounds())
	if err != nil {
		return nil, nil, asRefused(err)
	}
	ask.Method = m.Name
	if err := ask.idle(); err != nil {
		return nil, nil, err
	}
	ask.Time = or(ask.Time, 1)
	if !(ask.Time > 0) || ask.Time > l.Search.Seconds() {
		more := ""
		if l.Search < l.JobTime {
			more = "; a job takes more (POST /api/v1/jobs)"
		}
		return nil, nil, refuse(http.StatusUnprocessableEntity, "time is %g: up to %g seconds can be asked for%s", ask.Time, l.Search.Seconds(), more)
	}
	if ask.StartTypes != nil && len(ask.StartTypes) != len(ask.Start) {
		return nil, nil, refuse(http.StatusUnprocessableEntity, "start_types has %d entries for the %d routes of start", len(ask.StartTypes), len(ask.Start))
	}
	stops := 0
	for _, route := range ask.Start {
		stops += 1 + len(route)
	}
	if err := l.Input.Over(limits.Routes, int64(stops)); err != nil {
		return nil, nil, refuse(http.StatusUnprocessableEntity, "start: %s", err)
	}
	if ask.Start != nil {
		if bad := startable(p, ask.Start, ask.StartTypes); bad != nil {
			return nil, nil, refuse(http.StatusUnprocessableEntity, "start is no solution to begin with: %s", bad)
		}
	}
	return p, m, nil
}

// startable says why a search cannot begin with routes. Whom they leave out the search takes in.
func startable(p *vrp.Problem, routes [][]int32, types []int32) error {
	for _, bad := range vrp.Violations(p, vrp.Solution{Routes: routes, Types: types}) {
		if bad.Rule != vrp.VisitedAtAll && bad.Rule != vrp.GroupServed {
			return bad
		}
	}
	return nil
}

// meant is the method that a request names or speaks of: a policy and its decoder, or a budget and
// a start of the search, as haul solve has it.
func (ask *solveRequest) meant() string {
	switch {
	case ask.Method != "":
	case ask.Policy != "" || ask.Decode != "":
		return solve.Policy
	case ask.Time != 0 || ask.Start != nil:
		return solve.Search
	}
	return ask.Method
}

// idle refuses fields that the method does not use, instead of ignoring them silently. A time is no
// such thing: other methods are done within it.
func (ask *solveRequest) idle() error {
	for _, part := range []struct {
		key    string
		given  bool
		method string
		about  string
	}{{"start", ask.Start != nil, solve.Search, "a search"}, {"start_types", ask.StartTypes != nil, solve.Search, "a search"},
		{"policy", ask.Policy != "", solve.Policy, "a policy"}, {"decode", ask.Decode != "", solve.Policy, "a policy"}} {
		if part.given && ask.Method != part.method {
			return refuse(http.StatusUnprocessableEntity, "%s is about %s, and %s solves this: leave one of them out", part.key, part.about, ask.Method)
		}
	}
	return nil
}

// asRefused words what the table of methods refused: a name that it does not have is a mistake of
// the request, a problem that a method does not know is one of what was asked for.
func asRefused(err error) error {
	var no *solve.Refusal
	if errors.As(err, &no) && no.Unknown {
		return refuse(http.StatusBadRequest, "%s", err)
	}
	return refuse(http.StatusUnprocessableEntity, "%s", err)
}

// solveBy passes the method's gate and solves. It ends with the request's context.
func (s *Server) solveBy(r *http.Request, p *vrp.Problem, m *solve.Method, ask *solveRequest, progress func(improved)) (*solved, error) {
	out, err := s.solveWith(r.Context(), s.searchPlace(r), p, m, ask, progress)
	if err == nil && out.interrupted {
		return nil, context.Cause(r.Context())
	}
	return out, err
}

// entry waits for a place.
type entry func(context.Context) (leave func(), err error)

// searchPlace is a place among the searches, of which an address has few.
func (s *Server) searchPlace(r *http.Request) entry {
	return func(ctx context.Context) (func(), error) {
		done, err := s.clients.enter(s.address(r), "searches", clientLong)
		if err != nil {
			return nil, err
		}
		leave, err := s.long.enter(ctx)
		if err != nil {
			done()
			return nil, err
		}
		return func() { leave(); done() }, nil
	}
}

// solveWith solves; a search waits for its place first. Where ctx ends a search, the best routes so
// far are the result.
func (s *Server) solveWith(ctx context.Context, enter entry, p *vrp.Problem, m *solve.Method, ask *solveRequest, progress func(improved)) (*solved, error) {
	var found *solve.Result
	var err error
	out := &solved{}
	if m.Quick {
		found, err = s.quickRoutes(ctx, p, m, ask, out)
	} else {
		found, err = s.searchRoutes(ctx, enter, p, m, ask, progress)
	}
	if err != nil {
		return nil, err
	}
	out.interrupted = found.Interrupted
	out.Method, out.Cost, out.Routes, out.Seconds, out.Iterations, out.Decode = found.Method, found.Cost, found.Solution.Routes, found.Seconds, found.Iterations, found.Decode
	out.Types, out.Missing = found.Solution.Types, found.Missing
	if files.Timed(p) || found.Missing > 0 {
		if out.Plan, err = files.NewPlan(p, found.Solution, found.Reasons); err != nil {
			return nil, err
		}
	}
	s.metrics.solves.observe(m.Name, out.Seconds)
	if found.Optimal {
		out.Optimum, out.Gap = &out.Cost, new(float64)
		return out, nil
	}
	if ask.Gap && !out.interrupted && solve.Best(p, s.limits.bounds()) {
		best, err := s.quickRoutes(ctx, p, solve.Find(solve.Exact), ask, &solved{})
		if err != nil {
			return nil, err
		}
		gap := 0.0
		if best.Cost > 0 {
			gap = max(0, out.Cost/best.Cost-1)
		}
		out.Optimum, out.Gap = &best.Cost, &gap
	}
	return out, nil
}

// quickRoutes solves by a method that is soon done.
func (s *Server) quickRoutes(ctx context.Context, p *vrp.Problem, m *solve.Method, ask *solveRequest, out *solved) (*solve.Result, error) {
	leave, err := s.quick.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var o solve.Options
	if m.Name == solve.Policy {
		if o.Route, err = s.router(p, ask, out); err != nil {
			return nil, err
		}
	}
	found, err := m.Solve(ctx, p, o)
	if errors.Is(err, solve.ErrNoRoutes) {
		return nil, refuse(http.StatusUnprocessableEntity, "%s", err)
	}
	return found, err
}

// router is the policy that a request names, or the nearest in size, as the table of methods takes
// it.
func (s *Server) router(p *vrp.Problem, ask *solveRequest, out *solved) (solve.Router, error) {
	chosen, err := s.policies.pick(ask.Policy, p.N(), p)
	if err != nil {
		return nil, err
	}
	decode := policy.DecodeFor(chosen.settings, p.N())
	if ask.Decode != "" {
		if decode, err = policy.ParseDecode(ask.Decode); err != nil {
			return nil, refuse(http.StatusUnprocessableEntity, "%s", err)
		}
	}
	if routes := decode.Routes(p.N()); routes*p.N() > 1<<20 {
		return nil, refuse(http.StatusUnprocessableEntity, "decode %s builds %d routes of %d customers, more than a request may take", decode, routes, p.N())
	}
	out.Policy = chosen.name
	return func(ctx context.Context, p *vrp.Problem) (vrp.Solution, string, error) {
		// a wide beam would hold a core for hours
		within, cancel := context.WithTimeout(ctx, s.limits.Search)
		defer cancel()
		solution, _, err := s.policies.solve(within, chosen, p, decode, ask.Seed)
		if err == nil && decode.Active {
			err = within.Err() // it would be another search than the one that was asked for
		}
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = refuse(http.StatusUnprocessableEntity, "decode %s of %d customers takes longer than %g s, the time of a request: use one that builds fewer routes, or haul solve",
				decode, p.N(), s.limits.Search.Seconds())
		}
		return solution, decode.String(), err
	}, nil
}

// tellEvery bounds how often routes are sent while a search finds better ones.
const tellEvery = 60 * time.Millisecond

func (s *Server) searchRoutes(ctx context.Context, enter entry, p *vrp.Problem, m *solve.Method, ask *solveRequest, progress func(improved)) (*solve.Result, error) {
	o := search.Options{Time: time.Duration(ask.Time * float64(time.Second)), Workers: 1}
	if ask.Seed != nil {
		o.Seed = *ask.Seed
	}
	if ask.Start != nil {
		o.Start = &vrp.Solution{Routes: ask.Start, Types: ask.StartTypes}
	}
	if progress != nil {
		var told time.Time
		last := math.Inf(1)
		o.Progress = func(n search.Progress) {
			if now := time.Now(); now.Sub(told) >= tellEvery {
				told = now
				i := improved{Seconds: n.Seconds, Iterations: n.Iterations, Cost: n.Cost}
				if n.Cost < last {
					last, i.Routes, i.Types = n.Cost, n.Best.Routes, n.Best.Types
				}
				progress(i)
			}
		}
	}
	return s.searched(ctx, enter, p, m, o)
}

// searched waits for its place and solves. It ends with ctx.
func (s *Server) searched(ctx context.Context, enter entry, p *vrp.Problem, m *solve.Method, o search.Options) (*solve.Result, error) {
	leave, err := enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	found, err := m.Solve(ctx, p, solve.Options{Search: o})
	switch {
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		return nil, refuse(http.StatusUnprocessableEntity, "%s", err)
	}
	return found, nil
}
