package policy

import (
	"context"
	"errors"
	"slices"
	"time"

	"haul/internal/kernel"
	"haul/internal/plan"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/vrp"
)

// Efficient active search (Hottung et al. 2022, https://arxiv.org/abs/2106.05126, the variant that
// learns embeddings). The encoder reads a problem once; the embeddings of its nodes are then
// parameters of that problem. Each iteration samples routes from every start. It updates the
// embeddings by the policy gradient that training would pass to the encoder, and by the gradient of
// the log-probability of the best routes so far. The policy's weights do not change.
//
// Rows share no parameter and no sum, and the samples of a row are a function of its problem's
// index and the iteration: routes depend neither on the batch nor on the number of workers.

// Settings of the optimizer. The rate and the weight were chosen on a few instances of 50 customers
// with cvrp50; docs/policies.md lists other values that were tried.
const (
	activeRate      = 0.001
	activeIncumbent = 0.1 // weight of the best routes' log-probability; lengths are in the unit square
	activeBeta1     = 0.9
	activeBeta2     = 0.999
	activeEps       = 1e-10 // far below the gradients' magnitude
)

// activeSearch improves the first routes of a batch.
type activeSearch struct {
	iterations int // 0: activeIterations, or as many as the time allows
	layout     kernel.Layout
	table      int // index of the parameter that holds the embeddings of all rows
	store      kernel.Store
	runner     kernel.Runner

	in                 kernel.Instances
	index              *kernel.Tensor
	routes             *plan.Routes
	incumbent, teaches *kernel.Tensor // actions of the best routes so far, and their weights

	flat, zeros, embeddings, lengths []float32
	actions, best                    []int32
	kept                             []*searchRecombiner // by problem; empty unless routes are recombined
}

// activeBytes limits the memory of a batch's embeddings, with their gradients and moments.
const activeBytes = 512 << 20

// activeBatch returns how many problems of n customers are searched at a time.
func activeBatch(p *Policy, n int, d Decode) int {
	var l kernel.Layout
	l.Add("embeddings", kernel.InitZero, 1, d.symmetries()*p.model.Rules().Nodes(n), p.model.Width())
	each := 16 * int64(l.Len)
	if dev, ok := p.dev.(kernel.Sizer); ok {
		each = dev.StoreMemory(&l, true)
	}
	return int(max(1, activeBytes/each))
}

// newActive compiles an iteration for the rows of a batch. The batch must keep its embeddings.
func newActive(p *Policy, s *batch, d Decode, seed uint64) (a *activeSearch, err error) {
	a = &activeSearch{iterations: d.Iterations}
	rows, nodes, width, steps := s.size*s.sym, s.count, p.model.Width(), s.steps
	pl := a.record(p, s, d, seed)
	if a.store, err = run.NewStore(p.dev, &a.layout, true); err != nil {
		return nil, err
	}
	if a.runner, err = run.CompileWithHost(d.instead(s.n), routeBytes(rows, s.starts, s.steps), pl, p.dev, a.store, p.store); err != nil {
		return nil, errors.Join(err, a.store.Close())
	}
	index := make([]int32, rows*nodes)
	for i := range index {
		index[i] = int32(i)
	}
	weight := make([]float32, rows)
	for i := range weight {
		weight[i] = -activeIncumbent
	}
	control := evalControl(d.temperature(p.Config.Inference.DefaultTemperature))
	control.LearningRate = activeRate
	if err := errors.Join(a.runner.SetControl(control), a.runner.WriteBatch(a.index, index), a.runner.WriteBatch(a.teaches, weight)); err != nil {
		return nil, errors.Join(err, a.close())
	}
	a.flat, a.zeros, a.embeddings = make([]float32, a.layout.Len), make([]float32, a.layout.Len), make([]float32, rows*nodes*width)
	a.lengths, a.actions, a.best = make([]float32, rows*s.starts), make([]int32, rows*s.starts*steps), make([]int32, rows*steps)
	return a, nil
}

