package grid

import (
	"fmt"

	"haul/internal/world"
)

// A room as a world: the agent sees the column and the row, and rewards are 0 or 1.

// Space returns the observations, actions and rewards in the room.
func (r Room) Space() world.Space {
	return world.Space{Fields: []world.Field{{Name: "x", Size: r.Size}, {Name: "y", Size: r.Size}}, Actions: NumActions, Rewards: []float64{0, 1}}
}

// Name returns the game's name in the setting env.
func (r Room) Name() string { return r.Kind.String() }

// Describe returns a description of the room.
func (r Room) Describe() string {
	return fmt.Sprintf("%s, %d×%d, episodes of %d steps", r.Kind.Title(), r.Size, r.Size, r.Horizon)
}

// Limit returns the horizon, which is the length of every episode.
func (r Room) Limit() int { return r.Horizon }

// Side returns the number of cells along a wall.
func (r Room) Side() int { return r.Size }

// Places returns the number of cells with a reward: 1 in Dark Room, 2 in Key-to-Door.
func (r Room) Places() int {
	if r.Kind == KeyDoor {
		return 2
	}
	return 1
}

// Marks returns the cell with the (last) reward and the key, which is nil if the goal has none.
func (r Room) Marks(t world.Task) (goal [2]int, key *[2]int) {
	g := t.(Goal)
	if g.Keyed() {
		at := g.Key().XY()
		key = &at
	}
	return g.Cell().XY(), key
}

// Best returns the largest return of an episode.
func (r Room) Best(t world.Task) float64 { return r.Optimal(t.(Goal)) }

// NewEnv returns an environment of a goal.
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
