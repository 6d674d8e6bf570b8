// Package grid is the grid worlds of the in-context agent, Dark Room and Dark Key-to-Door. An
// agent starts in the centre of a square room and looks for what it cannot see: in Dark Room a
// goal that pays every step that ends on it, in Dark Key-to-Door (Laskin et al. 2023) a key and
// then a door, which pay once each. The package knows no tensors.
//
// What a reader could break: a cell's packing, the order of the actions and the reward's rule
// are part of every history on disk, and the agent's embeddings are indexed by them.
package grid

import (
	"encoding/json"
	"fmt"
)

// The actions, in the order of their numbers. Up is towards y = 0; a wall stops a move, and the
// step still counts.
const (
	Stay uint8 = iota
	Up
	Down
	Left
	Right
)

// NumActions is how many actions there are.
const NumActions = 5

// A room's side lies in [MinSize, MaxSize]; the upper end is what a Cell can hold.
const (
	MinSize = 2
	MaxSize = 16
)

// MaxHorizon bounds an episode, so that a file's sizes never overflow.
const MaxHorizon = 1 << 16

// Cell is a place in a room: x in the low four bits, y in the high four.
type Cell uint8

// At returns the cell (x, y); both lie in [0, MaxSize).
func At(x, y int) Cell { return Cell(x | y<<4) }

// X is the column, counted from the left.
func (c Cell) X() int { return int(c & 15) }

// Y is the row, counted from the top.
func (c Cell) Y() int { return int(c >> 4) }

// Towards is the action that walks from a cell to another by a shortest way: along x, then along y,
// then it stays.
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

// XY is the column and the row.
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

// The kinds. The zero one is what files that name none hold.
const (
	DarkRoom Kind = iota
	KeyDoor
)

var kinds = [...]string{DarkRoom: "darkroom", KeyDoor: "keydoor"}

// KindOf is the kind of that name, as the setting env has it.
func KindOf(name string) (Kind, error) {
	for k, n := range kinds {
		if n == name {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("a room of the kind %q: this program knows %s and %s", name, kinds[DarkRoom], kinds[KeyDoor])
}

func (k Kind) String() string { return kinds[k] }

// Title is what the game is called.
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

// Check refuses a room that cannot be.
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

// Start is the cell in which every episode begins: the centre, right and below it where the size is
// even.
func (r Room) Start() Cell { return At(r.Size/2, r.Size/2) }

// Contains tells whether the cell lies in the room.
func (r Room) Contains(c Cell) bool { return c.X() < r.Size && c.Y() < r.Size }

// Cells lists every cell of the room, row by row.
func (r Room) Cells() []Cell {
	out := make([]Cell, 0, r.Size*r.Size)
	for y := range r.Size {
		for x := range r.Size {
			out = append(out, At(x, y))
		}
	}
	return out
}

// Move is where an action leads from a cell of the room. An action of another number stays.
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

// Stages is how many stages an episode has.
func (r Room) Stages() int {
	if r.Kind == KeyDoor {
		return 3
	}
	return 1
}

// States lists every state: the cells row by row, stage after stage.
func (r Room) States() []State {
	out := make([]State, 0, r.Stages()*r.Size*r.Size)
	for stage := range r.Stages() {
		for _, c := range r.Cells() {
			out = append(out, StateOf(c, uint8(stage)))
		}
	}
	return out
}

// distance is the steps of a shortest way.
func distance(a, b Cell) int { return abs(a.X()-b.X()) + abs(a.Y()-b.Y()) }

func abs(v int) int { return max(v, -v) }
