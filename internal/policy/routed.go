package policy

import (
	"errors"
	"fmt"

	"haul/internal/vrp"
)

// Routed holds a problem's best solution so far, which the validator has accepted, and its cost by
// the problem's own distances.
type Routed struct {
	Solution   vrp.Solution
	Cost       float64
	Iterations int // completed iterations of an active search
}

// Reached returns how many of the first problems have routes: fewer than all if routing was
// interrupted.
func Reached(routed []Routed) int {
	for i := range routed {
		if routed[i].Solution.Routes == nil {
			return i
		}
	}
	return len(routed)
}

// IterationsOf returns the least and the greatest number of iterations over several problems.
func IterationsOf(routed []Routed) *Iterations {
	all := &Iterations{routed[0].Iterations, routed[0].Iterations}
	for _, r := range routed {
		all.Fewest, all.Most = min(all.Fewest, r.Iterations), max(all.Most, r.Iterations)
	}
	return all
}

// take selects the best of the solutions. With the Euclidean metric the device's lengths decide.
// With another or a rounded metric it computes the cost of each. If the best one breaks a limit
// that the device does not check exactly, such as the number of vehicles or a time window's last
// digit, the next best is tried.
func (r *Routed) take(prob *vrp.Problem, actions []int32, lengths []float32) error {
	_, err := r.takeBest(prob, actions, lengths)
	return err
}

// takeRecombined is takeBest for the recombination of the solutions with the previous best.
func (r *Routed) takeRecombined(prob *vrp.Problem, actions []int32, lengths []float32) ([]int32, error) {
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
	if better, ok := r.takeSolution(prob, newRecombiner(prob).join(tours), steps); ok {
		return better, nil
	}
	return taken, nil
}

// takeSolution stores a recombined solution if it is valid and better, and reports whether it did.
// actions is nil if the solution has more visits than steps. It may break limits of the problem:
// the number of vehicles, or the last digit of a window.
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

// visitsOf converts actions to the form of Problem.FromVisits. With several depots, a first action
// that is a depot is where the first vehicle starts; FromVisits expects it after a first visit.
func visitsOf(prob *vrp.Problem, actions []int32) []int32 {
	if prob.DepotCount() == 1 {
		return actions
	}
	return append([]int32{0}, actions...)
}

// takeBest is take, and returns the actions of the solution that it stored; nil if the previous one
// is the best.
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
		return nil, nil // the previous solution is as good
	}
	if v := (*vrp.Violation)(nil); errors.As(broken, &v) && v.Rule == vrp.WithinFleet {
		return nil, &manyVehicles{v, prob.Vehicles}
	}
	return nil, fmt.Errorf("the policy's routes are invalid: %w", broken)
}

// manyVehicles is the error if all of a policy's solutions use more vehicles than the problem has.
type manyVehicles struct {
	broken *vrp.Violation
	most   int
}

func (e *manyVehicles) Error() string {
	return fmt.Sprintf("the policy does not know how many vehicles there are, and all of its routes take more than %d: leave the policy out to search, or draw more routes (sample:1000)", e.most)
}

func (e *manyVehicles) Unwrap() error { return e.broken }

// tourCost is Problem.Cost of a visit sequence that leaves out the first depot and is padded with
// the depot.
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
