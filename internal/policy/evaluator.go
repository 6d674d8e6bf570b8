package policy

import (
	"context"
	"fmt"
	"math"
	"slices"

	"haul/internal/comm"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/run"
	"haul/internal/vrp"
)

// EvalOptions configure an evaluation on generated instances.
type EvalOptions struct {
	Source      vrp.Source // see SourceOf and Policy.Source
	First       uint64     // index of the first instance
	Count       int
	Decode      Decode
	Batch       int            // instances at a time; 0: chosen by size. Results do not depend on it
	Temperature float64        // of sampling
	Validate    bool           // check the best route of every instance by the validator
	KeepTours   bool           // store Tours in the result
	Progress    func(done int) // may be nil
	World       *comm.World    // ranks that share the instances; nil: a single process
	// Batches have the same size for all numbers of ranks up to this. A GPU chooses its kernels by
	// the size of the batch, and with them the last bits of a length.
	Parts int
}

// Evaluation holds the best solution of every instance.
type Evaluation struct {
	Lengths []float64
	Tours   [][]int32 // visits from depot to depot, if KeepTours; on each rank those of its own instances
	// of an active search; nil for other decoders
	Iterations *Iterations
}

// Iterations holds the least and the greatest number of an active search's iterations on a problem.
type Iterations struct {
	Fewest int `json:"iterations"`
	Most   int `json:"iterations_most"`
}

// String formats the numbers for a user.
func (i *Iterations) String() string {
	if i.Fewest == i.Most {
		return fmt.Sprint(i.Most)
	}
	return fmt.Sprintf("%d to %d", i.Fewest, i.Most)
}

// Evaluator is a compiled evaluation on one source of instances. Run can be called again after the
// weights have changed.
type Evaluator struct {
	o       EvalOptions
	rows    int // rows of a program run: instances times symmetries
	starts  int
	steps   int
	routes  *plan.Routes
	runner  kernel.Runner
	batch   *vrp.Batch // the same instances, generated on the host for the validator
	lengths []float32
	actions []int32
	tour    []int32
}

// NewEvaluator compiles the evaluation of a network with the weights in store.
func NewEvaluator(dev kernel.Device, m *model.Network, store kernel.Store, o EvalOptions) (*Evaluator, error) {
	if err := o.Source.Check(); err != nil {
		return nil, err
	}
	if o.Count < 1 {
		return nil, fmt.Errorf("evaluate: count is %d: at least 1 is needed", o.Count)
	}
	n, sym := o.Source.N, o.Decode.symmetries()
	if err := FitsHost(o); err != nil {
		return nil, err
	}
	e := &Evaluator{o: o, starts: o.Decode.starts(n), steps: m.Rules().MaxSteps(n)}
	if o.Batch < 1 {
		o.Batch = evalBatch(n, m.Rules(), o.Decode)
	}
	from, to := o.World.Cut(o.Count)
	if o.Parts > 1 {
		e.rows = max(1, min(o.Batch, o.Count/o.Parts)) * sym
	} else {
		e.rows = max(1, min(o.Batch, to-from)) * sym
	}
	p := plan.New("evaluate", dev, e.rows, nodesOf(o.Source), m.Layout())
	in := RecordInstances(p, o.Source, sym, [2]int{})
	e.routes = recordRoutes(p, m, m.Encode(p, 0, in, false), o.Decode, n, o.Source.Seed)
	var err error
	if e.runner, err = run.CompileWithHost(o.Decode.fewer(n), routeBytes(e.rows, e.starts, e.steps), p, dev, store); err != nil {
		return nil, err
	}
	if err := e.runner.SetControl(evalControl(o.Decode.temperature(o.Temperature))); err != nil {
		return nil, err
	}
	e.batch = vrp.NewBatch(e.rows/sym, n, o.Source.Capacity)
	e.lengths = make([]float32, e.rows*e.starts)
	e.actions = make([]int32, e.rows*e.starts*e.steps)
	e.tour = make([]int32, 1+e.steps)
	return e, nil
}

// FitsHost returns an error if the results of an evaluation do not fit into host memory.
func FitsHost(o EvalOptions) error {
	each := int64(8 + 8) // a length, and its reference
	if o.KeepTours {
		each += 24 + 4*int64(1+rulesOf(o.Source).MaxSteps(o.Source.N))
	}
	return run.FitsHost("count", "the host", fmt.Sprintf("keeping the results of %d instances", o.Count), o.Count, run.Product(each, int64(o.Count)))
}

