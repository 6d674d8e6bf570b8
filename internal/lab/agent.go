package lab

import (
	"context"
	"errors"

	"haul/internal/kernel"
	"haul/internal/kernel/host"
	"haul/internal/loader"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
	"haul/internal/world/grid"
)

// agent is a small in-context agent and the histories it learns from. Network and data follow
// report 004, at a size at which experiments take seconds.
type agent struct {
	model   *model.AD
	spec    kernel.RegionSpec
	history []int32
}

// newAgent returns an agent with one layer, for sequences of two regions of shortest to longest
// transitions, in a room of 5×5 cells with episodes of 10 steps.
func newAgent(shortest, longest int) (*agent, error) {
	room := grid.Room{Size: 5, Horizon: 10}
	spec := model.Transitions(kernel.RegionSpec{Streams: 200, Steps: 200, Horizon: room.Horizon, Tokens: 2*longest + 4, Compressed: true, Shortest: shortest, Longest: longest, Ahead: 4, Seed: 42, Purpose: rng.Regions}, 2)
	m, err := model.NewAD(model.ADConfig{Width: 32, Heads: 4, Layers: 1, Feed: 128, Positions: spec.Tokens, Observed: model.Sizes(room.Size, room.Size), Actions: grid.NumActions, Rewards: 2})
	if err != nil {
		return nil, err
	}
	return &agent{m, spec, walks(&spec, room)}, spec.Check()
}

// walks returns histories of agents that learn: the fraction of random steps falls over time, and
// other steps lead to the goal.
func walks(s *kernel.RegionSpec, room grid.Room) []int32 {
	out := make([]int32, s.Streams*s.Steps)
	goals := room.Cells()
	for i := range s.Streams {
		goal, cell := goals[rng.Below(rng.At(s.Seed, uint64(i), 0, rng.Learner)[0], uint32(len(goals)))], room.Start()
		for t := range s.Steps {
			if t%s.Horizon == 0 {
				cell = room.Start()
			}
			w := rng.At(s.Seed, uint64(i), uint32(1+t), rng.Learner)
			action := uint8(rng.Below(w[0], grid.NumActions))
			if int(rng.Below(w[1], uint32(s.Steps))) < t {
				action = grid.Towards(cell, goal)
			}
			next, reward := room.Move(cell, action), uint8(0)
			if next == goal {
				reward = 1
			}
			out[i*s.Steps+t] = grid.MakeStep(cell, action, reward).Word()
			cell = next
		}
	}
	return out
}

// store returns a new store with the agent's initial weights.
func (a *agent) store(dev kernel.Device) (kernel.Store, error) {
	s, err := dev.NewStore(a.model.Layout(), true)
	if err != nil {
		return nil, err
	}
	return s, s.WriteWeights(model.Initial(a.model.Layout(), a.spec.Seed))
}

// agentRun is a compiled step. The host writes its rows.
type agentRun struct {
	runner kernel.Runner
	in     model.Sequences
	store  kernel.Store // closed with the run; nil: the caller owns the store
}

// close frees the runner and the store.
func (r *agentRun) close() error {
	err := r.runner.Close()
	if r.store != nil {
		err = errors.Join(err, r.store.Close())
	}
	return err
}

// compile records forward pass, backward pass and update over rows of t tokens; without learn only
// the loss.
func (a *agent) compile(dev kernel.Device, store kernel.Store, rows, t int, learn bool) (*agentRun, error) {
	p := plan.New("agent", dev, rows, t, a.model.Layout())
	in := model.Sequences{Index: p.RowInts("index", p.B(), t, model.TokenFields(2)), Labels: p.RowInts("labels", p.B(), t, 2), First: p.RowInts("first", p.B(), t)}
	sums := p.CrossEntropy("loss", a.model.Encode(p, in, learn), in.Labels, a.model.Columns(), 0, learn)
	if learn {
		p.Backward()
		p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8}, 1)
	}
	p.TallyHeads(sums, a.model.Heads()...)
	r, err := p.Compile(dev, store)
	return &agentRun{runner: r, in: in}, err
}

// write copies a slab's rows to the device.
func (r *agentRun) write(s *kernel.Slab) error {
	return errors.Join(r.runner.WriteBatch(r.in.Index, s.Ints[0]), r.runner.WriteBatch(r.in.Labels, s.Ints[1]), r.runner.WriteBatch(r.in.First, s.Ints[2]))
}

// loss runs a step and returns the mean loss of an action.
func (r *agentRun) loss() (float64, error) {
	if err := r.runner.Run(); err != nil {
		return 0, err
	}
	m, err := r.runner.TakeMetrics()
	head := plan.HeadOf(m, model.HeadAction)
	return head.Loss / float64(max(1, head.Labels)), err
}

// feed writes batches of rows and calls run after each.
func (a *agent) feed(ctx context.Context, r *agentRun, purpose rng.Purpose, rows, batches int, run func() error) (err error) {
	spec := a.spec
	spec.Purpose = purpose
	fill, err := host.Fill(spec, a.history)
	if err != nil {
		return err
	}
	source, err := loader.New(loader.Options{Fill: fill, Row: spec.Words(), Batch: rows, Slabs: loader.NewSlabs(spec.Words(), rows, 1)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	for range batches {
		s, err := source.Next(ctx)
		if err != nil {
			return err
		}
		if err := r.write(s); err != nil {
			return err
		}
		if err := run(); err != nil {
			return err
		}
		source.Return(s)
	}
	return nil
}
