package policy

import (
	"cmp"
	"slices"

	"haul/internal/vrp"
)

// Recombination during an active search, which samples many solutions of a problem in each
// iteration. Recombining all of them would take longer than sampling them. The best solution is
// therefore recombined with the shortest ones of each iteration, and every keptEvery iterations
// with all routes that were in those.

const (
	keptTours  = 100 // per iteration, the shortest: all 800 take ten times as long without a greater gain
	keptStarts = 4   // how many of them start a recombination with the others
	keptEvery  = 4   // iterations between two recombinations with all stored routes
)

// searchRecombiner holds the routes that an active search has found for one problem.
type searchRecombiner struct {
	*recombiner
	best  *splitTour
	pool  *routePool   // nil: more customers than maxPooled
	rank  []int        // order of an iteration's solutions by length
	tours []*splitTour // the shortest ones of an iteration, as routes
}

// newKeptJoin starts with a problem's best solution and the solutions that it was selected from.
func newSearchRecombiner(prob *vrp.Problem, begin vrp.Solution, actions []int32, tours int) *searchRecombiner {
	k := &searchRecombiner{recombiner: newRecombiner(prob)}
	k.best = k.cut(prob.Visits(begin))
	if prob.N() > maxPooled {
		return k
	}
	k.pool = newRoutePool(k.order, []*splitTour{k.best})
	steps := len(actions) / tours
	for i := range tours {
		k.pool.add(k.cut(visitsOf(prob, actions[i*steps:][:steps])))
	}
	return k
}

// add recombines the best solution with the shortest of an iteration, and reports whether it
// improved.
func (k *searchRecombiner) add(actions []int32, lengths []float32) bool {
	k.rank = k.rank[:0]
	for i := range lengths {
		k.rank = append(k.rank, i)
	}
	slices.SortStableFunc(k.rank, func(a, b int) int { return cmp.Compare(lengths[a], lengths[b]) })
	steps := len(actions) / len(lengths)
	k.tours = k.tours[:0]
	for n, i := range k.rank {
		if n > 0 && lengths[i] == lengths[k.rank[n-1]] {
			continue // probably the same solution, from another start
		}
		t := k.cut(visitsOf(k.prob, actions[i*steps:][:steps]))
		if k.pool != nil {
			k.pool.add(t)
		}
		if k.tours = append(k.tours, t); len(k.tours) == keptTours {
			break
		}
	}
	before := k.best.length
	k.takeOver(k.best, k.tours)
	for _, first := range k.tours[:min(keptStarts, len(k.tours))] {
		t := &splitTour{routes: first.routes, of: slices.Clone(first.of), length: first.length}
		k.takeOver(t, k.tours)
		if k.exchange(t, k.best); t.length < k.best.length-least {
			k.best = t
		}
	}
	if !(k.best.length < before-least) {
		return false
	}
	for r := range k.best.routes { // the memory of actions will be overwritten
		k.best.routes[r] = k.best.routes[r].clone()
	}
	return true
}

// improve recombines the best solution with all stored routes, and reports whether it improved.
func (k *searchRecombiner) improve() bool { return k.pool != nil && k.pool.improve(k.best) }

// takeMore is takeBest for another iteration's solutions, with recombination. With deep, all stored
// routes take part.
func (r *Routed) takeMore(k *searchRecombiner, actions []int32, lengths []float32, deep bool) ([]int32, error) {
	taken, err := r.takeBest(k.prob, actions, lengths)
	if err != nil {
		return nil, err
	}
	did := k.add(actions, lengths)
	if deep {
		did = k.improve() || did
	}
	if did {
		if better, ok := r.takeKept(k, len(actions)/len(lengths)); ok {
			taken = better
		}
	}
	return taken, nil
}

// takeKept stores the recombined solution in r if it is better, and returns its actions. If it
// breaks a limit of the problem, k.best is reset to r's valid solution.
func (r *Routed) takeKept(k *searchRecombiner, steps int) (actions []int32, ok bool) {
	if actions, ok = r.takeSolution(k.prob, k.solution(k.best), steps); !ok {
		k.best = k.cut(k.prob.Visits(r.Solution))
	}
	return actions, ok
}