// Run routes all instances. If ctx ends, also within a batch, it returns the results of the first
// instances and the error. Several ranks stop together between batches, without results.
func (e *Evaluator) Run(ctx context.Context) (*Evaluation, error) {
	sym := e.o.Decode.symmetries()
	out := &Evaluation{Lengths: make([]float64, e.o.Count)}
	if e.o.KeepTours {
		out.Tours = make([][]int32, e.o.Count)
	}
	from, to := e.o.World.Cut(e.o.Count)
	within := ctx
	if e.o.World != nil {
		within = context.Background()
	}
	stopped, done := false, from
	for done < to {
		if stopped = ctx.Err() != nil || e.o.World.Asked(); stopped {
			break
		}
		first := e.o.First + uint64(done)
		// Rows are numbered from the first symmetry of the first instance.
		if err := e.runner.SetState(kernel.State{Instances: first * uint64(sym)}); err != nil {
			return nil, err
		}
		if err := run.Replay(within, e.runner); err != nil {
			if stopped = within.Err() != nil; stopped {
				break
			}
			return nil, err
		}
		if err := e.take(out, done, to, first); err != nil {
			return nil, err
		}
		done = min(done+e.rows/sym, to)
		if e.o.Progress != nil {
			e.o.Progress((done - from) * e.o.World.Ranks())
		}
	}
	if e.o.World == nil && stopped {
		if out.Lengths = out.Lengths[:done]; e.o.KeepTours {
			out.Tours = out.Tours[:done]
		}
		return out, ctx.Err()
	}
	return out, e.o.World.Collect(out.Lengths, slices.Clone(out.Lengths[from:to]), stopped)
}

// take reads a batch's routes and selects the best of each instance. Instances from `to` on are
// padding.
func (e *Evaluator) take(out *Evaluation, done, to int, first uint64) error {
	if err := e.runner.ReadBatch(e.routes.Length, e.lengths); err != nil {
		return err
	}
	if e.o.Validate || e.o.KeepTours {
		if err := e.runner.ReadBatch(e.routes.Actions, e.actions); err != nil {
			return err
		}
	}
	file := e.o.Source.File != ""
	if e.o.Validate && !file {
		e.o.Source.Fill(e.batch, first)
	}
	each := e.o.Decode.symmetries() * e.starts
	for i := range min(e.batch.B, to-done) {
		best := i * each
		for r := best + 1; r < (i+1)*each; r++ {
			if e.lengths[r] < e.lengths[best] {
				best = r
			}
		}
		out.Lengths[done+i] = float64(e.lengths[best])
		copy(e.tour[1:], e.actions[best*e.steps:][:e.steps])
		if e.o.Validate && file {
			sym := uint64(e.o.Decode.symmetries())
			row := (first+uint64(i))*sym + uint64(best-i*each)/uint64(e.starts)
			if err := validateFile(e.o.Source, int(sym), row, e.tour[1:], e.lengths[best]); err != nil {
				return e.invalid(first+uint64(i), err)
			}
		} else if e.o.Validate {
			if err := validate(e.batch, i, e.tour, e.lengths[best]); err != nil {
				return e.invalid(first+uint64(i), err)
			}
		}
		if e.o.KeepTours {
			out.Tours[done+i] = append([]int32(nil), e.tour...)
		}
	}
	return nil
}

// NotFinite is the error of an evaluation whose network computes NaN or infinity: training
// diverged.
type NotFinite struct {
	Op string // the first op whose result is not finite
}

func (e *NotFinite) Error() string {
	return fmt.Sprintf("the policy's results are not finite, first in %s: its training diverged", e.Op)
}

// invalid explains why the validator refused a route: the network's results are not finite, or else
// the route itself is wrong.
func (e *Evaluator) invalid(instance uint64, refusal error) error {
	if op, err := e.runner.FirstBad(); err == nil && op != "" {
		return &NotFinite{Op: op}
	}
	return fmt.Errorf("instance %d: the policy's route is invalid: %w", instance, refusal)
}

// lengthTolerance allows for float32 sums of up to a few thousand edges in another order, and for
// the rounding of 1-x in a symmetry.
const lengthTolerance = 1e-4

// validate checks a route, and its length on the device, against the validator.
func validate(b *vrp.Batch, i int, tour []int32, length float32) error {
	if err := b.Validate(i, tour); err != nil {
		return err
	}
	host := b.Cost(i, tour)
	if d := math.Abs(float64(host - length)); !(d <= lengthTolerance*(1+float64(host))) {
		return fmt.Errorf("the device states length %g, its legs add up to %g", length, host)
	}
	return nil
}

// Options returns the options of NewEvaluator.
func (e *Evaluator) Options() EvalOptions { return e.o }

// Memory returns the bytes of the program on its device.
func (e *Evaluator) Memory() int64 { return e.runner.Memory() }

// Close frees the program.
func (e *Evaluator) Close() error { return e.runner.Close() }