// record records an iteration: sample routes, compare them, add the gradient of the best routes so
// far, and update the embeddings.
func (a *activeSearch) record(p *Policy, s *batch, d Decode, seed uint64) *plan.Plan {
	rows, nodes, width, steps := s.size*s.sym, s.count, p.model.Width(), s.steps
	a.table = a.layout.Add("embeddings", kernel.InitZero, width, rows*nodes, width)
	pl := plan.New("active search", p.dev, rows, nodes, &a.layout)
	pl.Frozen(p.model.Layout())
	pl.Apart()
	a.in = kernel.Instances{Rules: s.in.Rules, PosX: pl.Rows("x", pl.B(), nodes), PosY: pl.Rows("y", pl.B(), nodes),
		Nodes: pl.RowInts("nodes", pl.B(), s.in.Nodes.Cols())}
	a.index = pl.RowInts("index", pl.B(), nodes, 1)
	h := pl.Embed("embeddings", a.index, pl.Weight(0, a.table))

	// A decoder's gradient belongs to one op, so sampled routes and the best routes have separate
	// projections.
	drawn, taught := p.model.Project(pl, 1, h, a.in), p.model.Project(pl, 1, h, a.in)
	pl.Unread(drawn.Context)
	pl.Unread(drawn.PairContext)
	a.routes = recordRoutes(pl, p.model, drawn, d, s.n, seed)
	adv, _ := pl.Advantage(a.routes, kernel.SharedMean, nil, 0, plan.Comparison{})
	pl.PolicyGradient(a.routes, adv)

	a.incumbent, a.teaches = pl.RowInts("incumbent", pl.B(), 1, steps), pl.Rows("incumbent.weight", pl.B(), 1)
	again := pl.Rollout("taught", taught, plan.RolloutSpec{Choice: kernel.Replay, Starts: 1, MaxStep: steps, Actions: a.incumbent}, rng.Actions)
	pl.PolicyGradient(again, a.teaches)
	pl.Backward()
	pl.Optimize(&kernel.AdamW{Beta1: activeBeta1, Beta2: activeBeta2, Eps: activeEps}, 1)
	return pl
}

// search improves the batch's first routes, for the given number of iterations or until a time. If
// ctx ends, it stops, and the routes found so far stay in out.
func (a *activeSearch) search(ctx context.Context, s *batch, problems []*vrp.Problem, out []Routed, first uint64, until time.Time, report func(share float64)) error {
	if err := a.begin(s); err != nil {
		return err
	}
	each := s.sym * s.starts
	shortest := make([]float32, len(problems))
	for i := range shortest {
		shortest[i] = slices.Min(s.lengths[i*each:][:each])
	}
	begun, total := time.Now(), a.total(!until.IsZero())
	a.remember(s, len(problems))
	a.keep(s, problems, out)
	done := 0
	defer func() {
		for i := range problems {
			out[i].Iterations = done
		}
	}()
	for k := 1; k <= total; k++ {
		if ctx.Err() != nil || !until.IsZero() && !time.Now().Before(until) {
			break
		}
		if err := a.step(ctx, first+uint64(k)<<40); err != nil {
			if ctx.Err() != nil {
				break
			}
			return err
		}
		if err := a.take(s, problems, out, shortest, k%keptEvery == 0); err != nil {
			return err
		}
		done = k
		if report != nil {
			share := float64(k) / float64(total)
			if !until.IsZero() {
				share = max(share, float64(time.Since(begun))/float64(until.Sub(begun)))
			}
			report(min(1, share))
		}
	}
	a.finish(s, problems, out)
	m, err := a.runner.TakeMetrics()
	if err == nil && m.BadStep > 0 {
		op, _ := a.runner.FirstBad()
		err = &NotFinite{Op: op}
	}
	return err
}

