package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"haul/internal/vrp"
)

// Stepper is the program that routes problems of one size and capacity, with a row for each of
// their symmetries. It serves one caller at a time, again and again: equal problems get equal
// routes, whatever came before.
type Stepper struct {
	*batch
	beam   *beamSearch   // nil: the routes are all
	active *activeSearch // likewise

	within time.Duration       // that an active search may take; 0: its iterations decide
	tell   func(share float64) // hears how far it is; may be nil
}

// Prepare compiles the program for problems of n customers with one capacity.
func (p *Policy) Prepare(n int, capacity int32, d Decode) (*Stepper, error) {
	return p.prepare(n, capacity, 1, d, p.Seed)
}

// PrepareSeeded is Prepare for routes that another seed draws than the policy's own.
func (p *Policy) PrepareSeeded(n int, capacity int32, d Decode, seed uint64) (*Stepper, error) {
	return p.prepare(n, capacity, 1, d, seed)
}

// prepare is Prepare for several problems at a time; the seed is that of sampled routes.
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

// Close gives back what the program holds.
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

// Solve routes one problem and returns the best routes by the problem's own metric, judged by the
// validator. Coordinates are scaled to the unit square by their larger side.
func (p *Policy) Solve(ctx context.Context, prob *vrp.Problem, d Decode) (vrp.Solution, float64, error) {
	return p.SolveWithin(ctx, prob, d, 0, nil)
}

// SolveWithin is Solve for an active search with a budget of time, 0 for none: it ends there, after
// its iterations or with ctx, whichever is first, and the best routes so far are the result. tell
// hears how much of it is done and may be nil. Other decoders end with ctx in an error.
func (p *Policy) SolveWithin(ctx context.Context, prob *vrp.Problem, d Decode, within time.Duration, tell func(share float64)) (vrp.Solution, float64, error) {
	if err := p.takes(prob); err != nil {
		return vrp.Solution{}, 0, fmt.Errorf("solve %s with a policy: %w", prob.Name, err)
	}
	s, err := p.Prepare(prob.N(), prob.Load(), d)
	if err != nil {
		return vrp.Solution{}, 0, fmt.Errorf("solve %s with a policy: %w", prob.Name, err)
	}
	s.within, s.tell = within, tell
	sol, cost, err := s.Solve(ctx, prob)
	if err = errors.Join(err, s.Close()); err != nil {
		return vrp.Solution{}, 0, err
	}
	return sol, cost, nil
}

// Solve is Policy.Solve for a problem of the size and capacity that the program was prepared for.
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

// improve runs the program on the problems that were loaded and keeps the best routes of each,
// where they beat what is there. Sampled routes are drawn by the index of the first row. Problems
// whose demands are shown as smaller are routed as they are, too.
func (s *Stepper) improve(ctx context.Context, problems []*vrp.Problem, out []Routed, first uint64) error {
	begun := time.Now()
	if s.odd {
		if err := s.show(true); err != nil {
			return err
		}
		if err := s.decode(ctx, problems, out, first); err != nil {
			return err
		}
		if err := s.show(false); err != nil {
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
		return s.active.search(ctx, s.batch, problems, out, first, until, s.tell)
	}
	return nil
}
