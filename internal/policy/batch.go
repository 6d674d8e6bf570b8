package policy

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
	"haul/internal/plan"
	"haul/internal/run"
	"haul/internal/vrp"
)

// batch is the program that decodes given problems of one size and capacity, with a row for each
// symmetry of a problem, and its buffers on the host. One goroutine may use it at a time.
type batch struct {
	n        int
	count    int // nodes of a problem, depots included
	steps    int // the largest number of actions of a solution
	capacity int32
	size     int // number of problems of a run
	sym      int
	starts   int
	join     bool // recombine routes of different solutions
	in       kernel.Instances
	decoder  kernel.Decoder // the network's projections of the problems
	// the encoder's embeddings of the problems; kept for an active search
	embeddings *kernel.Tensor
	best       []int32 // actions of the best solution of each problem
	routes     *plan.Routes
	runner     kernel.Runner
	trained    shares
	x, y       []float32
	nodes      []int32 // kernel.Instances.Nodes
	feature    []float32
	divisors   []float32 // by problem: what demands are divided by in the features
	scaled     bool      // some divisor is not the capacity
	lengths    []float32
	actions    []int32
}

// newBatch compiles the program; seed is the seed of sampled routes.
func newBatch(p *Policy, n int, capacity int32, size int, d Decode, seed uint64) (*batch, error) {
	if n < 1 {
		return nil, errors.New("it has no customers")
	}
	set := p.model.Rules()
	s := &batch{n: n, count: set.Nodes(n), steps: set.MaxSteps(n), capacity: capacity, size: size, sym: d.symmetries(), starts: d.starts(n), join: d.Join, trained: trainedShares(p.Config)}
	rows := size * s.sym
	pl := plan.New("solve", p.dev, rows, s.count, p.model.Layout())
	s.in = pl.Given(kernel.Rules{Set: set, Capacity: capacity}, s.count)
	s.embeddings = p.model.Embed(pl, 0, s.in, false)
	s.decoder = p.model.Project(pl, 0, s.embeddings, s.in)
	if d.Active {
		plan.Keep(s.embeddings)
	}
	if d.Beam > 0 {
		plan.Keep(s.decoder.Proj)
		plan.Keep(s.decoder.Pointer)
		plan.Keep(s.decoder.Graph)
	}
	s.routes = recordRoutes(pl, p.model, s.decoder, d, n, seed)
	var err error
	if s.runner, err = run.CompileWithHost(d.instead(n), routeBytes(rows, s.starts, s.steps), pl, p.dev, p.store); err != nil {
		return nil, err
	}
	if err := s.runner.SetControl(evalControl(d.temperature(p.Config.Inference.DefaultTemperature))); err != nil {
		return nil, errors.Join(err, s.runner.Close())
	}
	s.x, s.y, s.nodes = make([]float32, rows*s.count), make([]float32, rows*s.count), make([]int32, rows*s.in.Nodes.Cols())
	s.feature, s.divisors = make([]float32, rows*s.count*s.in.Feature.Cols()), make([]float32, size)
	s.lengths, s.actions = make([]float32, rows*s.starts), make([]int32, rows*s.starts*s.steps)
	s.best = make([]int32, size*s.steps)
	return s, nil
}

// load writes at most `size` problems to the device. Rows without a problem repeat the last one.
func (s *batch) load(problems []*vrp.Problem) error {
	each, words := s.sym*s.count, s.sym*s.in.Nodes.Cols()
	s.scaled = false
	for i := range s.size {
		prob := problems[min(i, len(problems)-1)]
		unitRows(prob, s.in.Set, s.x[i*each:][:each], s.y[i*each:][:each], s.nodes[i*words:][:words])
		s.divisors[i] = s.trained.capacity(prob)
		s.scaled = s.scaled || s.divisors[i] != float32(s.capacity)
	}
	return errors.Join(s.runner.WriteBatch(s.in.PosX, s.x), s.runner.WriteBatch(s.in.PosY, s.y), s.runner.WriteBatch(s.in.Nodes, s.nodes), s.writeFeatures(false))
}

// writeFeatures writes the policy's features of the problems. If plain, demands are divided by the
// capacity, else by divisors, which brings them into the range of training.
func (s *batch) writeFeatures(plain bool) error {
	n, wide := s.count, s.in.Feature.Cols()
	for i, by := range s.divisors {
		if plain {
			by = float32(s.capacity)
		}
		for row := i * s.sym; row < (i+1)*s.sym; row++ {
			f := reference.Matrix[float32]{Data: s.feature[row*n*wide:][:n*wide], Rows: n, Cols: wide, Stride: wide}
			reference.Features(f, s.x[row*n:][:n], s.y[row*n:][:n], s.nodes[row*s.in.Nodes.Cols():], s.in.Set, by)
		}
	}
	return s.runner.WriteBatch(s.in.Feature, s.feature)
}

// decode runs the program on the loaded problems and stores routes in out that are better than
// those in out. Samples depend on the index of the first row.
func (s *batch) decode(ctx context.Context, problems []*vrp.Problem, out []Routed, first uint64) error {
	if err := errors.Join(ctx.Err(), s.runner.SetState(kernel.State{Instances: first})); err != nil {
		return err
	}
	if err := run.Replay(ctx, s.runner); err != nil {
		return err
	}
	if err := errors.Join(s.runner.ReadBatch(s.routes.Length, s.lengths), s.runner.ReadBatch(s.routes.Actions, s.actions)); err != nil {
		return err
	}
	return s.takeAll(problems, out, s.actions, s.lengths, nil)
}

// takeAll stores the best routes of each problem in out if they are better than those in out. It
// skips problem i if of[i] is false; nil: none. Problems are divided among the cores, because
// recombination is slow.
func (s *batch) takeAll(problems []*vrp.Problem, out []Routed, actions []int32, lengths []float32, of []bool) error {
	take := (*Routed).takeBest
	if s.join {
		take = (*Routed).takeRecombined
	}
	return s.takeEach(problems, actions, lengths, of, func(i int, actions []int32, lengths []float32) ([]int32, error) {
		return take(&out[i], problems[i], actions, lengths)
	})
}

// takeEach is takeAll with a function that stores the routes of problem i. The function returns the
// actions of the stored routes, nil if it stored none.
func (s *batch) takeEach(problems []*vrp.Problem, actions []int32, lengths []float32, of []bool, take func(i int, actions []int32, lengths []float32) ([]int32, error)) error {
	steps, each := s.steps, s.sym*s.starts
	failed := make([]error, len(problems))
	eachRow(len(problems), func(i int) bool {
		if of != nil && !of[i] {
			return false
		}
		taken, err := take(i, actions[i*each*steps:][:each*steps], lengths[i*each:][:each])
		if err != nil {
			failed[i] = fmt.Errorf("%s: %w", problems[i].Name, err)
		}
		copy(s.best[i*steps:][:steps], taken)
		return false
	})
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// eachRow calls do for every row, on all cores, and reports whether any call returned true.
func eachRow(rows int, do func(row int) bool) bool {
	workers := min(runtime.GOMAXPROCS(0), rows)
	said := make([]bool, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for row := w; row < rows; row += workers {
				if do(row) {
					said[w] = true
				}
			}
		})
	}
	wg.Wait()
	return slices.Contains(said, true)
}