// total returns the largest number of iterations.
func (a *activeSearch) total(timed bool) int {
	switch {
	case a.iterations > 0:
		return a.iterations
	case timed:
		return maxIterations
	}
	return activeIterations
}

// begin loads the encoder's embeddings of the batch's problems and resets all state of an earlier
// batch.
func (a *activeSearch) begin(s *batch) error {
	if err := s.runner.ReadBatch(s.embeddings, a.embeddings); err != nil {
		return err
	}
	clear(a.flat)
	copy(a.flat[a.layout.Params[a.table].Offset:], a.embeddings)
	return errors.Join(a.store.WriteWeights(a.flat), a.store.WriteMoments(a.zeros, a.zeros), a.runner.SetState(kernel.State{}),
		a.runner.WriteBatch(a.in.PosX, s.x), a.runner.WriteBatch(a.in.PosY, s.y), a.runner.WriteBatch(a.in.Nodes, s.nodes))
}

// step runs an iteration. Samples depend on the index of its first row.
func (a *activeSearch) step(ctx context.Context, first uint64) error {
	if err := a.runner.WriteBatch(a.incumbent, a.best); err != nil {
		return err
	}
	state, err := a.runner.State()
	if err != nil {
		return err
	}
	state.Instances = first
	if err := a.runner.SetState(state); err != nil {
		return err
	}
	return run.Replay(ctx, a.runner)
}

// take stores routes that became shorter in out. It reads the actions, which are many, only if some
// route may be better: the device's lengths decide that unless a problem has another metric. With
// deep, the best routes are also recombined with all stored routes.
func (a *activeSearch) take(s *batch, problems []*vrp.Problem, out []Routed, shortest []float32, deep bool) error {
	if err := a.runner.ReadBatch(a.routes.Length, a.lengths); err != nil {
		return err
	}
	each, of := s.sym*s.starts, make([]bool, len(problems))
	for i, prob := range problems {
		best := slices.Min(a.lengths[i*each:][:each])
		of[i] = s.join || prob.Metric != vrp.Exact || best < shortest[i]
		shortest[i] = min(shortest[i], best)
	}
	if !slices.Contains(of, true) {
		return nil
	}
	if err := a.runner.ReadBatch(a.routes.Actions, a.actions); err != nil {
		return err
	}
	err := s.takeEach(problems, a.actions, a.lengths, of, func(i int, actions []int32, lengths []float32) ([]int32, error) {
		if !s.join {
			return out[i].takeBest(problems[i], actions, lengths)
		}
		return out[i].takeMore(a.kept[i], actions, lengths, deep)
	})
	if err != nil {
		return err
	}
	a.remember(s, len(problems))
	return nil
}

// keep starts to store the routes of each problem for later recombination.
func (a *activeSearch) keep(s *batch, problems []*vrp.Problem, out []Routed) {
	if !s.join {
		return
	}
	each := s.sym * s.starts
	a.kept = make([]*searchRecombiner, len(problems))
	eachRow(len(problems), func(i int) bool {
		a.kept[i] = newSearchRecombiner(problems[i], out[i].Solution, s.actions[i*each*s.steps:][:each*s.steps], each)
		return false
	})
}

// finish recombines each problem's best routes with all stored routes a last time.
func (a *activeSearch) finish(s *batch, problems []*vrp.Problem, out []Routed) {
	eachRow(len(a.kept), func(i int) bool {
		if a.kept[i].improve() {
			out[i].takeKept(a.kept[i], s.steps)
		}
		return false
	})
	a.kept = nil
}

// remember writes the best routes of each problem into all of its rows: symmetries do not change
// the order of nodes. Rows without a problem repeat the last problem.
func (a *activeSearch) remember(s *batch, problems int) {
	for row := range s.size * s.sym {
		copy(a.best[row*s.steps:][:s.steps], s.best[min(row/s.sym, problems-1)*s.steps:])
	}
}

func (a *activeSearch) close() error { return errors.Join(a.runner.Close(), a.store.Close()) }
