package ppo

import (
	"context"
	"errors"
	"fmt"
	"math"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/world/grid"
)

// The result of a learner depends only on the settings and the goal. A learner is compiled once and
// reused for many goals, so begin resets all that training changes: weights, moments and the state
// of the optimizer.
//
// Random numbers come from Philox by (key of the goal, index, counter). Index s belongs to stream
// s, with its steps as counters. Index shuffleIndex+k belongs to the shuffle of pass k.

// shuffleIndex is greater than any stream index, so that passes and streams never share numbers.
const shuffleIndex = 1 << 32

// learner is a PPO actor-critic with its own device. Only one goroutine may use it.
type learner struct {
	c     *config.PPO
	net   *model.MLP
	store kernel.Store

	// A minibatch: the features of its states, and the samples that kernel.PPO takes.
	update          kernel.Runner
	x, sample       *kernel.Tensor
	features, taken []float32
	xRows, takeRows any // the two slices as interfaces, converted once so that a step allocates nothing
	program         *kernel.Program

	// The forward pass over every state of the room.
	table   kernel.Runner
	out     *kernel.Tensor
	outs    []float32
	outRows any // outs as an interface, converted once

	zeros  []float32
	key    uint64
	pass   uint64 // number of passes since the goal began
	batch  rollout
	order  []int32
	onPass func(share float64) // receives the finished fraction of a round after each pass; may be nil
}

// newLearner compiles the training step and the forward pass over all states. With a peer, the rows
// of a minibatch are divided over the ranks, and each rank repeats everything else.
func newLearner(dev kernel.Device, c *config.PPO, peer kernel.Peer) (l *learner, err error) {
	if err := run.FitsHost("n_stream", "the host", "keeping the samples of a round", c.NStream, roundBytes(c)); err != nil {
		return nil, err
	}
	l = &learner{c: c, batch: newRollout(c), order: make([]int32, c.NSteps*c.NStream)}
	l.net = model.NewMLP(l.batch.features, c.Hidden, grid.NumActions)
	if l.store, err = run.NewStore(dev, l.net.Layout(), true); err != nil {
		return nil, err
	}
	l.zeros = make([]float32, l.net.Layout().Len)
	if err := l.compileUpdate(dev, peer); err != nil {
		return nil, errors.Join(err, l.store.Close())
	}
	if err := l.compileTable(dev); err != nil {
		return nil, errors.Join(err, l.update.Close(), l.store.Close())
	}
	return l, nil
}

// flops returns the floating-point operations per sample: a product with every weight in the
// forward pass and two in the backward pass.
func (l *learner) flops() int64 { return 6 * int64(l.net.Layout().Count()) }

func (l *learner) close() error {
	return errors.Join(l.update.Close(), l.table.Close(), l.store.Close())
}

func (l *learner) compileUpdate(dev kernel.Device, peer kernel.Peer) (err error) {
	c := l.c
	p := plan.New("ppo", dev, c.BatchSize, 1, l.net.Layout())
	if peer != nil {
		if err := p.Distribute(peer); err != nil {
			return fmt.Errorf("batch_size: %w", err)
		}
	}
	l.x, l.sample = p.Rows("cells", p.B(), l.batch.features), p.Rows("sample", p.B(), 4)
	p.LearnPPO(l.net.Record(p, l.x), l.sample, kernel.PPO{Clip: float32(c.ClipRange), ValueCoef: float32(c.VFCoef), EntropyCoef: float32(c.EntCoef)}, c.MaxGradNorm)
	l.program = p.Program()
	l.features, l.taken = make([]float32, l.batch.features*p.Batch()), make([]float32, 4*p.Batch())
	l.xRows, l.takeRows = l.features, l.taken
	if l.update, err = run.Compile("batch_size", p, dev, l.store); err != nil {
		return err
	}
	return l.update.SetControl(kernel.Control{LearningRate: float32(c.SourceLR)})
}

func (l *learner) compileTable(dev kernel.Device) (err error) {
	states, n := l.batch.states, l.batch.features
	p := plan.New("ppo table", dev, len(states), 1, l.net.Layout())
	x := p.Rows("cells", p.B(), n)
	l.out = l.net.Record(p, x)
	l.out.Space = kernel.Batch // kept for the host to read
	l.outs = make([]float32, len(states)*l.out.Cols())
	l.outRows = l.outs
	if l.table, err = p.Compile(dev, l.store); err != nil {
		return err
	}
	rows := make([]float32, 0, n*len(states))
	for _, s := range states {
		rows = append(rows, l.batch.feature[s][:n]...)
	}
	return l.table.WriteBatch(x, rows)
}

