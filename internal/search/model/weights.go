package model

import (
	"slices"
)

// Weights of overload by dimension of load.

// MeanAmount is the mean amount of a task in the unit of overload. Each dimension of load has its
// own unit (setOverloadWeights).
const MeanAmount = 1 << 16

// setOverloadWeights makes a customer's mean amount weigh the same in every dimension.
func (m *Compiled) setOverloadWeights() {
	m.OverloadWeights = make([]int64, m.Dims)
	for d := range m.Dims {
		var sum float64
		for _, v := range m.Tasks {
			sum += float64(m.AmountsOf(v)[d].Peak)
		}
		mean := max(1e-3, sum/float64(max(1, len(m.Tasks))))
		m.OverloadWeights[d] = max(1, int64(MeanAmount/mean))
	}
}

// familiesShareCapacity reports whether vehicles of a family hold the same. Where larger ones are
// to be had, they are the way out of overload; a price of overload would fill them and leave the
// small ones at home.
func (m *Compiled) familiesShareCapacity() bool {
	for i := range m.Types {
		for j := range i {
			if m.Types[i].Family == m.Types[j].Family && !slices.Equal(m.Types[i].Capacity, m.Types[j].Capacity) {
				return false
			}
		}
	}
	return true
}
