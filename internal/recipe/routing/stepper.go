package routing

import (
	"context"
	"errors"
	"fmt"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/run"
	"haul/internal/vrp"
)

// What a reader could break: the policy has only ever seen the unit square and demands as shares of
// the capacity. A problem goes to the device in that form, and the routes that come back are costed
// by the problem's own metric.

// Stepper is the program that routes problems of one size and capacity, a row for each of their
// symmetries. It serves one caller at a time, again and again: equal problems get equal routes,
// whatever came before.
type Stepper struct {
	n        int
	capacity int32
	batch    int // problems at a time
	sym      int
	starts   int
	in       model.Instances
	routes   *plan.Routes
	runner   kernel.Runner
	trained  shares
	x, y     []float32
	demand   []int32
	feature  []float32
	shown    []float32 // what demands are divided by in the features, by problem
	odd      bool      // for some problem it is not the capacity
	lengths  []float32
	actions  []int32
	beam     *beamSearch // nil: the routes are all
}

// Prepare compiles the program for problems of n customers with one capacity.
func (p *Policy) Prepare(n int, capacity int32, d Decode) (*Stepper, error) {
	return p.prepare(n, capacity, 1, d, p.Seed)
}

// prepare is Prepare for a batch of problems at a time; the seed is that of sampled routes.
func (p *Policy) prepare(n int, capacity int32, batch int, d Decode, seed uint64) (*Stepper, error) {
	if n < 1 {
		return nil, errors.New("it has no customers")
	}
	s := &Stepper{n: n, capacity: capacity, batch: batch, sym: d.symmetries(), starts: d.starts(n), trained: trainedShares(p.Config)}
	rows := batch * s.sym
	pl := plan.New("solve", p.dev, rows, n+1, p.model.Layout())
	s.in = givenInstances(pl, n, capacity)
	dec := p.model.Encode(pl, 0, s.in, false)
	if d.Beam > 0 {
		plan.Keep(dec.Proj)
		plan.Keep(dec.Pointer)
		plan.Keep(dec.Graph)
	}
	s.routes = recordRoutes(pl, p.model, dec, d, n, seed)
	var err error
	if s.runner, err = run.CompileBeside(d.instead(n), routeBytes(rows, s.starts, n), pl, p.dev, p.store); err != nil {
		return nil, err
	}
	if err := s.runner.SetControl(evalControl(d.temperature(p.Config.Inference.DefaultTemperature))); err != nil {
		return nil, errors.Join(err, s.runner.Close())
	}
	s.x, s.y, s.demand = make([]float32, rows*(n+1)), make([]float32, rows*(n+1)), make([]int32, rows*(n+1))
	s.feature, s.shown = make([]float32, features*rows*(n+1)), make([]float32, batch)
	s.lengths, s.actions = make([]float32, rows*s.starts), make([]int32, rows*s.starts*maxSteps(n))
	if d.Beam > 0 {
		if s.beam, err = p.newBeam(s, d, dec); err != nil {
			return nil, errors.Join(err, s.runner.Close())
		}
	}
	return s, nil
}

// routeBytes is what the host keeps of routes that it reads from a device: actions and lengths.
func routeBytes(rows, starts, n int) int64 {
	return run.Product(4, int64(rows), int64(starts), int64(maxSteps(n)+1))
}

// features are what the policy reads of a node: x, y, the share of the capacity that it demands,
// and whether it is the depot.
const features = 4

// givenInstances are instances that the host hands over, with what the policy is to read of them.
func givenInstances(pl *plan.Plan, n int, capacity int32) model.Instances {
	return model.Instances{Capacity: capacity, PosX: pl.Rows("x", pl.B(), n+1), PosY: pl.Rows("y", pl.B(), n+1),
		Demand: pl.RowInts("demand", pl.B(), n+1), Feature: pl.Rows("feature", pl.B(), n+1, features)}
}

// Close gives back what the program holds.
func (s *Stepper) Close() error {
	err := s.runner.Close()
	if s.beam != nil {
		err = errors.Join(err, s.beam.runner.Close())
	}
	return err
}

