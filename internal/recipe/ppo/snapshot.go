package ppo

import (
	"errors"
	"slices"

	"haul/internal/kernel"
	"haul/internal/world/grid"
)

// snapshot is a snapshot of the trainer at the start of a round, from which an aborted round is
// undone. It holds all state that both a round changes and a checkpoint stores. The sums of a round
// are computed after it, so an aborted round leaves none.
type snapshot struct {
	weights, m, v []float32
	state         kernel.State
	at            state
	states        []grid.State
}

// keep takes the snapshot.
func (b *snapshot) keep(t *trainer) (err error) {
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

// undo restores the snapshot.
func (b *snapshot) undo(t *trainer) error {
	t.at = b.at
	t.pass, t.batch.done = b.at.Pass, b.at.Steps
	if _, err := t.update.TakeMetrics(); err != nil {
		return err
	}
	return errors.Join(t.batch.env.Place(slices.Clone(b.states), b.at.Clock), t.store.WriteWeights(b.weights), t.store.WriteMoments(b.m, b.v), t.update.SetState(b.state))
}