// learn trains on one goal and writes its steps to history, one stream after another. tell receives
// the number of steps taken and learned from so far, over all streams. It may be nil.
func (l *learner) learn(ctx context.Context, goal grid.Goal, history []grid.Step, progress func(steps int)) error {
	if err := l.begin(goal); err != nil {
		return err
	}
	steps := len(history) / l.c.NStream
	l.onPass = func(share float64) {
		if progress != nil {
			progress(int((float64(l.batch.done) - (1-share)*float64(l.c.NSteps)) * float64(l.c.NStream)))
		}
	}
	for left := steps; left > 0; left -= l.c.NSteps {
		if err := l.look(); err != nil {
			return err
		}
		if err := l.batch.collect(ctx, l.key, min(left, l.c.NSteps), history); err != nil {
			return err
		}
		if left < l.c.NSteps {
			// A partial rollout is too small to learn from. Its steps are part of the history all
			// the same.
			break
		}
		l.batch.advantages(l.c)
		if err := l.improve(ctx); err != nil {
			return err
		}
	}
	m, err := l.update.TakeMetrics()
	if err == nil && m.BadStep != 0 {
		err = fmt.Errorf("the gradient of step %d is not finite: try a lower source_lr", m.BadStep)
	}
	return err
}

// keyOf returns the key of a goal's random numbers.
func keyOf(c *config.PPO, goal grid.Goal) uint64 {
	w := rng.At(c.AlgSeed, uint64(goal), 0, rng.Learner)
	return uint64(w[0]) | uint64(w[1])<<32
}

// start sets random numbers and environments to the start of a goal.
func (l *learner) start(goal grid.Goal) {
	l.key, l.pass = keyOf(l.c, goal), 0
	l.batch.begin(goal)
}

// begin resets the learner to the start of a goal.
func (l *learner) begin(goal grid.Goal) error {
	l.start(goal)
	return errors.Join(l.store.WriteWeights(model.Initial(l.net.Layout(), l.key)), l.store.WriteMoments(l.zeros, l.zeros),
		l.update.SetState(kernel.State{}))
}

// look evaluates the network in every state of the room. Acting is then a table lookup until the
// next update.
func (l *learner) look() error {
	if err := l.table.Run(); err != nil {
		return err
	}
	if err := l.table.ReadBatch(l.out, l.outRows); err != nil {
		return err
	}
	l.batch.policy.fill(l.batch.states, l.outs)
	return nil
}

// improve trains on the rollout for NEpochs passes, or until the policy's divergence exceeds 1.5
// times TargetKL. It checks ctx before each minibatch, because a rollout may hold thousands.
func (l *learner) improve(ctx context.Context) error {
	for pass := range l.c.NEpochs {
		l.shuffle()
		for at := 0; at+l.c.BatchSize <= len(l.order); at += l.c.BatchSize {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := l.step(l.order[at:][:l.c.BatchSize]); err != nil {
				return err
			}
		}
		if l.onPass != nil {
			l.onPass(float64(pass+1) / float64(l.c.NEpochs))
		}
		if l.c.TargetKL > 0 {
			meanKL, err := l.meanKL()
			if err != nil || meanKL > 1.5*l.c.TargetKL {
				return err
			}
		}
	}
	return nil
}

// shuffle permutes the samples. A pass leaves out the samples at the end that do not fill a
// minibatch.
func (l *learner) shuffle() {
	for i := range l.order {
		l.order[i] = int32(i)
	}
	var w [4]uint32
	// Fisher–Yates: number i of the pass picks the sample to swap with sample i.
	for i := len(l.order) - 1; i > 0; i-- {
		if i%4 == 3 || i == len(l.order)-1 {
			w = rng.At(l.key, shuffleIndex+l.pass, uint32(i/4), rng.Learner)
		}
		j := rng.Below(w[i%4], uint32(i+1))
		l.order[i], l.order[j] = l.order[j], l.order[i]
	}
	l.pass++
}

// step makes one update with a minibatch of the samples with these indices.
func (l *learner) step(samples []int32) error {
	b, n := &l.batch, l.batch.features
	for r, i := range samples[l.program.First():][:l.program.Batch] {
		s := &b.samples[i]
		copy(l.features[n*r:][:n], b.feature[s.state][:n])
		row := l.taken[4*r:][:4]
		row[0], row[1], row[2], row[3] = float32(s.action), s.logProb, s.advantage, s.target
	}
	if err := l.update.WriteBatch(l.x, l.xRows); err != nil {
		return err
	}
	if err := l.update.WriteBatch(l.sample, l.takeRows); err != nil {
		return err
	}
	return l.update.Run()
}

// meanKL returns the Kullback-Leibler divergence of the current policy from the policy that
// collected the samples, averaged over the samples. The table keeps the collecting policy, so every
// pass is measured against it.
func (l *learner) meanKL() (float64, error) {
	then := l.batch.policy
	defer func() { l.batch.policy = then }()
	if err := l.look(); err != nil {
		return 0, err
	}
	now := &l.batch.policy
	sum := 0.0
	for i := range l.batch.samples {
		state := l.batch.samples[i].state
		for k, p := range then.logProb[state] {
			sum += math.Exp(float64(p)) * float64(p-now.logProb[state][k])
		}
	}
	return sum / float64(len(l.batch.samples)), nil
}
