package run

import "haul/internal/kernel"

// What a reader could break: if a run is interrupted while an interval is closed, the interval
// is closed again on resume and must find the mean unchanged. So Advance can be undone, until
// everything that follows the interval is known.

// PrefixAverage marks the mean's parameters in a checkpoint.
const PrefixAverage = "average."

// Average is a moving mean of a store's weights. It is computed on the host, in the order of the
// parameters, so that any number of workers gives the same bits.
type Average struct {
	Store         kernel.Store
	decay         float64
	mean, weights []float32 // room
}

// NewAverage is a mean whose past weighs decay, over 0 and below 1.
func NewAverage(dev kernel.Device, l *kernel.Layout, decay float64) (*Average, error) {
	store, err := NewStore(dev, l, false)
	if err != nil {
		return nil, err
	}
	return newAverage(store, l.Len, decay), nil
}

func newAverage(store kernel.Store, n int, decay float64) *Average {
	return &Average{Store: store, decay: decay, mean: make([]float32, n), weights: make([]float32, n)}
}

// Advance moves the mean on by the weights of a store, after so many times before, and returns how
// to take that back.
func (a *Average) Advance(from kernel.Store, before int) (undo func() error, err error) {
	old := make([]float32, len(a.mean))
	if err := a.Store.ReadWeights(old); err != nil {
		return nil, err
	}
	if err := from.ReadWeights(a.weights); err != nil {
		return nil, err
	}
	// The plain mean of the weights so far, until as many are in it as the decay remembers: the
	// initial weights have no part in it.
	keep := min(a.decay, float64(before)/float64(before+1))
	for i, w := range a.weights {
		a.mean[i] = float32(keep*float64(old[i]) + (1-keep)*float64(w))
	}
	if err := a.Store.WriteWeights(a.mean); err != nil {
		return nil, err
	}
	return func() error { return a.Store.WriteWeights(old) }, nil
}
