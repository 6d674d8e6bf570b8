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
	Config    *config.AD // what it was trained with
	World     world.World
	Iteration int // updates done
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

// loadShared is Load for ranks, of which rank 0 reads the file.
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

// readCheckpoint is a checkpoint with its state, as far as they go without a device.
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

// Close takes the agent off its device.
func (a *Agent) Close() error { return a.store.Close() }

// Parameters is the number of learned numbers.
func (a *Agent) Parameters() int { return a.model.Layout().Count() }

// Evaluate lets copies of the agent learn goals in their contexts.
func (a *Agent) Evaluate(ctx context.Context, o EvalOptions) (*Evaluation, error) {
	all, err := a.evaluateAll(ctx, o)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// evaluateAll is Evaluate at each of the options' tries.
func (a *Agent) evaluateAll(ctx context.Context, o EvalOptions) ([]*Evaluation, error) {
	game, ok := a.World.(world.Game)
	if !ok {
		return nil, fmt.Errorf("evaluate in context: this program cannot play a %v", a.World)
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

// network is a forwarder on a device: the model over one token a row, the past in caches.
type network struct {
	runner            kernel.Runner
	index, at, logits *kernel.Tensor
	hostIndex, hostAt []int32
	hostLogits        []float32
	// The same slices as the runner takes them: putting one into an interface anew would allocate at
	// every token.
	boxIndex, boxAt, boxLogits any
}

// stepNodes is the size that a row counts as when rows are dealt to a CPU's workers: its one token,
// and a past that is read but not computed.
const stepNodes = 4

// newNetwork compiles the model for that many agents, `agents` on each goal, with contexts of that
// capacity; key is what a user changes where so many do not fit.
func newNetwork(dev kernel.Device, m *model.AD, store kernel.Store, rows, agents, capacity int, key string) (*network, error) {
	p := plan.New("act", dev, rows, stepNodes, m.Layout())
	n := &network{index: p.RowInts("index", p.B(), 1, m.Fields()), at: p.RowInts("at", p.B(), 1)}
	n.logits = m.Step(p, n.index, n.at, capacity)
	n.logits.Space = kernel.Batch // the host reads them
	if err := run.Fits(key, dev, "an evaluation in context", agents, run.LeastMemory(dev, p.Program())); err != nil {
		return nil, err
	}
	var err error
	if n.runner, err = p.Compile(dev, store); err != nil {
		return nil, err
	}
	width := n.logits.Cols()
	n.hostIndex, n.hostAt, n.hostLogits = make([]int32, rows*m.Fields()), make([]int32, rows), make([]float32, rows*width)
	n.boxIndex, n.boxAt, n.boxLogits = n.hostIndex, n.hostAt, n.hostLogits
	return n, nil
}

func (n *network) buffers() (index, at []int32, logits []float32) {
	return n.hostIndex, n.hostAt, n.hostLogits
}

func (n *network) forward() error {
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
