// Package grid has the grid worlds of the in-context agent, Dark Room and Dark Key-to-Door. Package
// ppo trains learners in them, and package agent evaluates agents in them. An agent starts in the
// centre of a square room and cannot see the goal. In Dark Room every step that ends on the goal
// gives a reward. In Dark Key-to-Door (Laskin et al. 2023) a key and then a door give one reward
// each.
//
// Histories on disk contain packed cells, numbered actions and rewards, and the agent's embeddings
// are indexed by them: cell packing, action order and reward rules must not change.
package grid

import (
	"encoding/json"
	"fmt"
)

// The actions, in the order of their numbers. Up decreases y. A wall stops a move, but the step
// still counts.
const (
	Stay uint8 = iota
	Up
	Down
	Left
	Right
)

// NumActions is the number of actions.
const NumActions = 5

// A room's side lies in [MinSize, MaxSize], the range that a Cell can encode.
const (
	MinSize = 2
	MaxSize = 16
)

// MaxHorizon limits an episode so that the sizes of files cannot overflow.
const MaxHorizon = 1 << 16

// Cell is a cell of a room: x in the low four bits, y in the high four.
type Cell uint8

// At returns the cell (x, y); both are in [0, MaxSize).
func At(x, y int) Cell { return Cell(x | y<<4) }

// X returns the column, counted from the left.
func (c Cell) X() int { return int(c & 15) }

// Y returns the row, counted from the top.
func (c Cell) Y() int { return int(c >> 4) }

// Towards returns the next action of a shortest path between two cells: along x first, then along
// y, then no move.
func Towards(cell, goal Cell) uint8 {
	switch {
	case cell.X() < goal.X():
		return Right
	case cell.X() > goal.X():
		return Left
	case cell.Y() < goal.Y():
		return Down
	case cell.Y() > goal.Y():
		return Up
	}
	return Stay
}

// XY returns the column and the row.
func (c Cell) XY() [2]int { return [2]int{c.X(), c.Y()} }

func (c Cell) String() string { return fmt.Sprintf("(%d,%d)", c.X(), c.Y()) }

// MarshalJSON writes [x,y].
func (c Cell) MarshalJSON() ([]byte, error) { return json.Marshal(c.XY()) }

// UnmarshalJSON reads [x,y].
func (c *Cell) UnmarshalJSON(text []byte) error {
	var xy []int
	if err := json.Unmarshal(text, &xy); err != nil {
		return err
	}
	if len(xy) != 2 || min(xy[0], xy[1]) < 0 || max(xy[0], xy[1]) >= MaxSize {
		return fmt.Errorf("%s is not a cell: want [x,y] with both in 0..%d", text, MaxSize-1)
	}
	*c = At(xy[0], xy[1])
	return nil
}

// Kind is the game that is played in a room.
type Kind uint8

// The kinds. Files without a kind mean the zero kind.
const (
	DarkRoom Kind = iota
	KeyDoor
)

var kinds = [...]string{DarkRoom: "darkroom", KeyDoor: "keydoor"}

// KindOf returns the kind with a name of the setting env.
func KindOf(name string) (Kind, error) {
	for k, n := range kinds {
		if n == name {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("a room of the kind %q: this program knows %s and %s", name, kinds[DarkRoom], kinds[KeyDoor])
}

func (k Kind) String() string { return kinds[k] }

// Title returns the name of the game for people.
func (k Kind) Title() string {
	return [...]string{DarkRoom: "Dark Room", KeyDoor: "Dark Key-to-Door"}[k]
}

// MarshalText writes the name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a name.
func (k *Kind) UnmarshalText(text []byte) (err error) {
	*k, err = KindOf(string(text))
	return err
}

// Room is a square grid, the number of steps in an episode, and the game.
type Room struct {
	Size    int  `json:"size"`
	Horizon int  `json:"horizon"`
	Kind    Kind `json:"env"`
}

// Check returns an error if a value is out of range.
func (r Room) Check() error {
	if r.Size < MinSize || r.Size > MaxSize {
		return fmt.Errorf("a room of size %d: want %d to %d", r.Size, MinSize, MaxSize)
	}
	if r.Horizon < 1 || r.Horizon > MaxHorizon {
		return fmt.Errorf("a horizon of %d steps: want 1 to %d", r.Horizon, MaxHorizon)
	}
	return nil
}

func (r Room) String() string {
	game := ""
	if r.Kind == KeyDoor {
		game = "key-to-door "
	}
	return fmt.Sprintf("%d×%d %sroom with horizon %d", r.Size, r.Size, game, r.Horizon)
}

// Start returns the cell in which every episode begins: the centre or, for an even size, the cell
// to the right of it and below.
func (r Room) Start() Cell { return At(r.Size/2, r.Size/2) }

// Contains reports whether the cell lies in the room.
func (r Room) Contains(c Cell) bool { return c.X() < r.Size && c.Y() < r.Size }

// Cells returns every cell of the room, row by row.
func (r Room) Cells() []Cell {
	out := make([]Cell, 0, r.Size*r.Size)
	for y := range r.Size {
		for x := range r.Size {
			out = append(out, At(x, y))
		}
	}
	return out
}

// Move returns the cell that an action leads to. An unknown action does not move.
func (r Room) Move(c Cell, action uint8) Cell {
	x, y := c.X(), c.Y()
	switch action {
	case Up:
		y = max(y-1, 0)
	case Down:
		y = min(y+1, r.Size-1)
	case Left:
		x = max(x-1, 0)
	case Right:
		x = min(x+1, r.Size-1)
	}
	return At(x, y)
}

// Stages returns the number of stages of an episode.
func (r Room) Stages() int {
	if r.Kind == KeyDoor {
		return 3
	}
	return 1
}

// States returns every state: the cells row by row, for each stage.
func (r Room) States() []State {
	out := make([]State, 0, r.Stages()*r.Size*r.Size)
	for stage := range r.Stages() {
		for _, c := range r.Cells() {
			out = append(out, StateOf(c, uint8(stage)))
		}
	}
	return out
}

// distance returns the length of a shortest path.
func distance(a, b Cell) int { return abs(a.X()-b.X()) + abs(a.Y()-b.Y()) }

func abs(v int) int { return max(v, -v) }
