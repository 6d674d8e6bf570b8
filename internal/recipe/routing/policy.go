package routing

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"haul/internal/comm"
	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/vrp"
)

// Policy is a trained model on a device, ready to route.
type Policy struct {
	Config *config.Config // what it was trained with
	Epoch  int            // finished epochs
	// of the routes that Prepare's programs draw: the run's unless it is set before
	Seed  uint64
	dev   kernel.Device
	model *model.GT
	store kernel.Store
}

// LoadPolicy reads a checkpoint's policy onto a device.
func LoadPolicy(dev kernel.Device, path string) (*Policy, error) {
	return loadShared(nil, dev, path)
}

// loadShared is LoadPolicy for all ranks at once.
func loadShared(w *comm.World, dev kernel.Device, path string) (*Policy, error) {
	ck, err := run.LoadShared(w, path, Name)
	if err != nil {
		return nil, err
	}
	return NewPolicy(dev, ck)
}

// NewPolicy puts the policy of a routing checkpoint onto a device.
func NewPolicy(dev kernel.Device, ck *run.Checkpoint) (*Policy, error) {
	c, m, err := modelOf(ck)
	if err != nil {
		return nil, err
	}
	weights, err := policyWeights(ck, m.Layout())
	if err != nil {
		return nil, err
	}
	store, err := run.NewStore(dev, m.Layout(), false)
	if err != nil {
		return nil, err
	}
	if err := store.WriteWeights(weights); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &Policy{Config: c, Epoch: ck.Progress.Concluded / c.Training.NumBatchesPerEpoch, Seed: c.Experiment.RandomSeed, dev: dev, model: m, store: store}, nil
}

// Close takes the policy off its device.
func (p *Policy) Close() error { return p.store.Close() }

// Parameters is the number of learned numbers.
func (p *Policy) Parameters() int { return p.model.Layout().Count() }

// Source is where instances like those it was trained on come from.
func (p *Policy) Source(purpose rng.Purpose) vrp.Source { return SourceOf(p.Config, purpose) }

// Evaluate routes generated instances, of any size. Temperature 0 stands for
// inference.default_temperature.
func (p *Policy) Evaluate(ctx context.Context, o EvalOptions) (*Evaluation, error) {
	if o.Temperature == 0 {
		o.Temperature = p.Config.Inference.DefaultTemperature
	}
	if o.Decode.Beam > 0 {
		return p.evaluateBeam(ctx, o)
	}
	e, err := newEvaluator(p.dev, p.model, p.store, o)
	if err != nil {
		return nil, err
	}
	out, err := e.run(ctx)
	return out, errors.Join(err, e.close())
}

// Solve routes one problem and returns the best routes by the problem's own metric, judged by the
// validator. Coordinates are scaled to the unit square by their larger side.
func (p *Policy) Solve(ctx context.Context, prob *vrp.Problem, d Decode) (vrp.Solution, float64, error) {
	if err := routable(prob); err != nil {
		return vrp.Solution{}, 0, fmt.Errorf("solve %s with a policy: %w", prob.Name, err)
	}
	s, err := p.Prepare(prob.N(), prob.Capacity, d)
	if err != nil {
		return vrp.Solution{}, 0, fmt.Errorf("solve %s with a policy: %w", prob.Name, err)
	}
	sol, cost, err := s.Solve(ctx, prob)
	if err = errors.Join(err, s.Close()); err != nil {
		return vrp.Solution{}, 0, err
	}
	return sol, cost, nil
}

// fewer is what a user changes where routes by this decoder do not fit.
func (d Decode) fewer(n int) string {
	if d.Routes(n) > 1 {
		return "--decode greedy, which builds one route per instance"
	}
	return ""
}

// instead is fewer for problems that are given: those that are too large for any decoder have
// another method.
func (d Decode) instead(n int) string {
	return cmp.Or(d.fewer(n), "--method search in place of a policy, whose attention is over all pairs of nodes")
}
