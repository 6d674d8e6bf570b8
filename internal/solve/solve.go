package solve

import (
	"context"
	"fmt"
	"time"

	"haul/internal/vrp"
)

// Solve solves a problem by a method that Choose gave for it.
func (m *Method) Solve(ctx context.Context, p *vrp.Problem, o Options) (*Result, error) {
	begun := time.Now()
	j := &job{ctx: ctx, p: p, o: o, out: &Result{Method: m.Name}}
	if err := m.run(j); err != nil {
		return nil, err
	}
	if j.out.Method == "" { // the search went on alone
		j.out.Method = Search
	}
	j.out.Seconds = time.Since(begun).Seconds()
	// Unserved required customers do not end the solve: they are listed with their reasons. A
	// method that serves everybody is held to that.
	judged := p
	if j.partial {
		judged = relaxed(p, missing(p, left(p, j.out.Solution)))
	}
	if err := vrp.Validate(judged, j.out.Solution); err != nil {
		return nil, fmt.Errorf("%s made invalid routes for %s: %w", m.Name, nameOf(p), err)
	}
	j.out.Cost = p.Cost(j.out.Solution)
	if j.partial {
		j.out.Reasons = reasons(p, j.out.Solution, j.until)
		j.out.Missing = len(missing(p, left(p, j.out.Solution)))
	}
	return j.out, nil
}

// SolveMany solves problems by a method that needs no budget (exact, savings), several at a time.
// Solutions are in the problems' order and do not depend on the workers. progress hears of every
// problem that is done, one call at a time; it may be nil.
func (m *Method) SolveMany(ctx context.Context, problems []*vrp.Problem, workers int, progress func(done int)) ([]vrp.Solution, error) {
	if m.many == nil {
		return nil, fmt.Errorf("%s does not solve many problems at once", m.Name)
	}
	if progress == nil {
		progress = func(int) {}
	}
	return m.many(ctx, problems, workers, progress)
}
