// Package vrp is the vehicle routing problem for Go programs: problems from files, from numbers or
// part by part, three ways to solve them, and the referee that judges routes.
//
//	p, err := vrp.New(coords, demands, capacity)
//	s, err := vrp.Search(ctx, p, vrp.SearchOptions{Time: time.Second})
//
// Places are numbered from 0: depots first, then customers. [Model] has every part that a problem
// can have; what a method does not know it refuses by name. Every solution that this package
// returns was judged by [Problem.Validate].
//
// The package is stable: see docs/go.md for what that means.
package vrp

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"haul/internal/search"
	"haul/internal/solve"
	engine "haul/internal/vrp"
	"haul/internal/vrp/files"
	"haul/vrp/internal/link"
)

// MaxExact is the number of customers that Exact accepts at most: its memory and time grow as two
// to the power of it.
const MaxExact = engine.MaxExactN

// Problem is one instance. It does not change once it is made, and many goroutines may use it.
type Problem struct {
	inner *engine.Problem
}

// Limits are what may further limit a route beside the capacity; the zero value limits nothing.
type Limits struct {
	Vehicles    int       // routes at most; 0: any number
	MaxDuration float64   // of a route's legs and services together, in units of distance; 0: none
	Service     []float64 // time spent at each node, the depot first; nil: none
	Open        bool      // a route ends at its last customer: the way back to the depot costs nothing
}

// Solution is a set of routes. A route lists customers in their order; the depots at its ends are
// implied, and a depot within it is a reload.
type Solution struct {
	Cost     float64
	Routes   [][]int
	Types    []int      // the vehicle type of each route; nil: all are of the first
	Unserved []Unserved // customers on no route, and why; nil: everybody is served
}

// New makes a problem of points in the plane, the depot first, with Euclidean distances. The
// depot's demand is 0.
func New(coords [][2]float64, demands []int, capacity int) (*Problem, error) {
	return NewLimited(coords, demands, capacity, Limits{})
}

// NewLimited is New with further limits on routes.
func NewLimited(coords [][2]float64, demands []int, capacity int, l Limits) (*Problem, error) {
	switch {
	case len(coords) < 2:
		return nil, fmt.Errorf("vrp: %d points: the depot and at least one customer are needed", len(coords))
	case len(demands) != len(coords):
		return nil, fmt.Errorf("vrp: %d demands for %d points: one per point is needed, 0 for the depot", len(demands), len(coords))
	case capacity < 1 || capacity > math.MaxInt32:
		return nil, fmt.Errorf("vrp: capacity is %d: from 1 to %d is possible", capacity, math.MaxInt32)
	case l.Vehicles < 0:
		return nil, fmt.Errorf("vrp: %d vehicles: at least 1 is needed, or 0 for any number", l.Vehicles)
	case math.IsNaN(l.MaxDuration) || l.MaxDuration < 0:
		return nil, fmt.Errorf("vrp: a route's duration is limited to %v: above 0 is needed, or 0 for no limit", l.MaxDuration)
	case l.Service != nil && len(l.Service) != len(coords):
		return nil, fmt.Errorf("vrp: %d service times for %d points: one per point is needed", len(l.Service), len(coords))
	}
	p := &engine.Problem{Name: "problem", Capacity: int32(capacity), Metric: engine.Exact, Vehicles: l.Vehicles, MaxDuration: l.MaxDuration, Open: l.Open}
	for i, c := range coords {
		if math.IsNaN(c[0]+c[1]) || math.IsInf(c[0], 0) || math.IsInf(c[1], 0) {
			return nil, fmt.Errorf("vrp: point %d is (%v, %v): finite coordinates are needed", i, c[0], c[1])
		}
		if demands[i] < 0 || demands[i] > math.MaxInt32 {
			return nil, fmt.Errorf("vrp: demand %d is %d: from 0 to %d is possible", i, demands[i], math.MaxInt32)
		}
		p.X, p.Y, p.Demand = append(p.X, c[0]), append(p.Y, c[1]), append(p.Demand, int32(demands[i]))
		if l.Service != nil {
			if s := l.Service[i]; math.IsNaN(s) || s < 0 {
				return nil, fmt.Errorf("vrp: service time %d is %v: 0 or more is needed", i, s)
			}
			p.Service = append(p.Service, l.Service[i])
		}
	}
	if demands[0] != 0 {
		return nil, fmt.Errorf("vrp: the depot, point 0, has demand %d: 0 is needed", demands[0])
	}
	return wrap(p)
}

