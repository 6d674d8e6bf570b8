package xland

import (
	"fmt"
	"sync"

	"haul/internal/rng"
)

// Batch is many environments that step together, on several cores. Its results depend only on keys
// and actions. If a step ends an episode, the same step begins the next one, and the view is the
// first of the new episode.
type Batch struct {
	states  []*State
	view    int
	workers int

	Views   []uint8   // [environment, row, column]: tiles
	Rewards []float32 // of the last step
	Ends    []bool    // whether the last step ended an episode
}

// NewBatch begins an environment of each task. Environment i has key i of split(key, len(tasks)).
func NewBatch(w World, tasks []ID, key rng.JAXKey, workers int) (*Batch, error) {
	b := &Batch{view: w.View * w.View, workers: max(1, workers)}
	for i, id := range tasks {
		if err := w.CheckTask(int64(id)); err != nil {
			return nil, err
		}
		s := w.NewState(id)
		s.Seed(key.Split(uint32(i)))
		b.states = append(b.states, s)
	}
	if len(b.states) == 0 {
		return nil, fmt.Errorf("step environments: %w", ErrNoTasks)
	}
	n := len(b.states)
	b.Views, b.Rewards, b.Ends = make([]uint8, n*b.view), make([]float32, n), make([]bool, n)
	for i, s := range b.states {
		view(b.Views[i*b.view:], s)
	}
	return b, nil
}

// Step applies one action per environment.
func (b *Batch) Step(actions []uint8) {
	if len(actions) != len(b.states) {
		panic("xland: one action for each environment")
	}
	if b.workers == 1 {
		b.part(actions, 0, len(b.states))
		return
	}
	var wait sync.WaitGroup
	for k := range b.workers {
		from, to := k*len(b.states)/b.workers, (k+1)*len(b.states)/b.workers
		wait.Go(func() { b.part(actions, from, to) })
	}
	wait.Wait()
}

func (b *Batch) part(actions []uint8, from, to int) {
	for i := from; i < to; i++ {
		s := b.states[i]
		b.Rewards[i], b.Ends[i] = s.Step(actions[i])
		if b.Ends[i] {
			s.Reset()
		}
		view(b.Views[i*b.view:], s)
	}
}
