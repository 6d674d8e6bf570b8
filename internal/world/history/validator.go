package history

import (
	"fmt"

	"haul/internal/world/grid"
)

// validator validates streams by the room's rules: a stream starts with an episode, every step
// moves as its action says, and rewards follow the goal's rule. Cells of valid streams are safe
// indices.
type validator struct {
	room grid.Room
	next [grid.NumActions][256]grid.Cell
}

func newValidator(room grid.Room) *validator { return &validator{room, room.Moves()} }

// validate replays one stream of a goal. Each step is looked up from the recorded cell, which was
// compared with the previous step's result, so that the processor can start a lookup before the
// previous one is done.
func (r *validator) validate(goal grid.Goal, stream Steps) error {
	rule, start := goal.Rule(), grid.StateOf(r.room.Start(), 0)
	at, left := start, r.room.Horizon
	for t := 0; len(stream) >= stepBytes; t++ {
		s := stream.At(0)
		stream = stream[stepBytes:]
		if s.Cell() != at.Cell() || s.Action() >= grid.NumActions {
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

// validateGoal replays every stream of a goal.
func (r *validator) validateGoal(h *Header, goal int, data Steps) error {
	for s := range h.Streams {
		if err := r.validate(h.Goals[goal], data.slice(s*h.Steps, (s+1)*h.Steps)); err != nil {
			return fmt.Errorf("goal %v, stream %d: %w", h.Goals[goal], s, err)
		}
	}
	return nil
}