// Load reads CVRPLIB's .vrp. Distances are rounded as the file's type says, as published costs are.
func Load(path string) (*Problem, error) {
	p, err := files.LoadProblem(path, files.Options{})
	if err != nil {
		return nil, err
	}
	return wrap(p)
}

// Read is Load from a reader; name stands in errors.
func Read(r io.Reader, name string) (*Problem, error) {
	p, err := files.ReadProblem(r, name, files.Options{})
	if err != nil {
		return nil, err
	}
	return wrap(p)
}

func wrap(p *engine.Problem) (*Problem, error) {
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("vrp: %w", err)
	}
	return &Problem{inner: p}, nil
}

// Name is what the problem's file calls it.
func (p *Problem) Name() string { return p.inner.Name }

// N is the number of customers.
func (p *Problem) N() int { return p.inner.N() }

// Capacity is what a vehicle carries.
func (p *Problem) Capacity() int { return int(p.inner.Capacity) }

// Distance is the length of the way from node i to node j.
func (p *Problem) Distance(i, j int) float64 { return p.inner.Dist(i, j) }

// Validate says in one line what is wrong with routes: a customer missing or visited twice, a load
// above the capacity, a limit that is not kept. It returns nil where nothing is, and a *Violation
// where a rule is broken. Violations lists all, for vehicles of several types too.
func (p *Problem) Validate(routes [][]int) error {
	s, err := p.inward(routes)
	if err != nil {
		return err
	}
	return outwardViolation(engine.Validate(p.inner, s))
}

// Cost is the length of all routes together. It judges nothing: see Validate.
func (p *Problem) Cost(routes [][]int) (float64, error) {
	s, err := p.inward(routes)
	if err != nil {
		return 0, err
	}
	return p.inner.Cost(s), nil
}

func (p *Problem) inward(routes [][]int) (engine.Solution, error) { return p.inwardTyped(routes, nil) }

func (p *Problem) inwardTyped(routes [][]int, types []int) (engine.Solution, error) {
	s := engine.Solution{Routes: make([][]int32, len(routes))}
	if types != nil && len(types) != len(routes) {
		return s, fmt.Errorf("vrp: %d vehicle types for %d routes", len(types), len(routes))
	}
	for i, t := range types {
		if t < 0 || t >= len(p.inner.Types()) {
			return s, fmt.Errorf("vrp: route %d has vehicle type %d: types are 0 to %d", i+1, t, len(p.inner.Types())-1)
		}
		s.Types = append(s.Types, int32(t))
	}
	first := p.inner.DepotCount()
	for i, route := range routes {
		for _, c := range route {
			// a depot within a route is a reload, which a fleet of its own may have
			if c < 0 || c >= first+p.N() || c < first && p.inner.Fleet == nil {
				return s, fmt.Errorf("vrp: route %d visits %d: customers are %d to %d", i+1, c, first, first+p.N()-1)
			}
			s.Routes[i] = append(s.Routes[i], int32(c))
		}
	}
	return s, nil
}

func init() {
	link.Inner = func(p any) *engine.Problem { return p.(*Problem).inner }
	link.Outward = func(p any, s engine.Solution) (any, error) {
		of := p.(*Problem).inner
		if err := engine.Validate(of, s); err != nil {
			return nil, fmt.Errorf("vrp: a solver made invalid routes: %w", err)
		}
		return p.(*Problem).outward(s, of.Cost(s), nil), nil
	}
}

