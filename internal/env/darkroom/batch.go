package darkroom

import "fmt"

// Batch is many environments of one room that run in step: they share a clock, so all start and end
// their episodes together. Environment i is element i of every slice. A batch belongs to one goroutine.
type Batch struct {
	room  Room
	clock int
	cells []Cell
	goals []Goal
	next  [NumActions][256]Cell // Room.Move as a table
}

// NewBatch makes one environment a goal, at the start of an episode; a goal may appear many times. The room
// has passed Check.
func NewBatch(room Room, goals []Goal) *Batch {
	b := &Batch{room: room, cells: make([]Cell, len(goals)), goals: append([]Goal(nil), goals...)}
	b.next = room.moves()
	b.Reset()
	return b
}

// moves tabulates Move for every cell of the room.
func (r Room) moves() (next [NumActions][256]Cell) {
	for a := range next {
		for _, c := range r.Goals() {
			next[a][c] = r.Move(c, uint8(a))
		}
	}
	return next
}

// Reset begins an episode everywhere.
func (b *Batch) Reset() {
	b.clock = 0
	start := b.room.Start()
	for i := range b.cells {
		b.cells[i] = start
	}
}

// Place puts the environments where others of the same room stood: in these cells, so many steps into an episode. It says why it cannot be.
func (b *Batch) Place(cells []Cell, clock int) error {
	if len(cells) != len(b.cells) || clock < 0 || clock >= b.room.Horizon {
		return fmt.Errorf("%d agents %d steps into an episode: want %d, in 0 to %d", len(cells), clock, len(b.cells), b.room.Horizon-1)
	}
	for _, c := range cells {
		if !b.room.Contains(c) {
			return fmt.Errorf("an agent at %v, outside of a %v", c, b.room)
		}
	}
	copy(b.cells, cells)
	b.clock = clock
	return nil
}

// Len is the number of environments.
func (b *Batch) Len() int { return len(b.cells) }

// Clock is how many steps of the episode are done, less than the horizon.
func (b *Batch) Clock() int { return b.clock }

// Cells is where the agents stand. It is the batch's own memory: read it before the next Step.
func (b *Batch) Cells() []Cell { return b.cells }

// Goals is what pays, environment by environment. It is the batch's own memory.
func (b *Batch) Goals() []Goal { return b.goals }

// Step takes one action everywhere and writes the rewards, each 0 or 1. At the horizon it begins the next
// episode and returns true: Cells are then starts, not where the last step ended.
func (b *Batch) Step(rewards, actions []uint8) (done bool) {
	n := len(b.cells)
	if len(rewards) != n || len(actions) != n {
		panic("darkroom: one action and one reward an environment")
	}
	cells, goals := b.cells[:n], b.goals[:n]
	for i, a := range actions[:n] {
		c := b.next[a][cells[i]]
		cells[i] = c
		rewards[i] = pays(c, goals[i])
	}
	b.clock++
	if b.clock < b.room.Horizon {
		return false
	}
	b.Reset()
	return true
}

// pays is 1 on the goal and 0 elsewhere, without a branch: an agent that learns makes it unpredictable.
func pays(c Cell, goal Goal) uint8 { return uint8((uint32(c^goal) - 1) >> 31) }
