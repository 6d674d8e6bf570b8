package policy

import (
	"context"
	"errors"
	"fmt"

	"haul/internal/vrp"
)

// Evaluate routes generated instances of any size. If Temperature is 0 it uses
// inference.default_temperature. If ctx ends, it returns the results of the first instances and the
// error.
func (p *Policy) Evaluate(ctx context.Context, o EvalOptions) (*Evaluation, error) {
	if o.Temperature == 0 {
		o.Temperature = p.Config.Inference.DefaultTemperature
	}
	if o.Decode.Beam > 0 || o.Decode.Active || o.Decode.Join {
		if o.Source.File != "" {
			return nil, errFileDecode
		}
		return p.evaluateGiven(ctx, o)
	}
	e, err := NewEvaluator(p.dev, p.model, p.store, o)
	if err != nil {
		return nil, err
	}
	out, err := e.Run(ctx)
	return out, errors.Join(err, e.Close())
}

// evaluateGiven is Evaluate for beam search, active search and recombination, for which the host
// generates the instances.
func (p *Policy) evaluateGiven(ctx context.Context, o EvalOptions) (*Evaluation, error) {
	if err := o.Source.Check(); err != nil {
		return nil, err
	}
	if o.Count < 1 {
		return nil, fmt.Errorf("evaluate: count is %d: at least 1 is needed", o.Count)
	}
	if err := FitsHost(o); err != nil {
		return nil, err
	}
	b := vrp.NewBatch(o.Count, o.Source.N, o.Source.Capacity)
	o.Source.Fill(b, o.First)
	problems := make([]*vrp.Problem, o.Count)
	for i := range problems {
		problems[i] = b.Problem(i)
		problems[i].Name = fmt.Sprintf("instance %d", o.First+uint64(i))
	}
	routed, err := p.RouteMany(ctx, problems, ManyOptions{Decode: o.Decode, Seed: o.Source.Seed, Batch: o.Batch, Progress: o.Progress})
	if routed == nil {
		return nil, err
	}
	out := &Evaluation{}
	for i, r := range routed[:Reached(routed)] {
		out.Lengths = append(out.Lengths, r.Cost)
		if o.KeepTours {
			out.Tours = append(out.Tours, problems[i].Visits(r.Solution))
		}
	}
	if len(out.Lengths) > 0 && o.Decode.Active {
		out.Iterations = IterationsOf(routed[:len(out.Lengths)])
	}
	return out, err
}
