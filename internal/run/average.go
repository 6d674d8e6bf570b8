package run

import "haul/internal/kernel"

// Advance can be undone. A run that is interrupted at the end of an interval repeats that end when
// it is resumed, and the mean must not contain the interval twice.

// PrefixAverage begins the names of the mean's parameters in a checkpoint.
const PrefixAverage = "average."

// Average is an exponential moving average of a store's weights. It is computed on the host in the
// order of the parameters, so that its bits do not depend on the number of workers.
type Average struct {
	Store         kernel.Store
	decay         float64
	mean, weights []float32 // buffers
}

// NewAverage returns an average in a new store. decay, in (0, 1), is the weight of the past mean.
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

// Advance adds the weights of a store to the mean; before is the number of earlier calls. undo
// restores the mean of before the call.
func (a *Average) Advance(from kernel.Store, before int) (undo func() error, err error) {
	old := make([]float32, len(a.mean))
	if err := a.Store.ReadWeights(old); err != nil {
		return nil, err
	}
	if err := from.ReadWeights(a.weights); err != nil {
		return nil, err
	}
	// The first updates take the plain mean of all weights so far, until decay is the smaller
	// weight. With before = 0 the initial weights drop out.
	keep := min(a.decay, float64(before)/float64(before+1))
	for i, w := range a.weights {
		a.mean[i] = float32(keep*float64(old[i]) + (1-keep)*float64(w))
	}
	if err := a.Store.WriteWeights(a.mean); err != nil {
		return nil, err
	}
	return func() error { return a.Store.WriteWeights(old) }, nil
}
