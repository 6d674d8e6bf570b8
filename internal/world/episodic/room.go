// Package episodic has the games Dark Room and Dark Key-to-Door in the variants that offline
// in-context reinforcement learning is compared on (Tarasov et al. 2025). `haul data` makes
// histories of them. Rooms have any size, episodes end when the task is done, and learners are
// tabular. An agent sees only its cell.
//
// Histories on disk contain packed goals and numbered actions, and published tables depend on each
// learner's random numbers: packing, action order and draws must not change.
package episodic

import (
	"fmt"

	"haul/internal/rng"
	"haul/internal/world"
	"haul/internal/world/grid"
)

// EnvName is the name of these worlds in files and checkpoints.
const EnvName = "episodic"

// A room's side lies in [MinSize, MaxSize], the range that a Goal can encode.
const (
	MinSize    = 2
	MaxSize    = 64
	MaxHorizon = 1 << 16
)

// Room is a square of cells, a time limit in steps, and the game.
type Room struct {
	Env      string    `json:"env"` // EnvName
	Kind     grid.Kind `json:"game"`
	Size     int       `json:"size"`
	Horizon  int       `json:"horizon"`
	Anywhere bool      `json:"start_anywhere"` // episodes begin in any cell instead of the centre
}

// NewRoom returns a room of the game. Dark Room begins in the centre, Key-to-Door in any cell.
func NewRoom(kind grid.Kind, size, horizon int) Room {
	return Room{Env: EnvName, Kind: kind, Size: size, Horizon: horizon, Anywhere: kind == grid.KeyDoor}
}

// Check returns an error if a value is out of range.
func (r Room) Check() error {
	switch {
	case r.Env != EnvName:
		return fmt.Errorf("a world of the kind %q: want %s", r.Env, EnvName)
	case r.Size < MinSize || r.Size > MaxSize:
		return fmt.Errorf("a room of %d by %d cells: want sides of %d to %d cells", r.Size, r.Size, MinSize, MaxSize)
	case r.Horizon < 1 || r.Horizon > MaxHorizon:
		return fmt.Errorf("a horizon of %d steps: want 1 to %d", r.Horizon, MaxHorizon)
	}
	return nil
}

func (r Room) String() string {
	return fmt.Sprintf("%d×%d %s whose episodes end with the task, after %d steps at most", r.Size, r.Size, r.Kind.Title(), r.Horizon)
}

// Name returns EnvName.
func (r Room) Name() string { return EnvName }

// Describe returns a description of the room.
func (r Room) Describe() string {
	return fmt.Sprintf("%s, %d×%d, episodes end with the task, after %d steps at most", r.Kind.Title(), r.Size, r.Size, r.Horizon)
}

// Space returns the observations, actions and rewards in the room.
func (r Room) Space() world.Space {
	return world.Space{Fields: []world.Field{{Name: "x", Size: r.Size}, {Name: "y", Size: r.Size}}, Actions: grid.NumActions, Rewards: []float64{0, 1}}
}

// Limit returns the largest number of steps of an episode.
func (r Room) Limit() int { return r.Horizon }

// Side returns the number of cells along a wall.
func (r Room) Side() int { return r.Size }

// Places returns the number of cells with a reward: 1 in Dark Room, 2 in Key-to-Door.
func (r Room) Places() int {
	if r.Kind == grid.KeyDoor {
		return 2
	}
	return 1
}

// Marks returns the cell with the last reward and the key, which is nil if the goal has none.
func (r Room) Marks(t world.Task) (goal [2]int, key *[2]int) {
	g := t.(Goal)
	if g.keyed() {
		at := g.Key()
		key = &at
	}
	return g.Cell(), key
}

// Best returns the largest return of an episode. If episodes begin in any cell, it counts
// from the best start: from other starts the path may exceed the time limit.
func (r Room) Best(t world.Task) float64 {
	g := t.(Goal)
	first := 1
	if !r.Anywhere {
		first = max(1, apart(r.centre(), g.Key()))
	}
	out := 0.0
	if first <= r.Horizon {
		out++
	}
	if g.keyed() && first+apart(g.Key(), g.Cell()) <= r.Horizon {
		out++
	}
	return out
}

func (r Room) centre() [2]int { return [2]int{r.Size / 2, r.Size / 2} }

// apart returns the length of a shortest path.
func apart(a, b [2]int) int { return abs(a[0]-b[0]) + abs(a[1]-b[1]) }

func abs(v int) int { return max(v, -v) }

// NewEnv returns an environment of a goal. Seed selects the starts of its episodes. Without it they
// follow from the goal's number.
func (r Room) NewEnv(t world.Task) world.Env {
	e := &Env{room: r, goal: t.(Goal), seed: uint64(t.(Goal))}
	e.Reset()
	return e
}

// Env is one agent in a room.
type Env struct {
	room    Room
	goal    Goal
	seed    uint64
	life    uint64
	episode uint32

	x, y  int
	holds bool // whether the agent has the key
	clock int
}

// Seed makes seed and life select the starts of the episodes.
func (e *Env) Seed(seed, life uint64) {
	e.seed, e.life, e.episode = seed, life, 0
	e.Reset()
}

// Reset begins an episode.
func (e *Env) Reset() {
	e.x, e.y = e.room.Size/2, e.room.Size/2
	if e.room.Anywhere {
		w := rng.At(e.seed, e.life, e.episode, rng.Starts)
		e.x, e.y = int(rng.Below(w[0], uint32(e.room.Size))), int(rng.Below(w[1], uint32(e.room.Size)))
	}
	e.episode++
	e.clock, e.holds = 0, !e.goal.keyed()
}

// Observe writes the column and the row.
func (e *Env) Observe(fields []int32) { fields[0], fields[1] = int32(e.x), int32(e.y) }

// Step applies an action. The key gives a reward once. The goal, or the door if the agent has the
// key, gives a reward and ends the episode.
func (e *Env) Step(action int) (reward int, finished bool) {
	e.x, e.y = move(e.x, e.y, e.room.Size, action)
	e.clock++
	here := [2]int{e.x, e.y}
	switch {
	case e.holds && here == e.goal.Cell():
		return 1, true
	case !e.holds && here == e.goal.Key():
		e.holds, reward = true, 1
	}
	return reward, e.clock == e.room.Horizon
}

// move returns the cell that an action leads to. A wall stops the move.
func move(x, y, size, action int) (int, int) {
	switch uint8(action) {
	case grid.Up:
		y = max(y-1, 0)
	case grid.Down:
		y = min(y+1, size-1)
	case grid.Left:
		x = max(x-1, 0)
	case grid.Right:
		x = min(x+1, size-1)
	}
	return x, y
}

// Expert returns an action of a shortest path from the agent's cell: along the longer of both
// distances.
func (e *Env) Expert() int {
	to := e.goal.Cell()
	if !e.holds {
		to = e.goal.Key()
	}
	dx, dy := to[0]-e.x, to[1]-e.y
	switch {
	case abs(dx) >= abs(dy) && dx > 0:
		return int(grid.Right)
	case abs(dx) >= abs(dy) && dx < 0:
		return int(grid.Left)
	case dy > 0:
		return int(grid.Down)
	case dy < 0:
		return int(grid.Up)
	}
	return int(grid.Stay)
}

// state returns the index of the agent's cell and key.
func (e *Env) state() int {
	s := e.y*e.room.Size + e.x
	if e.holds && e.goal.keyed() {
		s += e.room.Size * e.room.Size
	}
	return s
}
