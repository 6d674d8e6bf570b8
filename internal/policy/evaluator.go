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

// EvalOptions say which instances are routed and how.
type EvalOptions struct {
	Source      vrp.Source // see SourceOf and Policy.Source
	First       uint64     // index of the first instance
	Count       int
	Decode      Decode
	Batch       int            // instances at a time, 0: chosen. Results do not depend on it
	Temperature float64        // of sampling
	Validate    bool           // the validator sees the chosen route of every instance
	KeepTours   bool           // return them
	Progress    func(done int) // may be nil
	World       *comm.World    // ranks that share the instances out; nil: this process is alone
	// ranks up to this many have batches of the same size: a card's kernels, and with them the last
	// bits of a length, go by the size
	Parts int
}

// Evaluation is the best route of every instance.
type Evaluation struct {
	Lengths []float64
	Tours   [][]int32 // visits from depot to depot, with KeepTours; a rank has those of its share
	// of an active search; nil: another decoder
	Iterations *Iterations
}

// Iterations are the fewest and the most that an active search made on a problem.
type Iterations struct {
	Fewest int `json:"iterations"`
	Most   int `json:"iterations_most"`
}

// String counts them for a person.
func (i *Iterations) String() string {
	if i.Fewest == i.Most {
		return fmt.Sprint(i.Most)
	}
	return fmt.Sprintf("%d to %d", i.Fewest, i.Most)
}

// Evaluator is a compiled evaluation of one source: the program can be run again after the
// weights have changed.
type Evaluator struct {
	o       EvalOptions
	rows    int // of a run: instances times symmetries
	starts  int
	steps   int
	routes  *plan.Routes
	runner  kernel.Runner
	batch   *vrp.Batch // the same instances, drawn on the host for the validator
	lengths []float32
	actions []int32
	tour    []int32
}

// NewEvaluator compiles the evaluation of a network whose weights are in the store.
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
	if e.runner, err = run.CompileBeside(o.Decode.fewer(n), routeBytes(e.rows, e.starts, e.steps), p, dev, store); err != nil {
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

// FitsHost asks whether the host can keep what an evaluation returns.
func FitsHost(o EvalOptions) error {
	each := int64(8 + 8) // a length, and its reference
	if o.KeepTours {
		each += 24 + 4*int64(1+rulesOf(o.Source).MaxSteps(o.Source.N))
	}
	return run.FitsHost("count", "the host", fmt.Sprintf("keeping the results of %d instances", o.Count), o.Count, run.Product(each, int64(o.Count)))
}

// Run routes all instances. It heeds ctx, within a batch too, and then returns those that are done
// beside the error; ranks stop together, between two batches, with none.
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
		// Rows are numbered from the first instance under its first symmetry.
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

// take reads a batch's routes and picks the best of each instance; those from `to` on are idle.
func (e *Evaluator) take(out *Evaluation, done, to int, first uint64) error {
	if err := e.runner.ReadBatch(e.routes.Length, e.lengths); err != nil {
		return err
	}
	if e.o.Validate || e.o.KeepTours {
		if err := e.runner.ReadBatch(e.routes.Actions, e.actions); err != nil {
			return err
		}
	}
	if e.o.Validate {
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
		if e.o.Validate {
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

// NotFinite is the end of an evaluation whose network computes no numbers: its training diverged.
type NotFinite struct {
	Op string // the first op whose result is not finite
}

func (e *NotFinite) Error() string {
	return fmt.Sprintf("the policy's results are not finite, first in %s: its training diverged", e.Op)
}

// invalid is what is wrong where the validator refuses a route: the network, if its results are no
// numbers, or else the route.
func (e *Evaluator) invalid(instance uint64, refusal error) error {
	if op, err := e.runner.FirstBad(); err == nil && op != "" {
		return &NotFinite{Op: op}
	}
	return fmt.Errorf("instance %d: the policy's route is invalid: %w", instance, refusal)
}

// lengthTolerance covers float32 sums of up to a few thousand legs in another order, and the
// rounding of 1-x under a symmetry.
const lengthTolerance = 1e-4

// validate asks the validator about a route, and whether it is as long as the device says.
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

// Options are what the evaluator was made for.
func (e *Evaluator) Options() EvalOptions { return e.o }

// Memory is what the program holds on its device.
func (e *Evaluator) Memory() int64 { return e.runner.Memory() }

// Close gives back what the program holds.
func (e *Evaluator) Close() error { return e.runner.Close() }