// outward gives a solver's routes the types of this package.
func (p *Problem) outward(s engine.Solution, cost float64, why map[int32]string) *Solution {
	out := &Solution{Cost: cost, Routes: make([][]int, len(s.Routes))}
	for _, t := range s.Types {
		out.Types = append(out.Types, int(t))
	}
	for v := p.inner.DepotCount(); v < p.inner.DepotCount()+p.N(); v++ {
		if reason, ok := why[int32(v)]; ok {
			out.Unserved = append(out.Unserved, Unserved{Customer: v, ID: p.inner.ID(v), Reason: reason})
		}
	}
	for i, route := range s.Routes {
		for _, c := range route {
			out.Routes[i] = append(out.Routes[i], int(c))
		}
	}
	return out
}

// String is the solution as CVRPLIB's .sol file has it.
func (s *Solution) String() string {
	inner := engine.Solution{Routes: make([][]int32, len(s.Routes))}
	for i, route := range s.Routes {
		for _, c := range route {
			inner.Routes[i] = append(inner.Routes[i], int32(c))
		}
	}
	var b strings.Builder
	_ = files.WriteSolution(&b, nil, inner, s.Cost) // a Builder takes everything
	return b.String()
}

// Exact finds the optimum by dynamic programming over sets of customers, for at most MaxExact of
// them and no limit but the capacity, or one vehicle that serves all; and of up to 12 customers
// with any parts, 7 where the vehicles reload or rest, windows have several spans or a price, or
// the last load leaves first.
func Exact(ctx context.Context, p *Problem) (*Solution, error) {
	return p.solve(ctx, solve.Exact, solve.Options{})
}

// solve asks the table of methods.
func (p *Problem) solve(ctx context.Context, method string, o solve.Options) (*Solution, error) {
	m, err := solve.Choose(p.inner, method, nil)
	if err != nil {
		return nil, fmt.Errorf("vrp: %w", err)
	}
	r, err := m.Solve(ctx, p.inner, o)
	if err != nil {
		return nil, err
	}
	return p.outward(r.Solution, r.Cost, r.Reasons), nil
}

// SearchOptions say how long to search. One of Time and Iterations is needed.
type SearchOptions struct {
	Time       time.Duration // wall time
	Iterations int           // in place of Time: the same seed then gives the same routes
	Seed       uint64
	Workers    int                // cores; below 1 counts as 1
	Start      *Solution          // routes to improve; nil: some are built
	Target     float64            // stop at this cost; 0: none
	Progress   func(cost float64) // told of every better cost, one call at a time; may be nil
}

// Search improves routes until the time or the iterations are spent, the target is met, or ctx
// ends: the best routes so far are returned in each case. It knows every limit that a Problem has.
func Search(ctx context.Context, p *Problem, o SearchOptions) (*Solution, error) {
	switch {
	case o.Time < 0 || o.Iterations < 0:
		return nil, fmt.Errorf("vrp: a search of %v and %d iterations: neither may be below 0", o.Time, o.Iterations)
	case (o.Time > 0) == (o.Iterations > 0):
		return nil, fmt.Errorf("vrp: a search of %v and %d iterations: give it one of the two", o.Time, o.Iterations)
	}
	inner := search.Options{Time: o.Time, Iterations: o.Iterations, Workers: o.Workers, Seed: o.Seed, Target: o.Target}
	if o.Start != nil {
		start, err := p.inwardTyped(o.Start.Routes, o.Start.Types)
		if err != nil {
			return nil, err
		}
		inner.Start = &start
	}
	if o.Progress != nil {
		inner.Progress = func(s search.Progress) {
			if s.Improved {
				o.Progress(s.Cost)
			}
		}
	}
	return p.solve(ctx, solve.Search, solve.Options{Search: inner})
}

// Savings builds routes by the savings of Clarke and Wright and improves them by local search and a
// fixed budget of ruin and recreate: milliseconds, and the same routes for the same problem. It
// knows no limit but the capacity.
func Savings(ctx context.Context, p *Problem) (*Solution, error) {
	return p.solve(ctx, solve.Savings, solve.Options{})
}
