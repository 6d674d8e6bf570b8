package cover

import "slices"

// A lower bound of the cover by the volume algorithm (Barahona and Anbil, 2000): each step starts
// from the best multipliers and follows the mean of the subgradients so far. The bound comes close
// to that of the linear programme. Plain subgradients stop at twice its distance from the best
// cost, and the search that follows is exponential in that distance. Lower is the bound at price,
// and price is never replaced by multipliers with a lower bound.

const (
	raiseSteps = 400 // from nothing
	raiseAgain = 120 // and from the prices of an earlier cover
	raiseFirst = 0.1 // of the gap, the first step
	raiseNew   = 0.1 // the weight of a step's routes in the mean of all so far
	raiseWaits = 5   // steps that raise nothing, before they get shorter
)

// Raise is relax by the volume algorithm. It may begin with the prices of an earlier cover.
func (c *Problem) Raise(from []float64) {
	n := c.Nodes
	steps := raiseAgain
	if from != nil {
		copy(c.Price, from)
	} else {
		steps = raiseSteps
		c.shares(c.Price)
	}
	// The columns one behind the other.
	var rows []int32
	ends, costs := make([]int32, len(c.Columns)), make([]float64, len(c.Columns))
	for i := range c.Columns {
		rows = append(rows, c.Columns[i].Customers...)
		ends[i], costs[i] = int32(len(rows)), float64(c.Columns[i].Cost)
	}
	times, mean, u := make([]float64, n), make([]float64, n), slices.Clone(c.Price)
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
	c.Lower = measure()
	copy(mean, times)
	scale, since := raiseFirst, 0
	for step := range steps {
		gap := float64(c.Upper) - c.Lower
		if gap < 1 || step%16 == 0 && c.Stop() {
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
			u[v] = c.Price[v] + float64(size*(1-mean[v]))
		}
		bound := measure()
		along := 0.0
		for v := 1; v < n; v++ {
			along += float64((1 - mean[v]) * (1 - times[v]))
			mean[v] += float64(raiseNew * (times[v] - mean[v]))
		}
		if bound > c.Lower {
			c.Lower, since = bound, 0
			copy(c.Price, u)
			if along >= 0 {
				scale = min(2, 1.1*scale)
			}
		} else if since++; since >= raiseWaits {
			scale, since = 0.8*scale, 0
		}
	}
}
