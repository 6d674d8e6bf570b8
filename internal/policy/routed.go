package policy

import (
	"fmt"

	"haul/internal/vrp"
)

// Routed is a problem's best routes so far, judged by the validator, and their cost by its own
// metric.
type Routed struct {
	Solution vrp.Solution
	Cost     float64
}

// take picks the best of the routes. The device's lengths tell which where the metric is Euclid's;
// one that rounds, or that is another, is asked about each.
func (r *Routed) take(prob *vrp.Problem, actions []int32, lengths []float32) error {
	steps, best, cost := len(actions)/len(lengths), 0, 0.0
	for k := range lengths {
		if prob.Metric == vrp.Exact {
			if lengths[k] < lengths[best] {
				best = k
			}
			continue
		}
		if c := tourCost(prob, actions[k*steps:][:steps]); k == 0 || c < cost {
			best, cost = k, c
		}
	}
	sol := vrp.FromTour(actions[best*steps:][:steps])
	if err := vrp.Validate(prob, sol); err != nil {
		return fmt.Errorf("the policy's routes are invalid: %w", err)
	}
	if cost = prob.Cost(sol); r.Solution.Routes == nil || cost < r.Cost {
		r.Solution, r.Cost = sol, cost
	}
	return nil
}

// tourCost is Problem.Cost of a visit sequence that begins behind the depot and is filled up with
// it.
func tourCost(prob *vrp.Problem, tour []int32) (sum float64) {
	last := int32(0)
	for _, v := range tour {
		if v != last {
			sum += prob.Leg(int(last), int(v))
		}
		last = v
	}
	return sum
}
