package grid

import "fmt"

// Batch is many environments of one room that run in step: they share a clock, so all start and end
// their episodes together. Environment i is element i of every slice. A batch belongs to one
// goroutine.
type Batch struct {
	room   Room
	clock  int
	states []State
	rules  []Rule
	next   [NumActions][256]Cell // Room.Move as a table
}

// NewBatch makes one environment a goal, at the start of an episode; a goal may appear many times.
// The room has passed Check, and the goals are its own.
func NewBatch(room Room, goals []Goal) *Batch {
	b := &Batch{room: room, states: make([]State, len(goals)), rules: make([]Rule, len(goals))}
	for i, g := range goals {
		b.rules[i] = g.Rule()
	}
	b.next = room.Moves()
	b.Reset()
	return b
}

// Moves tabulates Move for every cell of the room.
func (r Room) Moves() (next [NumActions][256]Cell) {
	for a := range next {
		for _, c := range r.Cells() {
			next[a][c] = r.Move(c, uint8(a))
		}
	}
	return next
}

// Reset begins an episode everywhere.
func (b *Batch) Reset() {
	b.clock = 0
	start := StateOf(b.room.Start(), 0)
	for i := range b.states {
		b.states[i] = start
	}
}

// Place puts the environments where others of the same room stood: in these states, so many steps
// into an episode. It says why it cannot be.
func (b *Batch) Place(states []State, clock int) error {
	if len(states) != len(b.states) || clock < 0 || clock >= b.room.Horizon {
		return fmt.Errorf("%d agents %d steps into an episode: want %d, in 0 to %d", len(states), clock, len(b.states), b.room.Horizon-1)
	}
	for _, s := range states {
		if !b.room.Contains(s.Cell()) || int(s.Stage()) >= b.room.Stages() {
			return fmt.Errorf("an agent at %v in stage %d, outside of a %v", s.Cell(), s.Stage(), b.room)
		}
	}
	copy(b.states, states)
	b.clock = clock
	return nil
}

// Len is the number of environments.
func (b *Batch) Len() int { return len(b.states) }

// Clock is how many steps of the episode are done, less than the horizon.
func (b *Batch) Clock() int { return b.clock }

// States is where the agents stand. It is the batch's own memory: read it before the next Step.
func (b *Batch) States() []State { return b.states }

// Step takes one action everywhere and writes the rewards, each 0 or 1. At the horizon it begins
// the next episode and returns true: States are then starts, not where the last step ended.
func (b *Batch) Step(rewards, actions []uint8) (done bool) {
	n := len(b.states)
	if len(rewards) != n || len(actions) != n {
		panic("grid: one action and one reward an environment")
	}
	states, rules := b.states[:n], b.rules[:n]
	for i, a := range actions[:n] {
		s := states[i]
		states[i], rewards[i] = rules[i].Enter(s, b.next[a][s.Cell()])
	}
	b.clock++
	if b.clock < b.room.Horizon {
		return false
	}
	b.Reset()
	return true
}
