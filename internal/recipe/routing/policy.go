package routing

import (
	"context"
	"errors"
	"fmt"

	"haul/internal/comm"
	"haul/internal/config"
	"haul/internal/env/cvrp"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
	"haul/internal/run"
)

// Policy is a trained model on a device, ready to route.
type Policy struct {
	Config *config.Config // what it was trained with
	Epoch  int            // finished epochs
	dev    kernel.Device
	model  *model.GT
	store  kernel.Store
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
	c, ok := ck.Settings.(*config.Config)
	if !ok {
		return nil, fmt.Errorf("load checkpoint %s: it holds model %q, not %s", ck.Path, ck.Settings.Recipe(), Name)
	}
	m, err := newModel(c)
	if err != nil {
		return nil, err
	}
	weights, err := ck.Weights(m.Layout(), "")
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
	return &Policy{Config: c, Epoch: ck.Progress.Concluded / c.Training.NumBatchesPerEpoch, dev: dev, model: m, store: store}, nil
}

// Close takes the policy off its device.
func (p *Policy) Close() error { return p.store.Close() }

// Parameters is the number of learned numbers.
func (p *Policy) Parameters() int { return p.model.Layout().Count() }

// Source is where instances like those it was trained on come from.
func (p *Policy) Source(purpose rng.Purpose) cvrp.Source { return SourceOf(p.Config, purpose) }

// Evaluate routes generated instances, of any size. Temperature 0 stands for inference.default_temperature.
func (p *Policy) Evaluate(ctx context.Context, o EvalOptions) (*Evaluation, error) {
	if o.Temperature == 0 {
		o.Temperature = p.Config.Inference.DefaultTemperature
	}
	e, err := newEvaluator(p.dev, p.model, p.store, o)
	if err != nil {
		return nil, err
	}
	out, err := e.run(ctx)
	return out, errors.Join(err, e.close())
}

