// Package darkroom is the grid world of the in-context agent and the files of learning histories.
// An agent starts in the centre of a square room and is rewarded for every step that ends on a goal
// it cannot see. The package knows no tensors.
//
// What a reader could break: a cell's packing, the order of the actions and the reward's rule are
// part of every history on disk, and the agent's embeddings are indexed by them.
package darkroom

import (
	"encoding/json"
	"fmt"
	"math"

	"haul/internal/rng"
)

// The actions, in the order of their numbers. Up is towards y = 0; a wall stops a move, and the step
// still counts.
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

// Goal is the cell that pays.
type Goal = Cell

// At returns the cell (x, y); both lie in [0, MaxSize).
func At(x, y int) Cell { return Cell(x | y<<4) }

// X is the column, counted from the left.
func (c Cell) X() int { return int(c & 15) }

// Y is the row, counted from the top.
func (c Cell) Y() int { return int(c >> 4) }

// Towards is the action that walks from a cell to a goal by a shortest way: along x, then along y, then it stays.
func Towards(cell Cell, goal Goal) uint8 {
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

func (c Cell) String() string { return fmt.Sprintf("(%d,%d)", c.X(), c.Y()) }

// MarshalJSON writes [x,y].
func (c Cell) MarshalJSON() ([]byte, error) { return json.Marshal([2]int{c.X(), c.Y()}) }

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

// Room is a square grid and the number of steps in an episode.
type Room struct {
	Size    int `json:"size"`
	Horizon int `json:"horizon"`
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
	return fmt.Sprintf("%d×%d room with horizon %d", r.Size, r.Size, r.Horizon)
}

// Start is the cell in which every episode begins: the centre, right and below it where the size is even.
func (r Room) Start() Cell { return At(r.Size/2, r.Size/2) }

// Contains tells whether the cell lies in the room.
func (r Room) Contains(c Cell) bool { return c.X() < r.Size && c.Y() < r.Size }

// Goals lists every cell of the room, row by row.
func (r Room) Goals() []Goal {
	out := make([]Goal, 0, r.Size*r.Size)
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

// Optimal is the best return of an episode. The walk to a goal at distance d is paid from its own last
// step on, so it misses d-1 rewards; a goal at the start misses none.
func (r Room) Optimal(goal Goal) float64 {
	s := r.Start()
	d := abs(goal.X()-s.X()) + abs(goal.Y()-s.Y())
	return float64(max(0, r.Horizon-max(0, d-1)))
}

func abs(v int) int { return max(v, -v) }

// Split deals the cells of a room of that size into goals to learn from and goals held out: a permutation
// by seed, of which the first round(ratio·size²) train. Ratio lies in [0, 1].
func Split(size int, seed uint64, ratio float64) (train, test []Goal) {
	if !(ratio >= 0 && ratio <= 1) {
		panic("darkroom: split ratio outside [0, 1]")
	}
	goals := Room{Size: size}.Goals()
	for i := len(goals) - 1; i > 0; i-- { // Fisher–Yates; index i of the stream picks the partner of place i
		j := rng.Below(rng.At(seed, uint64(i), 0, rng.Goals)[0], uint32(i+1))
		goals[i], goals[j] = goals[j], goals[i]
	}
	n := int(math.Round(ratio * float64(len(goals))))
	return goals[:n:n], goals[n:]
}
