package serve

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"time"

	"haul/internal/recipe/routing"
	"haul/internal/search"
	"haul/internal/vrp"
)

// The methods.
const (
	byExact  = "exact"
	bySearch = "search"
	byPolicy = "policy"
)

// Sizes of exact solutions: what is solved at all, what is solved where no method was named, and
// what is solved beside another method for its gap.
const (
	exactMost    = 18
	exactDefault = 12
)

// solveRequest is what POST /api/v1/solve takes.
type solveRequest struct {
	instance
	Method string    `json:"method,omitempty"`
	Time   float64   `json:"time,omitempty"` // seconds of a search; 1 where none is given
	Seed   uint64    `json:"seed,omitempty"`
	Policy string    `json:"policy,omitempty"` // of GET /api/v1/policies; "": the shipped one nearest in size
	Decode string    `json:"decode,omitempty"` // what routing.ParseDecode reads; "": routing.DecodeFor
	Start  [][]int32 `json:"start,omitempty"`  // routes that a search improves
	Gap    bool      `json:"gap,omitempty"`    // ask for the gap to the optimum, where that is within reach
}

// solved is what it answers.
type solved struct {
	Cost       float64   `json:"cost"`
	Routes     [][]int32 `json:"routes"`
	Method     string    `json:"method"`
	Policy     string    `json:"policy,omitempty"`
	Decode     string    `json:"decode,omitempty"` // how the policy built them
	Seconds    float64   `json:"seconds"`
	Iterations int       `json:"iterations,omitempty"`
	Optimum    *float64  `json:"optimum,omitempty"` // the lowest cost there is, where it is known
	Gap        *float64  `json:"gap,omitempty"`     // a fraction of the optimum
}

// improved is how a search stands.
type improved struct {
	Seconds    float64   `json:"seconds"`
	Iterations int       `json:"iterations"`
	Cost       float64   `json:"cost"`
	Routes     [][]int32 `json:"routes,omitempty"` // where they are others than before
}

func (s *Server) solve(w http.ResponseWriter, r *http.Request) {
	var ask solveRequest
	if err := s.decode(w, r, &ask); err != nil {
		s.fail(w, err)
		return
	}
	p, err := ask.check(s.limits)
	if err != nil {
		s.fail(w, err)
		return
	}
	if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		out, err := s.solveBy(r, p, &ask, nil)
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
	result, err := s.solveBy(r, p, &ask, func(i improved) { tell("progress", i) })
	switch {
	case err == nil:
		tell("result", result)
	case out == nil:
		s.fail(w, err)
	default:
		tell("problem", asProblem(err))
	}
}

// check gives the request its defaults and refuses what cannot be done before any of it is done.
func (ask *solveRequest) check(l Limits) (*vrp.Problem, error) {
	p, err := ask.problem(l.Customers)
	if err != nil {
		return nil, err
	}
	if ask.Method == "" {
		ask.Method = bySearch
		if p.N() <= exactDefault && p.Plain() == nil {
			ask.Method = byExact
		}
	}
	switch ask.Method {
	case byExact:
		if p.N() > exactMost {
			return nil, refuse(http.StatusUnprocessableEntity, "the exact method takes up to %d customers here, these are %d: use search", exactMost, p.N())
		}
	case byPolicy:
		if p.N() > l.PolicySize {
			return nil, refuse(http.StatusUnprocessableEntity, "a policy routes up to %d customers here, these are %d: use search", l.PolicySize, p.N())
		}
	case bySearch:
	default:
		return nil, refuse(http.StatusBadRequest, "method is %q: use exact, search or policy", ask.Method)
	}
	if ask.Method != bySearch {
		if bad := p.Plain(); bad != nil {
			return nil, refuse(http.StatusUnprocessableEntity, "%s knows no limit but the capacity, and %s: use search", ask.Method, bad)
		}
	}
	ask.Time = or(ask.Time, 1)
	if !(ask.Time > 0) || ask.Time > l.Search.Seconds() {
		return nil, refuse(http.StatusBadRequest, "time is %g: up to %g seconds can be asked for", ask.Time, l.Search.Seconds())
	}
	if ask.Start != nil {
		if bad := vrp.Validate(p, vrp.Solution{Routes: ask.Start}); bad != nil {
			return nil, refuse(http.StatusUnprocessableEntity, "start is no solution to begin with: %s", bad)
		}
	}
	return p, nil
}

