package serve

import (
	"context"
	"net/http"
	"time"

	"haul/internal/policy"
	"haul/internal/rng"
	"haul/internal/search"
	"haul/internal/stats"
	"haul/internal/vrp"
)

// evaluateRequest is what POST /api/v1/evaluate takes.
type evaluateRequest struct {
	Policy    string  `json:"policy,omitempty"`
	Customers int     `json:"customers,omitempty"` // 0: as it was trained
	Count     int     `json:"count,omitempty"`     // instances; 100 where none is given
	Decode    string  `json:"decode,omitempty"`
	Seed      *uint64 `json:"seed,omitempty"` // of the instances; the training run's where none is given
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
	GapTo     string  `json:"gap_to"` // optimum or search
	Seconds   float64 `json:"seconds"`
}

// evaluate puts a policy to the test on instances that it has not learned from.
func (s *Server) evaluate(w http.ResponseWriter, r *http.Request) {
	var ask evaluateRequest
	err := s.decode(w, r, &ask)
	var out *evaluated
	if err == nil {
		out, err = s.evaluation(r, &ask)
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	s.answer(w, out)
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
	c, err := s.policies.pick(ask.Policy, max(1, ask.Customers))
	if err != nil {
		return nil, err
	}
	n := or(ask.Customers, c.settings.Problem.NumCustomers)
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
	out := &evaluated{Policy: c.name, Customers: n, Count: ask.Count, Decode: decode.String(), GapTo: to}
	out.Cost, out.CostSE = stats.MeanSE(lengths)
	out.CPC = vrp.CPC(out.Cost, n)
	out.Gap, out.GapSE = stats.Gap(lengths, costs)
	out.Seconds = time.Since(began).Seconds()
	return out, nil
}

// references are the costs that the policy's are compared with. They are kept nowhere: a server
// writes no files.
func references(ctx context.Context, src vrp.Source, count int) ([]float64, string, error) {
	costs, to := make([]float64, count), policy.ReferenceMethod(src)
	if to == policy.Optimum {
		return costs, to, vrp.OptimalCosts(ctx, src, 0, count, 1, costs, nil)
	}
	batch := vrp.NewBatch(count, src.N, src.Capacity)
	src.Fill(batch, 0)
	problems := make([]*vrp.Problem, count)
	for i := range problems {
		problems[i] = batch.Problem(i)
	}
	costs, err := search.References(ctx, problems, search.ReferenceOptions{Iterations: 200 * src.N, Workers: 1})
	return costs, to, err
}

// evaluateMost is how many stops of routes one request may have made.
const evaluateMost = 1 << 26

func tooMuch(routes, n, count int) bool { return routes*n*count > evaluateMost }
