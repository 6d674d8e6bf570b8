package agent

import (
	"fmt"
	"math/bits"

	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/rng"
	"haul/internal/world"
)

// What a reader could break: a label of a search is a function of the tokens up to its own, of
// where actions lead and, if several actions are equally good, of chance. It uses nothing of the
// task, so that an agent learns to search also for goals that no history has.

// seeker makes the labels of a search. Until a context has shown where a stage of the task is paid
// (Dark Room has one stage, Key-to-Door the key and the door), the label is an action of a shortest
// way to a state that the context has not shown in that stage. From then on the label stays what
// hindsight holds best. Where actions lead is read off the histories themselves.
type seeker struct {
	sizes   []int // of the fields of an observation
	width   int   // words of a token
	reward  int   // its place in a token; the type follows it
	actions int
	stages  int
	limit   int // steps of an episode
	states  int
	next    []int32  // [state, action]: where it leads; -1: never tried
	depth   int      // distances lie below it
	words   int      // of a set of states
	rings   []uint64 // [state, distance]: the states that are so many actions away
}

// mostStates is how many states a world may have that agents learn to search.
const mostStates = 1024

// newSeeker reads where actions lead off the histories to learn from.
func newSeeker(l *dataset) (*seeker, error) {
	staged, ok := l.world.(world.Staged)
	if !ok {
		return nil, fmt.Errorf("labels seek are made in rooms alone, and these are histories of a %v: set labels to best or actions", l.world)
	}
	observed := len(l.trainSpec.Fields) - 2
	s := &seeker{width: l.trainSpec.Width(), reward: observed + model.AfterReward, actions: l.space.Actions, limit: l.world.Limit(), states: 1}
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

// episodes calls do with the records of every episode to learn from.
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

// follow notes where the actions of an episode led; after the last nobody looked.
func (s *seeker) follow(records []int32, stride int) {
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

// measure finds the states at every distance from each.
func (s *seeker) measure() {
	s.words = (s.states + 63) / 64
	far := make([]int, s.states*s.states) // actions from one to another; -1: no way
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

// ring is the states n actions away.
func (s *seeker) ring(state, n int) []uint64 {
	return s.rings[(state*s.depth+n)*s.words:][:s.words]
}

// search is what a context has shown so far.
type search struct {
	stage, clock int
	found        [maxStages]bool
	seen         [maxStages][mostStates / 64]uint64
}

const maxStages = 2

// choices numbers the draws of relabel past those of the row itself (kernel.RegionSpec.Row).
const choices = 1 << 31

// relabel writes the labels of the searches in row g of spec, whose other labels are the best
// actions.
func (s *seeker) relabel(labels, index, first []int32, spec *kernel.RegionSpec, g uint64) {
	var at search
	begins := true // the token begins a region, and so an episode
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
			continue // all is done
		}
		state := 0
		for f, size := range s.sizes {
			state = state*size + int(token[f])
		}
		seen := at.seen[at.stage][:s.words]
		seen[state/64] |= 1 << (state % 64)
		if !at.found[at.stage] {
			labels[2*k] = s.towards(state, seen, func(n int) int {
				if n == 1 {
					return 0 // whatever is drawn
				}
				return int(rng.Below(rng.At(spec.Seed, g, choices|uint32(k), spec.Purpose)[0], uint32(n)))
			})
		}
	}
}

// move takes a token's reward in. The reward that a region's first token tells of was paid at the
// end of an episode that is not in the context: it is the last stage's. Where the last stage's ends
// an episode, the next is not told from the rest of this one: all is found by then.
func (x *search) move(s *seeker, paid, begins bool) {
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

// towards is an action of a shortest way to a state that is not in seen, where several are the one
// that pick names; -1 where there is none.
func (s *seeker) towards(state int, seen []uint64, pick func(n int) int) int32 {
	next := s.next[state*s.actions:][:s.actions]
	for n := 1; n < s.depth; n++ {
		good, count := uint64(0), 0 // actions, a bit each
		for a, to := range next {
			switch {
			case to < 0:
				continue
			case n == 1 && seen[to/64]>>(to%64)&1 != 0: // most often all that is asked
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

// any tells whether a state n actions away is not in seen.
func (s *seeker) any(state, n int, seen []uint64) bool {
	for i, w := range s.ring(state, n) {
		if w&^seen[i] != 0 {
			return true
		}
	}
	return false
}
