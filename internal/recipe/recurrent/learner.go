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

// shuffleIndex is greater than any environment's index, so that passes and environments never share
// random numbers.
const shuffleIndex = 1 << 32

// learner is an actor-critic with its own device. Only one goroutine may use it.
type learner struct {
	*Settings
	senses
	envs    environments
	net     *network
	roll    rollout
	boxFrom any // roll.from as an interface, converted once

	acts     []uint8 // next action of each environment
	key      uint64
	done     int    // steps of each environment so far
	pass     uint64 // number of passes so far, over all updates
	order    []int
	zeros    []float32
	idle     []float32 // the units of all environments at the start: zeros
	boxAside any       // saved units, while the network takes steps that are undone
	// The slices of a minibatch, as interfaces.
	index, measured, from, taken any
	mIndex                       []int32
	mMeasured, mFrom, mTaken     []float32
	onSteps                      func(steps int)
	curve                        func(done int, returns float64, episodes int, m kernel.Metrics) // called after each update; may be nil
}

// newLearner compiles the programs of a learner.
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

// begin resets the learner to the start of a task.
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

// learn trains on one task, and labels the steps that the environments keep.
func (l *learner) learn(ctx context.Context, task int64, seed uint64) error {
	if err := l.begin(task, seed); err != nil {
		return err
	}
	for left := l.Steps; left > 0; left -= l.Rollout {
		if err := l.collect(ctx, min(left, l.Rollout)); err != nil {
			return err
		}
		if left < l.Rollout {
			break // a partial rollout is too small to learn from, but its steps are part of the history
		}
		if err := l.improve(ctx); err != nil {
			return err
		}
		if l.onSteps != nil {
			l.onSteps(l.Rollout * l.Envs)
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

// label labels every kept step with the action that the final policy finds most likely. The network
// reads each history from its first step.
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

// likeliest returns the action with the largest output, the first among equals.
func likeliest(out []float32) uint8 {
	best := 0
	for a, v := range out {
		if v > out[best] {
			best = a
		}
	}
	return uint8(best)
}

// improve learns from a whole rollout. It takes one more step to get the values that follow it, and
// undoes that step.
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

// shuffle permutes the environments. A pass leaves out those at the end that do not fill a
// minibatch.
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

// step makes one update with a minibatch of these environments.
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
