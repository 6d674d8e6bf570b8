package world

import "fmt"

// referee judges streams by the room's rules: each starts an episode, every step leads where the
// action leads, and nothing but the goal pays, by its rule. What passes is safe to index tables
// with.
type referee struct {
	room Room
	next [NumActions][256]Cell
}

func newReferee(room Room) *referee { return &referee{room, room.moves()} }

// judge replays one stream of a goal. Each step is looked up from its own cell, which was just
// compared with where the step before it led, so that the processor need not wait for one lookup to
// begin the next.
func (r *referee) judge(goal Goal, stream Steps) error {
	rule, start := goal.Rule(), StateOf(r.room.Start(), 0)
	at, left := start, r.room.Horizon
	for t := 0; len(stream) >= stepBytes; t++ {
		s := stream.At(0)
		stream = stream[stepBytes:]
		if s.Cell() != at.Cell() || s.Action() >= NumActions {
			return fmt.Errorf("transition %d takes action %d in %v, the agent stands in %v", t, s.Action(), s.Cell(), at.Cell())
		}
		var paid uint8
		if at, paid = rule.Enter(at, r.next[s.Action()][s.Cell()]); uint16(s)>>11 != uint16(paid) {
			return fmt.Errorf("transition %d says %#04x, a step to %v pays %d", t, uint16(s), at.Cell(), paid)
		}
		if left--; left == 0 {
			at, left = start, r.room.Horizon
		}
	}
	return nil
}

// judgeGoal replays every stream of a goal.
func (r *referee) judgeGoal(h *Header, goal int, data Steps) error {
	for s := range h.Streams {
		if err := r.judge(h.Goals[goal], data.slice(s*h.Steps, (s+1)*h.Steps)); err != nil {
			return fmt.Errorf("goal %v, stream %d: %w", h.Goals[goal], s, err)
		}
	}
	return nil
}
