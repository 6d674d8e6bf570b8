package routing

import "haul/internal/kernel"

// What a reader could break: an epoch that is interrupted while it is closed is closed again when
// the run goes on, and must find the mean as it was. So advance can be taken back, until all that
// follows the epoch is known.

// prefixAverage marks the mean's parameters in a checkpoint.
const prefixAverage = "average."

// average is a moving mean of the policy's weights, moved after every epoch. It is computed on the
// host, in the order of the parameters, so that any number of workers gives the same bits.
type average struct {
	store         kernel.Store
	decay         float64
	mean, weights []float32 // room
}

// advance moves the mean on by the policy's weights after so many epochs before, and returns how to
// take that back.
func (a *average) advance(policy kernel.Store, before int) (undo func() error, err error) {
	old := make([]float32, len(a.mean))
	if err := a.store.ReadWeights(old); err != nil {
		return nil, err
	}
	if err := policy.ReadWeights(a.weights); err != nil {
		return nil, err
	}
	// The plain mean of the epochs so far, until as many are in it as the decay remembers: the initial
	// weights have no part in it.
	keep := min(a.decay, float64(before)/float64(before+1))
	for i, w := range a.weights {
		a.mean[i] = float32(keep*float64(old[i]) + (1-keep)*float64(w))
	}
	if err := a.store.WriteWeights(a.mean); err != nil {
		return nil, err
	}
	return func() error { return a.store.WriteWeights(old) }, nil
}