// solveBy passes the method's gate and solves. It ends with the request's context.
func (s *Server) solveBy(r *http.Request, p *vrp.Problem, ask *solveRequest, progress func(improved)) (*solved, error) {
	ctx := r.Context()
	out := &solved{Method: ask.Method}
	var err error
	if ask.Method == bySearch {
		err = s.searchRoutes(r, p, ask, progress, out)
	} else {
		err = s.quickRoutes(ctx, p, ask, out)
	}
	if err != nil {
		return nil, err
	}
	s.metrics.solves.WithLabelValues(ask.Method).Observe(out.Seconds)
	if ask.Method == byExact {
		out.Optimum, out.Gap = &out.Cost, new(float64)
		return out, nil
	}
	if ask.Gap && p.N() <= exactDefault && p.Plain() == nil {
		best := &solved{}
		if err := s.quickRoutes(ctx, p, &solveRequest{Method: byExact}, best); err != nil {
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

func (s *Server) quickRoutes(ctx context.Context, p *vrp.Problem, ask *solveRequest, out *solved) error {
	leave, err := s.quick.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	began := time.Now()
	defer func() { out.Seconds = time.Since(began).Seconds() }()
	if ask.Method == byExact {
		costs, all, err := vrp.OptimalSolutions(ctx, []*vrp.Problem{p}, 1, nil)
		if err != nil {
			return err
		}
		if math.IsInf(costs[0], 0) {
			return refuse(http.StatusUnprocessableEntity, "no routes serve every customer")
		}
		out.Cost, out.Routes = costs[0], all[0].Routes
		return nil
	}
	policy, err := s.policies.pick(ask.Policy, p.N())
	if err != nil {
		return err
	}
	decode := routing.DecodeFor(policy.settings, p.N())
	if ask.Decode != "" {
		if decode, err = routing.ParseDecode(ask.Decode); err != nil {
			return refuse(http.StatusBadRequest, "%s", err)
		}
	}
	if routes := decode.Routes(p.N()); routes*p.N() > 1<<20 {
		return refuse(http.StatusUnprocessableEntity, "decode %s builds %d routes of %d customers, more than a request may take", decode, routes, p.N())
	}
	// a wide beam would hold a core for hours
	within, cancel := context.WithTimeout(ctx, s.limits.Search)
	defer cancel()
	solution, cost, err := s.policies.solve(within, policy, p, decode)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return refuse(http.StatusUnprocessableEntity, "decode %s of %d customers takes longer than %g s, the time of a request: use one that builds fewer routes, or haul solve",
			decode, p.N(), s.limits.Search.Seconds())
	}
	if err != nil {
		return err
	}
	out.Policy, out.Decode, out.Cost, out.Routes = policy.name, decode.String(), cost, solution.Routes
	return nil
}

// tellEvery bounds how often routes are sent while a search finds better ones.
const tellEvery = 60 * time.Millisecond

func (s *Server) searchRoutes(r *http.Request, p *vrp.Problem, ask *solveRequest, progress func(improved), out *solved) error {
	ctx := r.Context()
	done, err := s.clients.enter(r, "searches", clientLong)
	if err != nil {
		return err
	}
	defer done()
	leave, err := s.long.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	o := search.Options{Time: time.Duration(ask.Time * float64(time.Second)), Workers: 1, Seed: ask.Seed}
	if ask.Start != nil {
		o.Start = &vrp.Solution{Routes: ask.Start}
	}
	if progress != nil {
		var told time.Time
		last := math.Inf(1)
		o.Progress = func(n search.Progress) {
			if now := time.Now(); now.Sub(told) >= tellEvery {
				told = now
				i := improved{Seconds: n.Seconds, Iterations: n.Iterations, Cost: n.Cost}
				if n.Cost < last {
					last, i.Routes = n.Cost, n.Best.Routes
				}
				progress(i)
			}
		}
	}
	found, err := search.Solve(ctx, p, o)
	switch {
	case err == nil && found.Interrupted:
		return context.Cause(ctx)
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		return refuse(http.StatusUnprocessableEntity, "%s", err)
	}
	out.Cost, out.Routes, out.Seconds, out.Iterations = found.Cost, found.Solution.Routes, found.Seconds, found.Iterations
	return nil
}
