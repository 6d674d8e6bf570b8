package recurrent

import (
	"errors"

	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/run"
)

// The columns of a row of the table.
const embed = 16

// Sizes that an environment counts as where a CPU deals them to shards: a step of many rows is one
// token each, a rollout is read token by token by a dozen environments at once, two tiles of the
// products' rows.
const (
	actNodes   = 4
	learnNodes = 15
)

// network is the model on a device: a program that takes one step in every environment and keeps
// its units, and one that learns from a minibatch.
type network struct {
	model *model.Recurrent
	store kernel.Store

	act         kernel.Runner
	actIndex    *kernel.Tensor
	actMeasured *kernel.Tensor // nil: nothing is measured
	actState    *kernel.Tensor
	out         *kernel.Tensor
	index       []int32   // of the step: [environment, input]
	measured    []float32 // likewise: [environment, number]
	outs        []float32 // [environment, action or value]
	boxIndex    any       // the slices, boxed once: a step allocates nothing
	boxMeasured any
	boxOuts     any
	ask         *kernel.Ask
	asker       kernel.Asker
	once        func(step func() error) error

	update kernel.Runner
	// Of the minibatch: inputs, numbers, units before, what kernel.PPO takes.
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

// forward takes a step in every environment.
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

// minibatch is how many environments learn at once.
func (s *Settings) minibatch() int { return max(1, s.Envs/max(1, s.Parts)) }
