package agent

import (
	"fmt"
	"math/bits"

	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/rng"
	"haul/internal/world"
)

// The label of a search depends only on the tokens up to its own, on the world's transitions and,
// if several actions are equally good, on a random number. It uses nothing of the task, so that an
// agent learns to search for goals that no history has.

// explorationLabeler makes exploration labels. A task has stages (Dark Room one; Key-to-Door the
// key and the door). Until a context has shown the reward of a stage, the label is the first action
// of a shortest path to a state that the context has not shown in that stage. Afterwards the label
// stays the best action in hindsight. The transitions of the world are read from the histories.
type explorationLabeler struct {
	sizes   []int // by field of an observation
	width   int   // per token
	reward  int   // index of the reward in a token; the type follows it
	actions int
	stages  int
	limit   int // per episode
	states  int
	next    []int32  // [state, action]: the next state; -1: never tried
	depth   int      // upper bound of all distances
	words   int      // words per set of states
	rings   []uint64 // [state, distance]: the set of states at that distance
}

// mostStates is the largest number of states of a world with exploration labels.
const mostStates = 1024

// newExplorationLabeler reads the world's transitions from the histories to learn from.
func newExplorationLabeler(l *dataset) (*explorationLabeler, error) {
	staged, ok := l.world.(world.Staged)
	if !ok {
		return nil, fmt.Errorf("labels seek are made in rooms alone, and these are histories of a %v: set labels to best or actions", l.world)
	}
	observed := len(l.trainSpec.Fields) - 2
	s := &explorationLabeler{width: l.trainSpec.Width(), reward: observed + model.AfterReward, actions: l.space.Actions, limit: l.world.Limit(), states: 1}
	s.stages = staged.Places()
	for _, f := range l.space.Fields {
		s.sizes = append(s.sizes, f.Size)
		if s.states *= f.Size; s.states > mostStates {
			return nil, fmt.Errorf("labels seek are made in rooms of up to %d cells, and a %v has more: set labels to best or found", mostStates, l.world)
		}
	}
	s.next = make([]int32, s.states*s.actions)
	for i := range s.next {
		s.next[i] = -1
	}
	l.episodes(s.follow)
	s.measure()
	return s, nil
}

// episodes calls do with the records of each episode to learn from.
func (l *dataset) episodes(do func(records []int32, stride int)) {
	spec := &l.trainSpec
	if x := spec.Unequal; x != nil {
		for _, span := range x.Spans {
			records := l.train[span.First*int64(l.stride):][:span.Records*l.stride]
			starts := x.Starts[span.Start:][:span.Episodes]
			for e, from := range starts {
				to := span.Records
				if e+1 < len(starts) {
					to = int(starts[e+1])
				}
				do(records[int(from)*l.stride:to*l.stride], l.stride)
			}
		}
		return
	}
	for stream := range spec.Streams {
		for from := 0; from < spec.Steps; from += spec.Horizon {
			to := min(spec.Steps, from+spec.Horizon)
			do(l.train[(stream*spec.Steps+from)*l.stride:(stream*spec.Steps+to)*l.stride], l.stride)
		}
	}
}

// follow notes the transitions of an episode. The result of its last action was not observed.
func (s *explorationLabeler) follow(records []int32, stride int) {
	value := func(record []int32, b int) int { return int(record[b/4] >> (uint(8*b) & 31) & 0xff) }
	last, action := -1, 0
	for at := 0; at < len(records); at += stride {
		record, state := records[at:][:stride], 0
		for f, size := range s.sizes {
			state = state*size + value(record, f)
		}
		if last >= 0 {
			s.next[last*s.actions+action] = int32(state)
		}
		last, action = state, value(record, len(s.sizes))
	}
}

