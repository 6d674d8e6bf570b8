package solve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"haul/internal/search"
	"haul/internal/vrp"
)

// Router routes a problem by a trained policy and says how ("pomo8"). Whoever holds the device and
// the weights gives it. Routes without an error after ctx has ended are the best so far.
type Router func(ctx context.Context, p *vrp.Problem) (s vrp.Solution, how string, err error)

// Options are what a method may need. A method that has no use for one of them leaves it alone:
// who reads a user's words refuses those that contradict each other.
type Options struct {
	Search search.Options // budget, cores, seed, start, target and listener of the search
	Route  Router         // Policy and Both
}

// Result is what a method made of a problem. The validator has judged it.
type Result struct {
	Solution    vrp.Solution
	Cost        float64
	Method      string
	Decode      string   // how a policy made the routes
	Start       *float64 // what the search began with
	Iterations  int
	Seconds     float64
	Interrupted bool             // the context ended before the budget: these are the best routes so far
	Optimal     bool             // there is no lower cost
	Reasons     map[int32]string // of customers on no route
	Missing     int              // how many of them are required
	Note        string           // what else a user should know of how they were made
}

// job is one problem on its way through a method.
type job struct {
	ctx context.Context
	p   *vrp.Problem
	o   Options
	out *Result
	// the method may leave out required customers; they are listed
	partial bool
	until   time.Time // the end of the search's time; zero: it has a budget of iterations
}

// ErrNoRoutes says that not every customer can be served.
var ErrNoRoutes = errors.New("no routes serve every customer")

func runExact(j *job) error {
	if vrp.ExactTakes(j.p) != nil {
		s, _, err := vrp.OptimalParts(j.ctx, j.p)
		if errors.Is(err, vrp.ErrNoRoutes) {
			return ErrNoRoutes
		}
		j.out.Solution, j.out.Optimal = s, err == nil
		return err
	}
	costs, all, err := vrp.OptimalSolutions(j.ctx, []*vrp.Problem{j.p}, 1, nil)
	if err != nil {
		return err
	}
	if math.IsInf(costs[0], 0) {
		return ErrNoRoutes
	}
	j.out.Solution, j.out.Optimal = all[0], true
	return nil
}

func runSavings(j *job) (err error) {
	j.out.Solution, err = search.Savings(j.ctx, j.p)
	return err
}

func runSearch(j *job) error {
	begun, o := time.Now(), j.o.Search
	if o.Time > 0 {
		j.until = begun.Add(o.Time)
	}
	o.Partial = o.Partial || o.Start != nil && len(left(j.p, *o.Start)) > 0
	found, err := search.Solve(j.ctx, j.p, o)
	if errors.As(err, new(*search.FleetError)) {
		// The fleet is too small, or seems to be: who finds no place is listed, in the time that is
		// left.
		o.Partial = true
		if o.Time > 0 {
			o.Time = max(o.Time-time.Since(begun), o.Time/10)
		}
		found, err = search.Solve(j.ctx, j.p, o)
	}
	if err != nil {
		return err
	}
	if err := kept(o, found.Solution); err != nil {
		return err
	}
	j.partial = j.p.Limited() != nil || o.Partial || o.Fixed != nil
	if j.partial && o.Fixed == nil && len(found.Unserved) > 0 {
		found.Solution = fit(j.p, found.Solution, j.until)
	}
	j.out.Solution, j.out.Iterations, j.out.Interrupted, j.out.Optimal = found.Solution, found.Iterations, found.Interrupted, found.Proven
	if found.Start > 0 {
		j.out.Start = &found.Start
	}
	return nil
}

// kept judges that the routes have the fixed beginnings of their start.
func kept(o search.Options, s vrp.Solution) error {
	for i, n := range o.Fixed {
		from := o.Start.Routes[i]
		whole := n < 0 || int(n) > len(from)
		if whole {
			n = int32(len(from))
		}
		if n == 0 {
			continue
		}
		if !slices.ContainsFunc(s.Routes, func(r []int32) bool {
			return len(r) >= int(n) && slices.Equal(r[:n], from[:n]) && (!whole || len(r) == len(from))
		}) {
			return fmt.Errorf("search: route %d of the start was fixed and is not kept", i+1)
		}
	}
	return nil
}

func runPolicy(j *job) (err error) {
	j.out.Solution, j.out.Decode, err = j.o.Route(j.ctx, j.p)
	j.out.Interrupted = err == nil && j.ctx.Err() != nil // an active search has ended early
	return err
}

func runBoth(j *job) error {
	err := runPolicy(j)
	if v := (*vrp.Violation)(nil); errors.As(err, &v) && v.Rule == vrp.WithinFleet {
		*j.out = Result{Note: fmt.Sprintf("all of the policy's routes take more than the %d vehicles: the search began without them", j.p.Vehicles)}
		return runSearch(j)
	}
	if err != nil {
		return err
	}
	start := j.out.Solution
	j.o.Search.Start = &start
	return runSearch(j)
}

// manyFunc solves problems several at a time; progress is never nil.
type manyFunc func(ctx context.Context, problems []*vrp.Problem, workers int, progress func(done int)) ([]vrp.Solution, error)

// exactMany finds the optimum of each problem.
func exactMany(ctx context.Context, problems []*vrp.Problem, workers int, progress func(int)) ([]vrp.Solution, error) {
	_, solutions, err := vrp.OptimalSolutions(ctx, problems, workers, progress)
	return solutions, err
}

// savingsMany solves the problems with a goroutine per worker; each takes the next problem when
// free, and the first error ends them all.
func savingsMany(ctx context.Context, problems []*vrp.Problem, workers int, progress func(int)) ([]vrp.Solution, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		wg         sync.WaitGroup
		next, done atomic.Int64
		mu         sync.Mutex // keeps progress to one call at a time
		solutions  = make([]vrp.Solution, len(problems))
	)
	for range min(workers, len(problems)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(problems)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				s, err := search.Savings(ctx, problems[i])
				if err != nil {
					cancel(err)
					return
				}
				solutions[i] = s
				mu.Lock()
				progress(int(done.Add(1)))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return solutions, context.Cause(ctx)
}
