package grid

import "fmt"

// Batch is many environments of one room that step together. Their episodes start and end at the
// same steps. Environment i is element i of every slice. Only one goroutine may use a batch.
type Batch struct {
	room   Room
	clock  int
	states []State
	rules  []Rule
	next   [NumActions][256]Cell // Room.Move as a table
}

// NewBatch makes one environment per goal, at the start of an episode. A goal may appear many
// times. The room must have passed Check, and the goals must be goals of the room.
func NewBatch(room Room, goals []Goal) *Batch {
	b := &Batch{room: room, states: make([]State, len(goals)), rules: make([]Rule, len(goals))}
	for i, g := range goals {
		b.rules[i] = g.Rule()
	}
	b.next = room.Moves()
	b.Reset()
	return b
}

// Moves returns Move as a table, for every cell of the room.
func (r Room) Moves() (next [NumActions][256]Cell) {
	for a := range next {
		for _, c := range r.Cells() {
			next[a][c] = r.Move(c, uint8(a))
		}
	}
	return next
}

// Reset begins an episode in all environments.
func (b *Batch) Reset() {
	b.clock = 0
	start := StateOf(b.room.Start(), 0)
	for i := range b.states {
		b.states[i] = start
	}
}

// Place sets the environments to the given states, clock steps into an episode. It returns an error
// if the room has no such state.
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

// Clock returns the number of steps since the episode began, which is less than the horizon.
func (b *Batch) Clock() int { return b.clock }

// States returns the agents' states. The next Step overwrites the slice.
func (b *Batch) States() []State { return b.states }

// Step applies one action per environment and writes the rewards, each 0 or 1. At the horizon it
// begins the next episode and returns true: States are then the starts.
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