// Solve routes one problem and returns the best routes by the problem's own metric, judged by the validator. Coordinates
// are scaled to the unit square by their larger side.
func (p *Policy) Solve(ctx context.Context, prob *cvrp.Problem, d Decode) (cvrp.Solution, float64, error) {
	if err := routable(prob); err != nil {
		return cvrp.Solution{}, 0, fmt.Errorf("solve %s with a policy: %w", prob.Name, err)
	}
	s, err := p.Prepare(prob.N(), prob.Capacity, d)
	if err != nil {
		return cvrp.Solution{}, 0, fmt.Errorf("solve %s with a policy: %w", prob.Name, err)
	}
	sol, cost, err := s.Solve(ctx, prob)
	if err = errors.Join(err, s.Close()); err != nil {
		return cvrp.Solution{}, 0, err
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

// Stepper is the program that routes problems of one size and capacity, a row for each symmetry. It serves one caller at a time,
// again and again: equal problems get equal routes, whatever came before.
type Stepper struct {
	n        int
	capacity int32
	rows     int
	starts   int
	in       model.Instances
	routes   *plan.Routes
	runner   kernel.Runner
	actions  []int32
}

// Prepare compiles the program for problems of n customers with one capacity.
func (p *Policy) Prepare(n int, capacity int32, d Decode) (*Stepper, error) {
	if n < 1 {
		return nil, errors.New("it has no customers")
	}
	s := &Stepper{n: n, capacity: capacity, rows: d.symmetries(), starts: d.starts(n)}
	pl := plan.New("solve", p.dev, s.rows, n+1, p.model.Layout())
	s.in = model.Instances{Capacity: capacity, PosX: pl.Rows("x", pl.B(), n+1), PosY: pl.Rows("y", pl.B(), n+1),
		Demand: pl.RowInts("demand", pl.B(), n+1), Feature: pl.Shard("feature", pl.B(), n+1, 4)}
	pl.Append(&kernel.Feature{Feature: s.in.Feature, PosX: s.in.PosX, PosY: s.in.PosY, Demand: s.in.Demand, Capacity: s.in.Capacity})
	s.routes = recordRoutes(pl, p.model, s.in, d, n, p.Config.Experiment.RandomSeed)
	var err error
	if s.runner, err = run.Compile(d.fewer(n), pl, p.dev, p.store); err != nil {
		return nil, err
	}
	if err := s.runner.SetControl(evalControl(p.Config.Inference.DefaultTemperature)); err != nil {
		return nil, errors.Join(err, s.runner.Close())
	}
	s.actions = make([]int32, s.rows*s.starts*maxSteps(n))
	return s, nil
}

// Close gives back what the program holds.
func (s *Stepper) Close() error { return s.runner.Close() }

// Solve is Policy.Solve for a problem of the size and capacity that the program was prepared for.
func (s *Stepper) Solve(ctx context.Context, prob *cvrp.Problem) (cvrp.Solution, float64, error) {
	if err := routable(prob); err != nil {
		return cvrp.Solution{}, 0, fmt.Errorf("solve %s with a policy: %w", prob.Name, err)
	}
	if prob.N() != s.n || prob.Capacity != s.capacity {
		panic("routing: Stepper.Solve: the problem is of another size or capacity")
	}
	sol, cost, err := s.best(ctx, prob)
	if err != nil {
		return cvrp.Solution{}, 0, fmt.Errorf("solve %s with a policy: %w", prob.Name, err)
	}
	return sol, cost, nil
}

// routable says what keeps a policy from a problem.
func routable(prob *cvrp.Problem) error {
	switch {
	case prob.N() < 1:
		return errors.New("it has no customers")
	case len(prob.X) == 0:
		return errors.New("it has no coordinates, and a policy reads nothing else")
	}
	for c, demand := range prob.Demand {
		if demand > prob.Capacity {
			return fmt.Errorf("customer %d demands %d, capacity is %d: no vehicle can serve it", c, demand, prob.Capacity)
		}
	}
	return nil
}

// best runs the program and picks by the problem's metric, which may round and need not be Euclidean.
func (s *Stepper) best(ctx context.Context, prob *cvrp.Problem) (best cvrp.Solution, cost float64, err error) {
	x, y, demand := unitRows(prob, s.rows)
	if err := errors.Join(ctx.Err(), s.runner.WriteBatch(s.in.PosX, x), s.runner.WriteBatch(s.in.PosY, y), s.runner.WriteBatch(s.in.Demand, demand),
		s.runner.SetState(kernel.State{})); err != nil {
		return best, 0, err
	}
	if err := s.runner.Run(); err != nil {
		return best, 0, err
	}
	steps := maxSteps(s.n)
	if err := s.runner.ReadBatch(s.routes.Actions, s.actions); err != nil {
		return best, 0, err
	}
	for r := range s.rows * s.starts {
		sol := cvrp.FromTour(s.actions[r*steps:][:steps])
		if c := prob.Cost(sol); r == 0 || c < cost {
			best, cost = sol, c
		}
	}
	if err := cvrp.Validate(prob, best); err != nil {
		return cvrp.Solution{}, 0, fmt.Errorf("the policy's routes are invalid: %w", err)
	}
	return best, cost, nil
}

// unitRows writes the problem into the unit square, a row for each of the first `rows` symmetries.
func unitRows(p *cvrp.Problem, rows int) (x, y []float32, demand []int32) {
	minX, maxX, minY, maxY := p.X[0], p.X[0], p.Y[0], p.Y[0]
	for j := range p.X {
		minX, maxX = min(minX, p.X[j]), max(maxX, p.X[j])
		minY, maxY = min(minY, p.Y[j]), max(maxY, p.Y[j])
	}
	side := max(maxX-minX, maxY-minY)
	if side == 0 {
		side = 1 // every node in one place
	}
	for k := range rows {
		for j := range p.X {
			u, v := (p.X[j]-minX)/side, (p.Y[j]-minY)/side
			if k&1 != 0 {
				u = 1 - u
			}
			if k&2 != 0 {
				v = 1 - v
			}
			if k&4 != 0 {
				u, v = v, u
			}
			x, y = append(x, float32(u)), append(y, float32(v))
		}
		demand = append(demand, p.Demand...)
	}
	return x, y, demand
}
