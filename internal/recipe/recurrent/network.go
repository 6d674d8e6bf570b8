package recurrent

import (
	"errors"

	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/run"
)

// Number of columns of the table.
const embed = 16

// Tokens per environment and environments per shard on a CPU. A step has many rows of one token
// each. A rollout is read token by token by a dozen environments together: two tiles of rows of the
// products.
const (
	actNodes   = 4
	learnNodes = 15
)

// network is the model on a device. One program takes a step in every environment and keeps the
// units. The other learns from a minibatch.
type network struct {
	model *model.Recurrent
	store kernel.Store

	act         kernel.Runner
	actIndex    *kernel.Tensor
	actMeasured *kernel.Tensor // nil without real-valued inputs
	actState    *kernel.Tensor
	out         *kernel.Tensor
	index       []int32   // of one step: [environment, input]
	measured    []float32 // of one step: [environment, number]
	outs        []float32 // of one step: [environment, action or value]
	boxIndex    any       // the slices as interfaces, converted once so that a step allocates nothing
	boxMeasured any
	boxOuts     any
	ask         *kernel.Ask
	asker       kernel.Asker
	once        func(step func() error) error

	update kernel.Runner
	// Of the minibatch: table inputs, real-valued inputs, units before it, and the samples of
	// kernel.PPO.
	x, numbers, from, taken *kernel.Tensor
	program                 *kernel.Program
}

// newNetwork compiles both programs.
func newNetwork(dev kernel.Device, s *Settings, c senses) (n *network, err error) {
	n = &network{model: model.NewRecurrent(c.inputs, c.rows, embed, c.measured, s.Hidden, c.actions)}
	if n.store, err = run.NewStore(dev, n.model.Layout(), true); err != nil {
		return nil, err
	}
	if err := n.compileAct(dev, s, c); err != nil {
		return nil, errors.Join(err, n.store.Close())
	}
	if err := n.compileUpdate(dev, s, c); err != nil {
		return nil, errors.Join(err, n.act.Close(), n.store.Close())
	}
	return n, nil
}

func (n *network) close() error {
	return errors.Join(n.update.Close(), n.act.Close(), n.store.Close())
}

func (n *network) compileAct(dev kernel.Device, s *Settings, c senses) (err error) {
	p := plan.New("act", dev, s.Envs, actNodes, n.model.Layout())
	n.actIndex, n.actState = p.RowInts("index", p.B(), c.inputs, 1), p.Rows("units", p.B(), s.Hidden)
	if c.measured > 0 {
		n.actMeasured = p.Rows("measured", p.B(), 1, c.measured)
	}
	n.out = plan.Keep(n.model.Record(p, n.actIndex, n.actMeasured, n.actState, true))
	if n.act, err = run.Compile("--envs", p, dev, n.store); err != nil {
		return err
	}
	if asker, ok := n.act.(kernel.Asker); ok && c.measured == 0 {
		if n.ask, err = asker.NewAsk([]*kernel.Tensor{n.actIndex}, n.out); err != nil {
			return errors.Join(err, n.act.Close())
		}
		n.asker, n.index, n.outs = asker, n.ask.In[0], n.ask.Out
		n.once = func(step func() error) error { return step() }
		return nil
	}
	n.index, n.measured, n.outs = make([]int32, s.Envs*c.inputs), make([]float32, s.Envs*c.measured), make([]float32, s.Envs*n.out.Cols())
	n.boxIndex, n.boxMeasured, n.boxOuts = n.index, n.measured, n.outs
	return nil
}

// forward takes one step in every environment.
func (n *network) forward() error {
	if n.ask != nil {
		return n.asker.Asking(n.ask, n.once)
	}
	if err := n.act.WriteBatch(n.actIndex, n.boxIndex); err != nil {
		return err
	}
	if n.actMeasured != nil {
		if err := n.act.WriteBatch(n.actMeasured, n.boxMeasured); err != nil {
			return err
		}
	}
	if err := n.act.Run(); err != nil {
		return err
	}
	return n.act.ReadBatch(n.out, n.boxOuts)
}

func (n *network) compileUpdate(dev kernel.Device, s *Settings, c senses) (err error) {
	p := plan.New("recurrent ppo", dev, s.minibatch(), learnNodes, n.model.Layout())
	n.x, n.from = p.RowInts("index", p.B(), s.Rollout*c.inputs, 1), p.Rows("units", p.B(), s.Hidden)
	if c.measured > 0 {
		n.numbers = p.Rows("measured", p.B(), s.Rollout, c.measured)
	}
	n.taken = p.Rows("sample", p.B(), s.Rollout, 4)
	p.LearnPPO(n.model.Record(p, n.x, n.numbers, n.from, false), n.taken,
		kernel.PPO{Clip: float32(s.Clip), ValueCoef: float32(s.Value), EntropyCoef: float32(s.Entropy)}, s.MaxNorm)
	n.program = p.Program()
	if n.update, err = run.Compile("--envs", p, dev, n.store); err != nil {
		return err
	}
	return n.update.SetControl(kernel.Control{LearningRate: float32(s.Rate)})
}

// minibatch returns the number of environments in a minibatch.
func (s *Settings) minibatch() int { return max(1, s.Envs/max(1, s.Parts)) }
