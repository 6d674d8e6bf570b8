package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"haul/internal/vrp"
)

// ManyOptions configure RouteMany.
type ManyOptions struct {
	Decode Decode
	Seed   uint64 // seed of sampled routes
	Batch  int    // problems at a time; 0: chosen by size. Routes do not depend on it
	// Time limit for all problems; 0: none. Time that the decoder leaves is spent on further
	// routes, sampled from the same starts. An active search iterates until the limit or its last
	// iteration.
	Time     time.Duration
	Progress func(done int)
}

// RouteMany routes problems of any sizes and capacities. Problems of one size and capacity share a
// program and its batches. If ctx ends an active search, the routes so far are returned with the
// error; problems that were not begun have no routes.
func (p *Policy) RouteMany(ctx context.Context, problems []*vrp.Problem, o ManyOptions) ([]Routed, error) {
	for _, prob := range problems {
		if err := p.takes(prob); err != nil {
			return nil, fmt.Errorf("%s: a policy cannot route it: %w", prob.Name, err)
		}
	}
	type kind struct {
		n        int
		capacity int32
	}
	var kinds []kind
	members, work := map[kind][]int{}, map[kind]float64{}
	total := 0.0
	for i, prob := range problems {
		k := kind{prob.N(), prob.Load()}
		if members[k] == nil {
			kinds = append(kinds, k)
		}
		members[k] = append(members[k], i)
		amount := float64(k.n) * float64(k.n) * float64(o.Decode.starts(k.n))
		work[k] += amount
		total += amount
	}
	out := make([]Routed, len(problems))
	done := 0
	for _, k := range kinds {
		g := &group{policy: p, o: o, n: k.n, capacity: k.capacity, deadline: time.Duration(float64(o.Time) * work[k] / total)}
		g.report = func(more int) {
			if o.Progress != nil {
				o.Progress(done + more)
			}
		}
		for _, i := range members[k] {
			g.problems, g.index = append(g.problems, problems[i]), append(g.index, i)
		}
		err := g.route(ctx, func(i int, r Routed) {
			out[g.index[i]] = r
			if done++; o.Progress != nil {
				o.Progress(done)
			}
		})
		if err != nil && ctx.Err() != nil {
			return out, err
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// group holds the problems of one size and capacity.
type group struct {
	policy   *Policy
	o        ManyOptions
	n        int
	capacity int32
	problems []*vrp.Problem
	index    []int
	deadline time.Duration  // time limit of the group; 0: none
	report   func(more int) // reports problems that are partly routed
}

// route calls take with each problem's routes as soon as they are final.
func (g *group) route(ctx context.Context, take func(i int, r Routed)) (err error) {
	batch := g.o.Batch
	if batch < 1 {
		batch = evalBatch(g.n, g.policy.model.Rules(), g.o.Decode)
		if g.o.Decode.Active {
			batch = min(batch, activeBatch(g.policy, g.n, g.o.Decode))
		}
	}
	batch = min(batch, len(g.problems))
	s, err := g.policy.prepare(g.n, g.capacity, batch, g.o.Decode, g.o.Seed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var more *Stepper // samples further routes from the same starts
	if g.deadline > 0 && !g.o.Decode.Active {
		if more, err = g.policy.prepare(g.n, g.capacity, batch, g.o.Decode.furtherSamples(g.n), g.o.Seed); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, more.Close()) }()
	}
	start := time.Now()
	for at := 0; at < len(g.problems); at += batch {
		some := g.problems[at:min(at+batch, len(g.problems))]
		out := make([]Routed, len(some))
		if err := s.load(some); err != nil {
			return err
		}
		// Samples depend on row and round only, not on the batch.
		first := uint64(at) * uint64(s.sym)
		if g.deadline > 0 { // the time left to this batch, with what earlier batches did not use
			until := time.Duration(float64(g.deadline) * float64(at+len(some)) / float64(len(g.problems)))
			s.within = max(1, until-time.Since(start))
		}
		s.report = func(share float64) { g.report(int(share * float64(len(some)))) }
		if err := s.improve(ctx, some, out, first); err != nil {
			return err
		}
		if more != nil {
			until := time.Duration(float64(g.deadline) * float64(at+len(some)) / float64(len(g.problems)))
			if err := more.load(some); err != nil {
				return err
			}
			for round := uint64(1); time.Since(start) < until; round++ {
				if err := more.improve(ctx, some, out, round<<40+first); err != nil {
					return err
				}
			}
		}
		for i, r := range out {
			take(at+i, r)
		}
		if g.o.Decode.Active && ctx.Err() != nil { // the context has ended the search
			return ctx.Err()
		}
	}
	return nil
}
