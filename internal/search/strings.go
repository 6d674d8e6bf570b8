package search

import (
	"sort"

	"haul/internal/search/model"
)

// Slack induction by string removals, SISR (Christiaens and Vanden Berghe, "Slack Induction by
// String Removals for Vehicle Routing Problems", Transportation Science 54(2), 2020,
// https://doi.org/10.1287/trsc.2019.0914): strings of customers leave neighbouring routes, and each
// is inserted where it costs least.

// The method's own constants.
const (
	removedMean = 10   // customers that an iteration removes, on average
	stringMax   = 10   // the longest string removed
	splitChance = 0.5  // of keeping a few customers inside a removed string
	splitDeeper = 0.01 // of keeping one more
	// the same for small problems, whose routes are hardly longer than a string
	splitDeeperSmall = 0.6
)

// stringStore is the routes that strings are removed from.
type stringStore interface {
	// mayCut reports whether a string may be removed around a customer: it is on a route that the
	// iteration has removed none from, or with few routes perhaps another one.
	mayCut(v int32, few bool) bool
	// cutString removes a string around a customer, if it is on a route.
	cutString(v int32, longest float64)
}

// routeStore is the routes that an iteration changes.
type routeStore interface {
	stringStore
	routeCount() int
	begin()      // of an iteration
	compactAll() // drops the removed customers from their routes
	// place gives a task its cheapest insertion, or leaves it out: costs from most on need not be
	// found.
	place(task int32, noise, most float64)
	polish() // the routes that the iteration changed
	keep()   // the iteration's routes
	undo()   // the iteration
	remember()
}

// stringCount draws how many strings an iteration removes from, if it removes that many customers
// on average.
func stringCount(s *model.Stream, longest, removed float64) int {
	return 1 + int(s.Float()*(4*removed/(1+longest)-1))
}

// removeStrings removes a string around a customer, and one from each of a few routes near it.
func removeStrings(st stringStore, seed int32, near []int32, count int, longest float64, few bool) {
	st.cutString(seed, longest)
	for _, v := range near {
		if count == 1 {
			return
		}
		if st.mayCut(v, few) {
			st.cutString(v, longest)
			count--
		}
	}
}

// drawString draws a run that the position at is in, in a route of count positions: span positions
// from lo on, of which kept from hole on stay.
func drawString(s *model.Stream, at, count int, longest, deeper float64) (lo, span, hole, kept int) {
	size := 1 + int(s.Float()*min(longest, float64(count)))
	if size > 1 && size < count && s.Float() < splitChance {
		for kept = 1; size+kept < count && s.Float() < deeper; kept++ {
		}
	}
	span = size + kept
	lo = max(0, at-span+1)
	lo += s.IntN(min(at, count-span) - lo + 1)
	hole = lo + span
	if kept > 0 {
		hole = lo + 1 + s.IntN(size-1)
	}
	return lo, span, hole, kept
}

// overlooking is a stream that overlooks a position now and then (Christiaens and Vanden Berghe,
// 2020: blinks).
type overlooking struct {
	model.Stream
	untilSkip int // positions until the next one overlooked
}

// overlooks reports whether the next position is overlooked.
func (o *overlooking) overlooks() bool {
	if o.untilSkip == 0 {
		o.untilSkip = o.UntilNextSkip()
		return true
	}
	o.untilSkip--
	return false
}

// insertionOrder sorts tasks to insert: at random, by amount, far first, near first, by the
// window's length or its end.
type insertionOrder struct {
	by   [13][]uint32 // by rule and task: what comes first, the least
	keys []uint64     // of the tasks in the list; the random half settles ties
	line []int32
}

// newInsertionOrder takes the tasks' amounts and distances, and the lengths and ends of their
// windows; nil: no rule asks for them.
func newInsertionOrder(amounts, distances, lengths, ends []uint32) (o insertionOrder) {
	none, far := make([]uint32, len(amounts)), make([]uint32, len(distances))
	for v, d := range distances {
		far[v] = 1<<30 - d
	}
	for v, a := range amounts {
		amounts[v] = 1<<31 - 1 - a
	}
	o.by = [13][]uint32{none, none, none, none, amounts, amounts, amounts, amounts, far, far, distances, lengths, ends}
	o.keys = make([]uint64, 0, rankMost)
	return o
}

// sort sorts a list by a rule.
func (o *insertionOrder) sort(s *model.Stream, rule int, list []int32) {
	by := o.by[rule]
	o.keys = o.keys[:0]
	for _, v := range list {
		o.keys = append(o.keys, s.Next()>>32|uint64(by[v])<<32)
	}
	o.sortByKeys(list)
}

// sortByKeys sorts a list by keys, the least first.
func (o *insertionOrder) sortByKeys(list []int32) {
	switch n := len(list); {
	case flatAVX512 && n > 0 && n <= rankMost:
		// Which of two comes first is a toss: ranks are counted without a branch.
		o.line = append(o.line[:0], list...)
		rankAVX512(&o.keys[:rankMost][0], n, &list[0], &o.line[0])
	case n > 256: // that of all tasks at the start
		sort.Stable(byKeys{list, o.keys})
	default:
		sortByKey(list, o.keys)
	}
}

// byKeys is a list and its keys, for sorting both.
type byKeys struct {
	list []int32
	keys []uint64
}

func (b byKeys) Len() int           { return len(b.list) }
func (b byKeys) Less(i, j int) bool { return b.keys[i] < b.keys[j] }
func (b byKeys) Swap(i, j int) {
	b.list[i], b.list[j], b.keys[i], b.keys[j] = b.list[j], b.list[i], b.keys[j], b.keys[i]
}

// sortByKey sorts a short list by keys, which are sorted as well.
func sortByKey(list []int32, keys []uint64) {
	for i, key := range keys {
		v, j := list[i], i
		for ; j > 0 && keys[j-1] > key; j-- {
			keys[j], list[j] = keys[j-1], list[j-1]
		}
		keys[j], list[j] = key, v
	}
}