// measure computes the states at every distance from each state.
func (s *explorationLabeler) measure() {
	s.words = (s.states + 63) / 64
	far := make([]int, s.states*s.states) // number of actions from one state to another; -1: no path
	queue := make([]int32, 0, s.states)
	for from := range s.states {
		to := far[from*s.states:][:s.states]
		for i := range to {
			to[i] = -1
		}
		to[from] = 0
		queue = append(queue[:0], int32(from))
		for i := 0; i < len(queue); i++ {
			for _, n := range s.next[int(queue[i])*s.actions:][:s.actions] {
				if n >= 0 && to[n] < 0 {
					to[n] = to[queue[i]] + 1
					queue = append(queue, n)
					s.depth = max(s.depth, to[n])
				}
			}
		}
	}
	s.depth++
	s.rings = make([]uint64, s.states*s.depth*s.words)
	for from := range s.states {
		for to, n := range far[from*s.states:][:s.states] {
			if n >= 0 {
				s.ring(from, n)[to/64] |= 1 << (to % 64)
			}
		}
	}
}

// ring returns the set of states at distance n.
func (s *explorationLabeler) ring(state, n int) []uint64 {
	return s.rings[(state*s.depth+n)*s.words:][:s.words]
}

// search holds the states and rewards that a context has shown so far.
type search struct {
	stage, clock int
	found        [maxStages]bool
	seen         [maxStages][mostStates / 64]uint64
}

const maxStages = 2

// choices is the first index of relabel's random numbers, above those of kernel.RegionSpec.Row.
const choices = 1 << 31

// relabel writes the exploration labels in row g of spec. The other labels are the best actions.
func (s *explorationLabeler) relabel(labels, index, first []int32, spec *kernel.RegionSpec, g uint64) {
	var at search
	begins := true // the token begins a region and therefore an episode
	for k := range first {
		if int(first[k]) == k {
			at, begins = search{}, true
		}
		token := index[k*s.width:][:s.width]
		if token[s.reward+1] != model.TypeTransition {
			begins = true
			continue
		}
		at.move(s, token[s.reward] > 0, begins)
		begins = false
		if at.stage >= s.stages {
			continue // all stages are found
		}
		state := 0
		for f, size := range s.sizes {
			state = state*size + int(token[f])
		}
		seen := at.seen[at.stage][:s.words]
		seen[state/64] |= 1 << (state % 64)
		if !at.found[at.stage] {
			labels[2*k] = s.nextAction(state, seen, func(n int) int {
				if n == 1 {
					return 0 // for any random number
				}
				return int(rng.Below(rng.At(spec.Seed, g, choices|uint32(k), spec.Purpose)[0], uint32(n)))
			})
		}
	}
}

// move updates the search with a token's reward. A region's first token holds the reward of the end
// of an episode before the context, which is the last stage's. If that reward ends an episode,
// nothing marks the start of the next episode; this does not matter, because all stages are found
// by then.
func (x *search) move(s *explorationLabeler, paid, begins bool) {
	if begins {
		x.stage, x.clock = 0, 0
		if paid {
			x.found[s.stages-1] = true
		}
		return
	}
	x.clock++
	if paid && x.stage < s.stages {
		x.found[x.stage] = true
		if s.stages > 1 {
			x.stage++
		}
	}
	if x.clock == s.limit {
		x.stage, x.clock = 0, 0
	}
}

// nextAction returns the first action of a shortest path to a state that is not in seen, or -1 if
// there is none. pick chooses among several such actions.
func (s *explorationLabeler) nextAction(state int, seen []uint64, pick func(n int) int) int32 {
	next := s.next[state*s.actions:][:s.actions]
	for n := 1; n < s.depth; n++ {
		good, count := uint64(0), 0 // one bit per action
		for a, to := range next {
			switch {
			case to < 0:
				continue
			case n == 1 && seen[to/64]>>(to%64)&1 != 0: // the usual case
				continue
			case n > 1 && !s.any(int(to), n-1, seen):
				continue
			}
			good |= 1 << a
			count++
		}
		if count > 0 {
			for range pick(count) {
				good &= good - 1
			}
			return int32(bits.TrailingZeros64(good))
		}
	}
	return -1
}

// any reports whether a state at distance n is not in seen.
func (s *explorationLabeler) any(state, n int, seen []uint64) bool {
	for i, w := range s.ring(state, n) {
		if w&^seen[i] != 0 {
			return true
		}
	}
	return false
}
