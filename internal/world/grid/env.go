package grid

import (
	"fmt"

	"haul/internal/world"
)

// A room as a world: the agent sees the column and the row, and earns 0 or 1.

// Space is what an agent in the room sees, does and is paid.
func (r Room) Space() world.Space {
	return world.Space{Fields: []world.Field{{Name: "x", Size: r.Size}, {Name: "y", Size: r.Size}}, Actions: NumActions, Rewards: []float64{0, 1}}
}

// Name is the game's, as the setting env has it.
func (r Room) Name() string { return r.Kind.String() }

// Describe is the room in words.
func (r Room) Describe() string {
	return fmt.Sprintf("%s, %d×%d, episodes of %d steps", r.Kind.Title(), r.Size, r.Size, r.Horizon)
}

// Limit is the horizon: every episode has that many steps.
func (r Room) Limit() int { return r.Horizon }

// Side is the number of cells along a wall.
func (r Room) Side() int { return r.Size }

// Places are those that pay: of Dark Room one, of Key-to-Door the key and the door.
func (r Room) Places() int {
	if r.Kind == KeyDoor {
		return 2
	}
	return 1
}

// Marks are the cell that pays and, where there is one, the key.
func (r Room) Marks(t world.Task) (goal [2]int, key *[2]int) {
	g := t.(Goal)
	if g.Keyed() {
		at := g.Key().XY()
		key = &at
	}
	return g.Cell().XY(), key
}

// Best is the best return of an episode.
func (r Room) Best(t world.Task) float64 { return r.Optimal(t.(Goal)) }

// NewEnv is a goal of the room being played.
func (r Room) NewEnv(t world.Task) world.Env {
	e := &env{room: r, rule: t.(Goal).Rule()}
	e.Reset()
	return e
}

// env is one agent in a room.
type env struct {
	room  Room
	rule  Rule
	state State
	clock int
}

func (e *env) Reset() { e.state, e.clock = StateOf(e.room.Start(), 0), 0 }

func (e *env) Observe(fields []int32) {
	fields[0], fields[1] = int32(e.state.Cell().X()), int32(e.state.Cell().Y())
}

func (e *env) Step(action int) (int, bool) {
	var paid uint8
	e.state, paid = e.rule.Enter(e.state, e.room.Move(e.state.Cell(), uint8(action)))
	e.clock++
	return int(paid), e.clock == e.room.Horizon
}
