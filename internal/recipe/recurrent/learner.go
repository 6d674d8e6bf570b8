package recurrent

import (
	"context"
	"errors"
	"fmt"

	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/rng"
	"haul/internal/run"
)

// shuffleIndex keeps the numbers of passes apart from those of environments.
const shuffleIndex = 1 << 32

// learner is an actor-critic on a device of its own. It belongs to one goroutine.
type learner struct {
	*Settings
	senses
	envs    environments
	net     *network
	roll    rollout
	boxFrom any // roll.from, boxed once

	acts     []uint8 // what each environment is to do
	key      uint64
	done     int    // steps of each environment
	pass     uint64 // passes done, over all updates
	order    []int
	zeros    []float32
	idle     []float32 // units of all environments at 0
	boxAside any       // units while the network takes steps that are taken back
	// The minibatch as it goes to the device.
	index, measured, from, taken any
	mIndex                       []int32
	mMeasured, mFrom, mTaken     []float32
	told                         func(steps int)
	curve                        func(done int, returns float64, episodes int, m kernel.Metrics) // after each update; nil: nobody hears
}

// newLearner compiles what learning takes.
func newLearner(dev kernel.Device, s *Settings, c senses, envs environments) (*learner, error) {
	if err := run.FitsHost("--envs", "the host", "keeping a rollout", s.Envs, rolloutBytes(s, c)); err != nil {
		return nil, err
	}
	net, err := newNetwork(dev, s, c)
	if err != nil {
		return nil, err
	}
	l := &learner{Settings: s, senses: c, envs: envs, net: net, roll: newRollout(s, c), acts: make([]uint8, s.Envs), order: make([]int, s.Envs),
		zeros: make([]float32, net.model.Layout().Len), idle: make([]float32, s.Envs*s.Hidden), boxAside: make([]float32, s.Envs*s.Hidden)}
	l.boxFrom = l.roll.from
	n := s.minibatch()
	l.mIndex, l.mMeasured = make([]int32, n*s.Rollout*c.inputs), make([]float32, n*s.Rollout*c.measured)
	l.mFrom, l.mTaken = make([]float32, n*s.Hidden), make([]float32, 4*n*s.Rollout)
	l.index, l.measured, l.from, l.taken = l.mIndex, l.mMeasured, l.mFrom, l.mTaken
	return l, nil
}

func (l *learner) close() error { return l.net.close() }

// begin forgets the last task.
func (l *learner) begin(task int64, seed uint64) error {
	w := rng.At(seed, uint64(task), 0, rng.Learner)
	l.key, l.pass, l.done = uint64(w[0])|uint64(w[1])<<32, 0, 0
	if err := l.envs.begin(task, l.key); err != nil {
		return err
	}
	l.roll.returns, l.roll.episodes = 0, 0
	clear(l.roll.earned)
	_, err := l.net.update.TakeMetrics()
	return errors.Join(err, l.net.store.WriteWeights(model.Initial(l.net.model.Layout(), l.key)), l.net.store.WriteMoments(l.zeros, l.zeros),
		l.net.update.SetState(kernel.State{}), l.net.act.WriteBatch(l.net.actState, l.idle))
}

// learn lives through one task, and labels what the environments keep of it.
func (l *learner) learn(ctx context.Context, task int64, seed uint64) error {
	if err := l.begin(task, seed); err != nil {
		return err
	}
	for left := l.Steps; left > 0; left -= l.Rollout {
		if err := l.collect(ctx, min(left, l.Rollout)); err != nil {
			return err
		}
		if left < l.Rollout {
			break // too few to learn from: they are part of the history all the same
		}
		if err := l.improve(ctx); err != nil {
			return err
		}
		if l.told != nil {
			l.told(l.Rollout * l.Envs)
		}
	}
	m, err := l.net.update.TakeMetrics()
	if err == nil && m.BadStep != 0 {
		err = fmt.Errorf("the gradient of update %d is not finite: try a lower --rate", m.BadStep)
	}
	if err != nil {
		return err
	}
	return l.label(ctx)
}

// label gives every step that is kept the action that the policy of the end holds most likely
// there: it reads each history from its first step.
func (l *learner) label(ctx context.Context) error {
	longest, width := l.envs.recall(), l.actions+1
	if err := l.net.act.WriteBatch(l.net.actState, l.idle); err != nil {
		return err
	}
	for t := range longest {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.envs.turn(t)
		l.envs.show(l.net.index, l.net.measured)
		if err := l.net.forward(); err != nil {
			return err
		}
		for e := range l.Envs {
			l.envs.label(e, t, likeliest(l.net.outs[e*width:][:l.actions]))
		}
	}
	return nil
}

// likeliest is the action with the largest output, the first of those that are equal.
func likeliest(out []float32) uint8 {
	best := 0
	for a, v := range out {
		if v > out[best] {
			best = a
		}
	}
	return uint8(best)
}

// improve learns from a whole rollout. What follows it is judged by a step that is taken back.
func (l *learner) improve(ctx context.Context) error {
	r, n := &l.roll, l.net
	err := l.aside(func() error {
		l.envs.show(n.index, n.measured)
		return n.forward()
	})
	if err != nil {
		return err
	}
	for e := range l.Envs {
		r.value[e*(r.steps+1)+r.steps] = n.outs[(e+1)*(l.actions+1)-1]
	}
	r.advantages(l.Settings)
	for range l.Passes {
		l.shuffle()
		for at := 0; at+l.minibatch() <= l.Envs; at += l.minibatch() {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := l.step(l.order[at:][:l.minibatch()]); err != nil {
				return err
			}
		}
	}
	if l.curve != nil {
		m, err := n.update.TakeMetrics()
		if err != nil {
			return err
		}
		l.curve(l.done, r.returns, r.episodes, m)
		r.returns, r.episodes = 0, 0
	}
	return nil
}

// shuffle deals the environments anew. What does not fill a minibatch at the end is left out of
// this pass.
func (l *learner) shuffle() {
	for i := range l.order {
		l.order[i] = i
	}
	for i := len(l.order) - 1; i > 0; i-- {
		j := rng.Below(rng.At(l.key, shuffleIndex+l.pass, uint32(i), rng.Learner)[0], uint32(i+1))
		l.order[i], l.order[j] = l.order[j], l.order[i]
	}
	l.pass++
}

// step learns from one minibatch.
func (l *learner) step(envs []int) error {
	r, n := &l.roll, l.net
	for k, e := range envs {
		row, numbers := r.steps*l.inputs, r.steps*l.senses.measured
		copy(l.mIndex[k*row:][:row], r.index[e*row:])
		copy(l.mMeasured[k*numbers:][:numbers], r.measured[e*numbers:])
		copy(l.mFrom[k*r.units:][:r.units], r.from[e*r.units:])
		copy(l.mTaken[k*4*r.steps:][:4*r.steps], r.sample[e*4*r.steps:])
	}
	if n.numbers != nil {
		if err := n.update.WriteBatch(n.numbers, l.measured); err != nil {
			return err
		}
	}
	if err := errors.Join(n.update.WriteBatch(n.x, l.index), n.update.WriteBatch(n.from, l.from), n.update.WriteBatch(n.taken, l.taken)); err != nil {
		return err
	}
	return n.update.Run()
}
