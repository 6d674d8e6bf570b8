package search

import "slices"

// A lower bound of the cover by the volume algorithm (Barahona and Anbil, 2000): each step
// starts from the best multipliers and follows the mean of the subgradients so far. The bound
// comes close to that of the linear programme. Plain subgradients stop at twice its distance
// from the best cost, and the search that follows is exponential in that distance. What a reader
// could break: lower is the bound at price, and price is never replaced by multipliers with a
// lower bound.

const (
	raiseSteps = 400 // from nothing
	raiseAgain = 120 // and from the prices of an earlier cover
	raiseFirst = 0.1 // of the gap, the first step
	raiseNew   = 0.1 // the weight of a step's routes in the mean of all so far
	raiseWaits = 5   // steps that raise nothing, before they get shorter
)

// raise is relax by the volume algorithm. It may begin with the prices of an earlier cover.
func (c *coverer) raise(from []float64) {
	n := c.nodes
	steps := raiseAgain
	if from != nil {
		copy(c.price, from)
	} else {
		steps = raiseSteps
		c.shares(c.price)
	}
	// The columns one behind the other.
	var rows []int32
	ends, costs := make([]int32, len(c.columns)), make([]float64, len(c.columns))
	for i := range c.columns {
		rows = append(rows, c.columns[i].customers...)
		ends[i], costs[i] = int32(len(rows)), float64(c.columns[i].cost)
	}
	times, mean, u := make([]float64, n), make([]float64, n), slices.Clone(c.price)
	measure := func() (bound float64) {
		clear(times)
		for _, x := range u[1:] {
			bound += x
		}
		at := int32(0)
		for i, end := range ends {
			r := costs[i]
			list := rows[at:end]
			for _, v := range list {
				r -= u[v]
			}
			if at = end; r < 0 {
				bound += r
				for _, v := range list {
					times[v]++
				}
			}
		}
		return bound
	}
	c.lower = measure()
	copy(mean, times)
	scale, since := raiseFirst, 0
	for step := range steps {
		gap := float64(c.upper) - c.lower
		if gap < 1 || step%16 == 0 && c.stop() {
			return
		}
		norm := 0.0
		for _, t := range mean[1:] {
			norm += float64((1 - t) * (1 - t))
		}
		if norm < 1e-9 {
			return
		}
		size := scale * gap / norm
		for v := 1; v < n; v++ {
			u[v] = c.price[v] + float64(size*(1-mean[v]))
		}
		bound := measure()
		along := 0.0
		for v := 1; v < n; v++ {
			along += float64((1 - mean[v]) * (1 - times[v]))
			mean[v] += float64(raiseNew * (times[v] - mean[v]))
		}
		if bound > c.lower {
			c.lower, since = bound, 0
			copy(c.price, u)
			if along >= 0 {
				scale = min(2, 1.1*scale)
			}
		} else if since++; since >= raiseWaits {
			scale, since = 0.8*scale, 0
		}
	}
}