// Solve is Policy.Solve for a problem of the size and capacity that the program was prepared for.
func (s *Stepper) Solve(ctx context.Context, prob *vrp.Problem) (vrp.Solution, float64, error) {
	if err := routable(prob); err != nil {
		return vrp.Solution{}, 0, fmt.Errorf("solve %s with a policy: %w", prob.Name, err)
	}
	if prob.N() != s.n || prob.Capacity != s.capacity {
		panic("routing: Stepper.Solve: the problem is of another size or capacity")
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

// routable says what keeps a policy from a problem.
func routable(prob *vrp.Problem) error {
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
	return prob.Plain()
}

// load hands up to a batch of problems over; the rows of those that are missing repeat the last
// one.
func (s *Stepper) load(problems []*vrp.Problem) error {
	each := s.sym * (s.n + 1)
	s.odd = false
	for i := range s.batch {
		prob := problems[min(i, len(problems)-1)]
		unitRows(prob, s.x[i*each:][:each], s.y[i*each:][:each], s.demand[i*each:][:each])
		s.shown[i] = s.trained.capacity(prob)
		s.odd = s.odd || s.shown[i] != float32(s.capacity)
	}
	return errors.Join(s.runner.WriteBatch(s.in.PosX, s.x), s.runner.WriteBatch(s.in.PosY, s.y), s.runner.WriteBatch(s.in.Demand, s.demand), s.show(false))
}

// show writes what the policy reads of the problems: demands as they are, or as it has seen demands
// in training.
func (s *Stepper) show(plain bool) error {
	each := s.sym * (s.n + 1)
	for i, by := range s.shown {
		if plain {
			by = float32(s.capacity)
		}
		for k := i * each; k < (i+1)*each; k++ {
			f := s.feature[features*k:][:features]
			f[0], f[1], f[2], f[3] = s.x[k], s.y[k], float32(s.demand[k])/by, 0
			if k%(s.n+1) == 0 {
				f[3] = 1
			}
		}
	}
	return s.runner.WriteBatch(s.in.Feature, s.feature)
}

// shares are the demands that a policy was trained on, as shares of the capacity.
type shares struct{ mean, most float64 }

func trainedShares(c *config.Config) shares {
	p := &c.Problem
	capacity := float64(p.VehicleCapacity)
	if p.CapacityRange[0] > 0 {
		capacity = float64(p.CapacityRange[0]) // the largest shares that it has seen
	}
	return shares{mean: float64(p.DemandRange[0]+p.DemandRange[1]) / 2 / capacity, most: float64(p.DemandRange[1]) / capacity}
}

// beyond is how far the mean demand may pass that of training, as a factor. Past it a policy's
// routes fall apart. It was chosen on six of CVRPLIB's X instances.
const beyond = 1.3

// capacity is what demands are divided by for the policy to see: the problem's own, unless its
// demands are larger shares of it than any in training and their mean is far past that of training.
// Then they are shown as smaller, the whole problem alike; what fits a vehicle is decided by the
// demands themselves.
func (s shares) capacity(p *vrp.Problem) float32 {
	var sum, most float64
	for _, d := range p.Demand {
		sum, most = sum+float64(d), max(most, float64(d))
	}
	capacity := float64(p.Capacity)
	if most <= s.most*capacity {
		return float32(capacity)
	}
	return float32(max(capacity, sum/float64(p.N())/(beyond*s.mean)))
}

// improve runs the program on the problems that were loaded and keeps the best routes of each,
// where they beat what is there. Sampled routes are drawn by the index of the first row. Problems
// whose demands are shown as smaller are routed as they are, too.
func (s *Stepper) improve(ctx context.Context, problems []*vrp.Problem, out []Routed, first uint64) error {
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
		return s.beam.search(ctx, s, problems, out)
	}
	return nil
}

// decode runs the program once.
func (s *Stepper) decode(ctx context.Context, problems []*vrp.Problem, out []Routed, first uint64) error {
	if err := errors.Join(ctx.Err(), s.runner.SetState(kernel.State{Instances: first})); err != nil {
		return err
	}
	if err := run.Replay(ctx, s.runner); err != nil {
		return err
	}
	if err := errors.Join(s.runner.ReadBatch(s.routes.Length, s.lengths), s.runner.ReadBatch(s.routes.Actions, s.actions)); err != nil {
		return err
	}
	steps, each := maxSteps(s.n), s.sym*s.starts
	for i, prob := range problems {
		if err := out[i].take(prob, s.actions[i*each*steps:][:each*steps], s.lengths[i*each:][:each]); err != nil {
			return fmt.Errorf("%s: %w", prob.Name, err)
		}
	}
	return nil
}

// Routed is a problem's best routes so far, judged by the validator, and their cost by its own
// metric.
type Routed struct {
	Solution vrp.Solution
	Cost     float64
}

// take picks the best of the routes. The device's lengths tell which where the metric is Euclid's;
// one that rounds, or that is another, is asked about each.
func (r *Routed) take(prob *vrp.Problem, actions []int32, lengths []float32) error {
	steps, best, cost := len(actions)/len(lengths), 0, 0.0
	for k := range lengths {
		if prob.Metric == vrp.Exact {
			if lengths[k] < lengths[best] {
				best = k
			}
			continue
		}
		if c := tourCost(prob, actions[k*steps:][:steps]); k == 0 || c < cost {
			best, cost = k, c
		}
	}
	sol := vrp.FromTour(actions[best*steps:][:steps])
	if err := vrp.Validate(prob, sol); err != nil {
		return fmt.Errorf("the policy's routes are invalid: %w", err)
	}
	if cost = prob.Cost(sol); r.Solution.Routes == nil || cost < r.Cost {
		r.Solution, r.Cost = sol, cost
	}
	return nil
}

// tourCost is Problem.Cost of a visit sequence that begins behind the depot and is filled up with
// it.
func tourCost(prob *vrp.Problem, tour []int32) (sum float64) {
	last := int32(0)
	for _, v := range tour {
		if v != last {
			sum += prob.Leg(int(last), int(v))
		}
		last = v
	}
	return sum
}

// unitRows writes the problem into the unit square, a row for each of the symmetries that the
// slices have room for.
func unitRows(p *vrp.Problem, x, y []float32, demand []int32) {
	nodes := len(p.X)
	px, py := p.Plane()
	minX, minY, side := unitFrame(p, px, py)
	for k := range len(x) / nodes {
		for j := range nodes {
			u, v := (px[j]-minX)/side, (py[j]-minY)/side
			if k&1 != 0 {
				u = 1 - u
			}
			if k&2 != 0 {
				v = 1 - v
			}
			if k&4 != 0 {
				u, v = v, u
			}
			x[k*nodes+j], y[k*nodes+j] = float32(u), float32(v)
		}
		copy(demand[k*nodes:], p.Demand)
	}
}

// leastSpread is how much of the unit square a problem must fill to be taken for one of it.
const leastSpread = 0.5

// unitFrame is the square that becomes the unit square: by the scale that a file of ours states,
// the unit square itself where the problem lies in it as those of a test set do, and else the
// smallest that holds the nodes.
func unitFrame(p *vrp.Problem, x, y []float64) (minX, minY, side float64) {
	if scale, ok := p.Scale(); ok {
		return 0, 0, float64(scale)
	}
	minX, maxX, minY, maxY := x[0], x[0], y[0], y[0]
	for j := range x {
		minX, maxX = min(minX, x[j]), max(maxX, x[j])
		minY, maxY = min(minY, y[j]), max(maxY, y[j])
	}
	side = max(maxX-minX, maxY-minY)
	switch {
	case side == 0:
		return minX, minY, 1 // every node in one place
	case minX >= 0 && minY >= 0 && maxX <= 1 && maxY <= 1 && side >= leastSpread:
		return 0, 0, 1
	}
	return minX, minY, side
}
