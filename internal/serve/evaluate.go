package serve

import (
	"context"
	"errors"
	"net/http"
	"time"

	"haul/internal/policy"
	"haul/internal/rng"
	"haul/internal/search"
	"haul/internal/stats"
	"haul/internal/vrp"
)

// evaluateRequest is the body of POST /api/v1/evaluate.
type evaluateRequest struct {
	Policy    string  `json:"policy,omitempty"`
	Customers int     `json:"customers,omitempty" api:"min=0 max=500"`          // 0: as it was trained
	Count     int     `json:"count,omitempty" api:"min=2 max=1000 default=100"` // instances
	Decode    string  `json:"decode,omitempty"`                                 // greedy where none is given
	Seed      *uint64 `json:"seed,omitempty"`                                   // of the instances; the training run's where none is given
}

// evaluated is what it answers. Costs are on the unit square.
type evaluated struct {
	Policy    string  `json:"policy"`
	Customers int     `json:"customers"`
	Count     int     `json:"count"`
	Decode    string  `json:"decode"`
	Cost      float64 `json:"cost"` // mean
	CostSE    float64 `json:"cost_se"`
	CPC       float64 `json:"cpc"` // per customer
	Gap       float64 `json:"gap"` // paired, a fraction
	GapSE     float64 `json:"gap_se"`
	GapTo     string  `json:"gap_to" api:"enum=optimum|search"`
	GapCount  int     `json:"gap_count"` // instances that the gap is over: those whose reference was found in time
	Seconds   float64 `json:"seconds"`
}

var policyRoutes = []route{
	{at: "POST /api/v1/evaluate", id: "evaluate", tag: "policies", text: "Tests a policy on instances that it was not trained on",
		more:  "The answer has cost, gap and standard errors. If the time of the request ends before the search has solved all instances, the gap is over the first `gap_count`.",
		takes: asJSON(evaluateRequest{}), do: answers((*Server).evaluate)},
	{at: "GET /api/v1/policies", id: "listPolicies", tag: "policies", text: "Lists policies: the shipped ones, and the best of every routing run", do: answers((*Server).listPolicies)},
}

// evaluate tests a policy on instances that it has not learned from.
func (s *Server) evaluate(w http.ResponseWriter, r *http.Request) (*evaluated, error) {
	var ask evaluateRequest
	if err := s.decode(w, r, &ask); err != nil {
		return nil, err
	}
	return s.evaluation(r, &ask)
}

func (s *Server) evaluation(r *http.Request, ask *evaluateRequest) (*evaluated, error) {
	decode, err := policy.ParseDecode(or(ask.Decode, "greedy"))
	if err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "%s", err)
	}
	ask.Count = or(ask.Count, 100)
	if ask.Count < 2 || ask.Count > s.limits.Count {
		return nil, refuse(http.StatusUnprocessableEntity, "count is %d: from 2 to %d instances are evaluated here; haul eval takes more", ask.Count, s.limits.Count)
	}
	if ask.Customers < 0 || ask.Customers > s.limits.PolicySize {
		return nil, refuse(http.StatusUnprocessableEntity, "customers is %d: from 1 to %d are evaluated here", ask.Customers, s.limits.PolicySize)
	}
	c, err := s.policies.pick(ask.Policy, max(1, ask.Customers), nil)
	if err != nil {
		return nil, err
	}
	n := or(ask.Customers, c.settings.Problem.NumCustomers())
	if n > s.limits.PolicySize || tooMuch(decode.Routes(n), n, ask.Count) {
		return nil, refuse(http.StatusUnprocessableEntity, "%d instances of %d customers by %s are more than a request may take; haul eval takes more", ask.Count, n, decode)
	}
	leaveClient, err := s.clients.enter(s.address(r), "evaluations", clientLong)
	if err != nil {
		return nil, err
	}
	defer leaveClient()
	ctx, cancel := context.WithTimeout(r.Context(), s.limits.Search)
	defer cancel()
	leave, err := s.long.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	began := time.Now()
	src := policy.SourceOf(c.settings, rng.TestInstances)
	src.N = n
	if ask.Seed != nil {
		src.Seed = *ask.Seed
	}
	if err := src.Check(); err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "%s", err)
	}
	var lengths []float64
	err = s.policies.with(ctx, func(b *bench) error {
		trained, err := b.policy(c)
		if err != nil {
			return err
		}
		defer trained.Close()
		e, err := trained.Evaluate(ctx, policy.EvalOptions{Source: src, Count: ask.Count, Decode: decode, Batch: 64, Validate: true})
		if err == nil {
			lengths = e.Lengths
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	costs, to, err := references(ctx, src, ask.Count)
	if err != nil {
		return nil, err
	}
	out := &evaluated{Policy: c.name, Customers: n, Count: ask.Count, Decode: decode.String(), GapTo: to, GapCount: len(costs)}
	out.Cost, out.CostSE = stats.MeanSE(lengths)
	out.CPC = vrp.CPC(out.Cost, n)
	out.Gap, out.GapSE = stats.Gap(lengths[:len(costs)], costs)
	out.Seconds = time.Since(began).Seconds()
	return out, nil
}

// references are the costs that the policy's are compared with: of all instances, or of the first
// ones where the time of the request is up before the search has seen them all. Fewer than two give
// no standard error, and are an error. They are kept nowhere: a server writes no files.
func references(ctx context.Context, src vrp.Source, count int) ([]float64, string, error) {
	to := policy.ReferenceMethod(src)
	if to == policy.Optimum {
		costs := make([]float64, count)
		return costs, to, vrp.OptimalCosts(ctx, src, 0, count, 1, costs, nil)
	}
	batch := vrp.NewBatch(count, src.N, src.Capacity)
	src.Fill(batch, 0)
	costs, err := inTime(count, func(i int) (float64, error) {
		one, err := search.References(ctx, []*vrp.Problem{batch.Problem(i)}, search.ReferenceOptions{Iterations: 200 * src.N, Workers: 1})
		if err != nil {
			return 0, err
		}
		return one[0], nil
	})
	return costs, to, err
}

// inTime gathers one cost after the other. Where the time is up it returns those that it has, if
// they are two at least.
func inTime(count int, one func(i int) (float64, error)) ([]float64, error) {
	costs := make([]float64, 0, count)
	for i := range count {
		cost, err := one(i)
		if errors.Is(err, context.DeadlineExceeded) && i >= 2 {
			break
		}
		if err != nil {
			return nil, err
		}
		costs = append(costs, cost)
	}
	return costs, nil
}

// evaluateMost is how much work the routes of one request may be: about half a minute of one core.
const evaluateMost = 1 << 30

// tooMuch weighs each stop of each route by what its decision reads: the other places, and the
// state of the network, about as wide as evaluateWidth.
func tooMuch(routes, n, count int) bool { return routes*n*count*(n+evaluateWidth) > evaluateMost }

const evaluateWidth = 128
