package policy

import (
	"errors"
	"fmt"

	"haul/internal/vrp"
)

// Routed is a problem's best routes so far, checked by the validator, and their cost by the
// problem's own distances.
type Routed struct {
	Solution   vrp.Solution
	Cost       float64
	Iterations int // of an active search, that were done
}

// Reached is how many of the first problems have routes: all but where the routing was interrupted.
func Reached(routed []Routed) int {
	for i := range routed {
		if routed[i].Solution.Routes == nil {
			return i
		}
	}
	return len(routed)
}

// IterationsOf are those of several problems.
func IterationsOf(routed []Routed) *Iterations {
	all := &Iterations{routed[0].Iterations, routed[0].Iterations}
	for _, r := range routed {
		all.Fewest, all.Most = min(all.Fewest, r.Iterations), max(all.Most, r.Iterations)
	}
	return all
}

// take picks the best of the routes. The device's lengths tell which where the metric is Euclid's;
// one that rounds, or that is another, is asked about each. Where the best do not keep what the
// device does not know of, a number of vehicles or windows to the last digit, the next is tried.
func (r *Routed) take(prob *vrp.Problem, actions []int32, lengths []float32) error {
	_, err := r.takeBest(prob, actions, lengths)
	return err
}

// takeJoined is takeBest of what the routes come to together, with those of before.
func (r *Routed) takeJoined(prob *vrp.Problem, actions []int32, lengths []float32) ([]int32, error) {
	before := r.Solution
	taken, err := r.takeBest(prob, actions, lengths)
	if err != nil {
		return nil, err
	}
	steps := len(actions) / len(lengths)
	tours := make([][]int32, len(lengths), len(lengths)+1)
	for k := range tours {
		tours[k] = visitsOf(prob, actions[k*steps:][:steps])
	}
	if before.Routes != nil {
		tours = append(tours, prob.Visits(before))
	}
	if better, ok := r.takeSolution(prob, newJoiner(prob).join(tours), steps); ok {
		return better, nil
	}
	return taken, nil
}

// takeSolution takes joined routes that are better, and returns them as actions; nil where they are
// more than a tour may have. A problem that limits vehicles, or windows to the last digit, may not
// allow them.
func (r *Routed) takeSolution(prob *vrp.Problem, sol vrp.Solution, steps int) (actions []int32, ok bool) {
	if sol.Routes == nil || vrp.Validate(prob, sol) != nil {
		return nil, false
	}
	cost := prob.Cost(sol)
	if !(cost < r.Cost) {
		return nil, false
	}
	r.Solution, r.Cost = sol, cost
	joined := prob.Visits(sol)[1:]
	if len(joined) > steps {
		return nil, true
	}
	actions = make([]int32, steps)
	copy(actions, joined)
	return actions, true
}

// visitsOf are actions as Problem.FromVisits reads them. Where there are several depots, a first
// action that is one is where the first vehicle leaves from, and stands behind a first visit.
func visitsOf(prob *vrp.Problem, actions []int32) []int32 {
	if prob.DepotCount() == 1 {
		return actions
	}
	return append([]int32{0}, actions...)
}

// takeBest is take, and returns the actions of the routes that it took; nil where those of before
// are the best.
func (r *Routed) takeBest(prob *vrp.Problem, actions []int32, lengths []float32) ([]int32, error) {
	steps, tried := len(actions)/len(lengths), make([]bool, len(lengths))
	costs := make([]float64, len(lengths))
	for k := range costs {
		if costs[k] = float64(lengths[k]); prob.Metric != vrp.Exact {
			costs[k] = tourCost(prob, actions[k*steps:][:steps])
		}
	}
	var broken error
	for range costs {
		best := -1
		for k, c := range costs {
			if !tried[k] && (best < 0 || c < costs[best]) {
				best = k
			}
		}
		sol := prob.FromVisits(visitsOf(prob, actions[best*steps:][:steps]))
		err := vrp.Validate(prob, sol)
		if err == nil {
			if cost := prob.Cost(sol); r.Solution.Routes == nil || cost < r.Cost {
				r.Solution, r.Cost = sol, cost
				return actions[best*steps:][:steps], nil
			}
			return nil, nil
		}
		if tried[best] = true; broken == nil {
			broken = err
		}
	}
	if r.Solution.Routes != nil {
		return nil, nil // of an earlier round
	}
	if v := (*vrp.Violation)(nil); errors.As(broken, &v) && v.Rule == vrp.WithinFleet {
		return nil, &manyVehicles{v, prob.Vehicles}
	}
	return nil, fmt.Errorf("the policy's routes are invalid: %w", broken)
}

// manyVehicles says that all of a policy's routes take more vehicles than there are.
type manyVehicles struct {
	broken *vrp.Violation
	most   int
}

func (e *manyVehicles) Error() string {
	return fmt.Sprintf("the policy does not know how many vehicles there are, and all of its routes take more than %d: leave the policy out to search, or draw more routes (sample:1000)", e.most)
}

func (e *manyVehicles) Unwrap() error { return e.broken }

// tourCost is Problem.Cost of a visit sequence that begins behind the depot and is filled up with
// it.
func tourCost(prob *vrp.Problem, tour []int32) (sum float64) {
	if prob.DepotCount() > 1 {
		return prob.Cost(prob.FromVisits(visitsOf(prob, tour)))
	}
	last := int32(0)
	for _, v := range tour {
		if v != last {
			sum += prob.Leg(int(last), int(v))
		}
		last = v
	}
	return sum
}
