package policy

import (
	"cmp"
	"slices"

	"haul/internal/vrp"
)

// Combining tours during an active search, which draws tours of a problem again and again.
// Combining all of them each time would take longer than drawing them, so the best tour takes
// improvements from the shortest of the new tours, and now and then from all routes that were
// among those.

const (
	keptTours  = 100 // of an iteration, the shortest: all 800 take ten times as long and gain no more
	keptStarts = 4   // of those: each takes over from the others, too
	keptEvery  = 4   // iterations from one look at all kept routes to the next
)

// keptJoin is what an active search has found of one problem.
type keptJoin struct {
	*joiner
	best  *cutTour
	pool  *routePool // nil: too many customers
	rank  []int      // of an iteration's tours
	tours []*cutTour // likewise, those that are cut
}

// newKeptJoin goes on from a problem's routes and the tours that they were made of.
func newKeptJoin(prob *vrp.Problem, begin vrp.Solution, actions []int32, tours int) *keptJoin {
	k := &keptJoin{joiner: newJoiner(prob)}
	k.best = k.cut(prob.Visits(begin))
	if prob.N() > mostPooled {
		return k
	}
	k.pool = newRoutePool(k.order, []*cutTour{k.best})
	steps := len(actions) / tours
	for i := range tours {
		k.pool.add(k.cut(visitsOf(prob, actions[i*steps:][:steps])))
	}
	return k
}

// add lets the best tour take over from the shortest of an iteration, and says whether it did.
func (k *keptJoin) add(actions []int32, lengths []float32) bool {
	k.rank = k.rank[:0]
	for i := range lengths {
		k.rank = append(k.rank, i)
	}
	slices.SortStableFunc(k.rank, func(a, b int) int { return cmp.Compare(lengths[a], lengths[b]) })
	steps := len(actions) / len(lengths)
	k.tours = k.tours[:0]
	for n, i := range k.rank {
		if n > 0 && lengths[i] == lengths[k.rank[n-1]] {
			continue // most likely the same, from another start
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
		t := &cutTour{routes: first.routes, of: slices.Clone(first.of), length: first.length}
		k.takeOver(t, k.tours)
		if k.exchange(t, k.best); t.length < k.best.length-least {
			k.best = t
		}
	}
	if !(k.best.length < before-least) {
		return false
	}
	for r := range k.best.routes { // what came from actions is overwritten by the next
		k.best.routes[r] = k.best.routes[r].clone()
	}
	return true
}

// improve lets the best tour take over from all kept routes, and says whether it did.
func (k *keptJoin) improve() bool { return k.pool != nil && k.pool.improve(k.best) }

// takeMore is takeBest of one more iteration's tours, which join what is kept; a deep one joins all
// that is kept.
func (r *Routed) takeMore(k *keptJoin, actions []int32, lengths []float32, deep bool) ([]int32, error) {
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

// takeKept takes the kept routes where they are better, and returns them as actions. Where the
// problem does not allow them, what is kept goes on from what it allows.
func (r *Routed) takeKept(k *keptJoin, steps int) (actions []int32, ok bool) {
	if actions, ok = r.takeSolution(k.prob, k.solution(k.best), steps); !ok {
		k.best = k.cut(k.prob.Visits(r.Solution))
	}
	return actions, ok
}
