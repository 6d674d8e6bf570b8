package ppo

import (
	"errors"
	"slices"

	"haul/internal/kernel"
	"haul/internal/world/grid"
)

// begun is the state at the start of a round, so that a round that is given up halfway has no
// effect. What a reader could break: it holds everything that a round changes and a checkpoint
// keeps. Sums are taken after every round, so those of a broken round can simply be dropped.
type begun struct {
	weights, m, v []float32
	state         kernel.State
	at            state
	states        []grid.State
}

// keep notes where the learner stands.
func (b *begun) keep(t *trainer) (err error) {
	if b.weights == nil {
		n := t.net.Layout().Len
		b.weights, b.m, b.v = make([]float32, n), make([]float32, n), make([]float32, n)
	}
	b.at = *t.State().(*state)
	b.states = append(b.states[:0], b.at.States...)
	if b.state, err = t.update.State(); err != nil {
		return err
	}
	return errors.Join(t.store.ReadWeights(b.weights), t.store.ReadMoments(b.m, b.v))
}

// undo goes back to there.
func (b *begun) undo(t *trainer) error {
	t.at = b.at
	t.pass, t.batch.done = b.at.Pass, b.at.Steps
	if _, err := t.update.TakeMetrics(); err != nil {
		return err
	}
	return errors.Join(t.batch.env.Place(slices.Clone(b.states), b.at.Clock), t.store.WriteWeights(b.weights), t.store.WriteMoments(b.m, b.v), t.update.SetState(b.state))
}
