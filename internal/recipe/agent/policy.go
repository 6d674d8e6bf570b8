package agent

import (
	"context"
	"errors"
	"fmt"

	"haul/internal/comm"
	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/run"
	"haul/internal/world"
)

// Agent is a trained in-context agent on a device.
type Agent struct {
	Config    *config.AD // settings of its training
	World     world.World
	Iteration int // number of updates
	learned   []string
	dev       kernel.Device
	model     *model.AD
	store     kernel.Store
}

// Load reads a checkpoint's agent onto a device.
func Load(dev kernel.Device, path string) (*Agent, error) {
	ck, at, err := readCheckpoint(path)
	if err != nil {
		return nil, err
	}
	return load(dev, ck, at)
}

// loadShared loads like Load on all ranks. Only rank 0 reads the file.
func loadShared(w *comm.World, dev kernel.Device, path string) (*Agent, error) {
	ck, err := run.LoadShared(w, path, Name)
	if err != nil {
		return nil, err
	}
	at := new(state)
	if err := ck.State(at); err != nil {
		return nil, err
	}
	return load(dev, ck, at)
}

// readCheckpoint reads a checkpoint and its state, without using a device.
func readCheckpoint(path string) (*run.Checkpoint, *state, error) {
	ck, err := run.Load(path, Name)
	if err != nil {
		return nil, nil, err
	}
	at := new(state)
	if err := ck.State(at); err != nil {
		return nil, nil, err
	}
	if _, err := at.world(); err != nil {
		return nil, nil, fmt.Errorf("load checkpoint %s: its state is broken: %w", path, err)
	}
	return ck, at, nil
}

func load(dev kernel.Device, ck *run.Checkpoint, at *state) (a *Agent, err error) {
	a = &Agent{Config: ck.Settings.(*config.AD), Iteration: ck.Progress.Updates, learned: at.names(), dev: dev}
	if a.World, err = at.world(); err != nil {
		return nil, err
	}
	if a.model, err = newModel(a.Config, a.World.Space()); err != nil {
		return nil, err
	}
	weights, err := ck.Weights(a.model.Layout(), "")
	if err != nil {
		return nil, err
	}
	if a.store, err = run.NewStore(dev, a.model.Layout(), false); err != nil {
		return nil, err
	}
	if err := a.store.WriteWeights(weights); err != nil {
		return nil, errors.Join(err, a.store.Close())
	}
	return a, nil
}

// Close frees the agent's memory on the device.
func (a *Agent) Close() error { return a.store.Close() }

// Parameters returns the number of parameters.
func (a *Agent) Parameters() int { return a.model.Layout().Count() }

// Evaluate runs copies of the agent that learn goals in their contexts.
func (a *Agent) Evaluate(ctx context.Context, o EvalOptions) (*Evaluation, error) {
	all, err := a.evaluateAll(ctx, o)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// evaluateAll evaluates at each of the options' tries.
func (a *Agent) evaluateAll(ctx context.Context, o EvalOptions) ([]*Evaluation, error) {
	game, ok := a.World.(world.Game)
	if !ok {
		return nil, fmt.Errorf("this program cannot play a %v: haul act lets its agents act where the world is played", a.World)
	}
	e, err := newEvaluator(a.dev, a.Config, a.model, a.store, game, a.learned, o)
	if err != nil {
		return nil, err
	}
	all, err := e.runAll(ctx)
	for _, out := range all {
		out.Iteration = a.Iteration
	}
	return all, errors.Join(err, e.close())
}

// network is a forwarder on a device. It runs the model on one token per row and keeps earlier
// tokens in caches.
type network struct {
	runner                    kernel.Runner
	index, at, of, logits     *kernel.Tensor // nil if every row uses its own cache
	hostIndex, hostAt, hostOf []int32
	hostLogits                []float32
	// The same slices as interfaces, converted once so that a token allocates nothing.
	boxIndex, boxAt, boxLogits any
	// Set on a device that can run a step in one request. The slices above then lie in its memory.
	asker kernel.Asker
	ask   *kernel.Ask
	once  func(step func() error) error
	step  func() error // set while a loop runs inside
}

// stepNodes is the weight of a row when rows are divided over a CPU's workers: its token, and past
// tokens that are read but not computed.
const stepNodes = 4

// newNetwork compiles the model for the given rows, `agents` on each goal, with contexts of the
// given capacity. key is the setting or flag that an error about memory names.
func newNetwork(dev kernel.Device, m *model.AD, store kernel.Store, rows, agents, capacity int, key string) (*network, error) {
	p := plan.New("act", dev, rows, stepNodes, m.Layout())
	n := &network{index: p.RowInts("index", p.B(), 1, m.Fields()), at: p.RowInts("at", p.B(), 1)}
	if dev.ShardSize(stepNodes) == kernel.WholeBatch {
		n.of = p.RowInts("of", p.B(), 1)
	}
	n.logits = m.Step(p, n.index, n.at, n.of, capacity)
	n.logits.Space = kernel.Batch // the host reads them
	if err := run.Fits(key, dev, "an evaluation in context", agents, run.LeastMemory(dev, p.Program())); err != nil {
		return nil, err
	}
	var err error
	if n.runner, err = p.Compile(dev, store); err != nil {
		return nil, err
	}
	if n.of != nil {
		asker := n.runner.(kernel.Asker) // implemented by every device that runs a batch as one shard
		if n.ask, err = asker.NewAsk([]*kernel.Tensor{n.index, n.at, n.of}, n.logits); err != nil {
			return nil, errors.Join(err, n.runner.Close())
		}
		n.asker, n.hostIndex, n.hostAt, n.hostOf, n.hostLogits = asker, n.ask.In[0], n.ask.In[1], n.ask.In[2], n.ask.Out
		for i := range n.hostOf {
			n.hostOf[i] = int32(i)
		}
		n.once = func(step func() error) error { return step() }
		return n, nil
	}
	width := n.logits.Cols()
	n.hostIndex, n.hostAt, n.hostLogits = make([]int32, rows*m.Fields()), make([]int32, rows), make([]float32, rows*width)
	n.boxIndex, n.boxAt, n.boxLogits = n.hostIndex, n.hostAt, n.hostLogits
	return n, nil
}

func (n *network) buffers() (index, at, of []int32, logits []float32) {
	return n.hostIndex, n.hostAt, n.hostOf, n.hostLogits
}

// inside runs a loop of forwards in the cheapest way that the device has.
func (n *network) inside(loop func() error) error {
	if n.ask == nil {
		return loop()
	}
	return n.asker.Asking(n.ask, func(step func() error) error {
		n.step = step
		defer func() { n.step = nil }()
		return loop()
	})
}

func (n *network) forward() error {
	switch {
	case n.step != nil:
		return n.step()
	case n.ask != nil:
		return n.asker.Asking(n.ask, n.once)
	}
	if err := n.runner.WriteBatch(n.index, n.boxIndex); err != nil {
		return fmt.Errorf("feed the agents: %w", err)
	}
	if err := n.runner.WriteBatch(n.at, n.boxAt); err != nil {
		return fmt.Errorf("feed the agents: %w", err)
	}
	if err := n.runner.Run(); err != nil {
		return err
	}
	return n.runner.ReadBatch(n.logits, n.boxLogits)
}
