package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"haul/internal/vrp"
)

// Stepper is a compiled program that routes problems of one size and capacity, with a row for each
// symmetry of a problem. One goroutine may use it at a time, any number of times. Routes do not
// depend on earlier problems.
type Stepper struct {
	*batch
	beam   *beamSearch   // nil: no beam search
	active *activeSearch // nil: no active search

	within time.Duration       // time limit of an active search; 0: its iterations are the limit
	report func(share float64) // receives the fraction of the search that is done; may be nil
}

// Prepare compiles the program for problems of n customers with one capacity.
func (p *Policy) Prepare(n int, capacity int32, d Decode) (*Stepper, error) {
	return p.prepare(n, capacity, 1, d, p.Seed)
}

// PrepareSeeded is Prepare with another seed for sampled routes than the policy's.
func (p *Policy) PrepareSeeded(n int, capacity int32, d Decode, seed uint64) (*Stepper, error) {
	return p.prepare(n, capacity, 1, d, seed)
}

// prepare is Prepare for `size` problems at a time.
func (p *Policy) prepare(n int, capacity int32, size int, d Decode, seed uint64) (*Stepper, error) {
	b, err := newBatch(p, n, capacity, size, d, seed)
	if err != nil {
		return nil, err
	}
	s := &Stepper{batch: b}
	if d.Beam > 0 {
		if s.beam, err = newBeam(p, b, d); err != nil {
			return nil, errors.Join(err, b.runner.Close())
		}
	}
	if d.Active {
		if s.active, err = newActive(p, b, d, seed); err != nil {
			return nil, errors.Join(err, b.runner.Close())
		}
	}
	return s, nil
}

// Close frees the program.
func (s *Stepper) Close() error {
	err := s.runner.Close()
	if s.beam != nil {
		err = errors.Join(err, s.beam.runner.Close())
	}
	if s.active != nil {
		err = errors.Join(err, s.active.close())
	}
	return err
}

// Solve routes one problem and returns the best solution and its cost by the problem's own metric,
// checked by the validator. Coordinates are scaled to the unit square by their larger side.
func (p *Policy) Solve(ctx context.Context, prob *vrp.Problem, d Decode) (vrp.Solution, float64, error) {
	return p.SolveWithin(ctx, prob, d, 0, nil)
}

// SolveWithin is Solve with a time limit for active search; 0: none. The search ends at the limit,
// after its iterations or with ctx, and returns the best solution so far. tell receives the
// fraction that is done and may be nil. Other decoders return an error if ctx ends.
func (p *Policy) SolveWithin(ctx context.Context, prob *vrp.Problem, d Decode, within time.Duration, report func(share float64)) (vrp.Solution, float64, error) {
	if err := p.takes(prob); err != nil {
		return vrp.Solution{}, 0, fmt.Errorf("solve %s with a policy: %w", prob.Name, err)
	}
	s, err := p.Prepare(prob.N(), prob.Load(), d)
	if err != nil {
		return vrp.Solution{}, 0, fmt.Errorf("solve %s with a policy: %w", prob.Name, err)
	}
	s.within, s.report = within, report
	sol, cost, err := s.Solve(ctx, prob)
	if err = errors.Join(err, s.Close()); err != nil {
		return vrp.Solution{}, 0, err
	}
	return sol, cost, nil
}

// Solve is Policy.Solve for a problem of the program's size and capacity.
func (s *Stepper) Solve(ctx context.Context, prob *vrp.Problem) (vrp.Solution, float64, error) {
	if err := routable(prob, s.in.Set); err != nil {
		return vrp.Solution{}, 0, fmt.Errorf("solve %s with a policy: %w", prob.Name, err)
	}
	if prob.N() != s.n || prob.Load() != s.capacity {
		panic("policy: Stepper.Solve: the problem is of another size or capacity")
	}
	var out [1]Routed
	err := s.load([]*vrp.Problem{prob})
	if err == nil {
		err = s.improve(ctx, []*vrp.Problem{prob}, out[:], 0)
	}
	if err != nil {
		return vrp.Solution{}, 0, fmt.Errorf("solve %s with a policy: %w", prob.Name, err)
	}
	return out[0].Solution, out[0].Cost, nil
}

// improve runs the program on the loaded problems and stores routes in out that are better than
// those in out. Samples depend on the index of the first row. Problems whose demands are scaled
// down in the features are also decoded without scaling.
func (s *Stepper) improve(ctx context.Context, problems []*vrp.Problem, out []Routed, first uint64) error {
	begun := time.Now()
	if s.scaled {
		if err := s.writeFeatures(true); err != nil {
			return err
		}
		if err := s.decode(ctx, problems, out, first); err != nil {
			return err
		}
		if err := s.writeFeatures(false); err != nil {
			return err
		}
	}
	if err := s.decode(ctx, problems, out, first); err != nil {
		return err
	}
	if s.beam != nil {
		return s.beam.search(ctx, s.batch, problems, out)
	}
	if s.active != nil {
		var until time.Time
		if s.within > 0 {
			until = begun.Add(s.within)
		}
		return s.active.search(ctx, s.batch, problems, out, first, until, s.report)
	}
	return nil
}
