package grid

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"haul/internal/rng"
)

// What a reader could break: a goal's number selects its learner's random numbers, and a split
// uses the order of a room's goals. Both are part of every history and result on disk.

// Goal is what pays. In Dark Room it is the number of a cell, which pays every step that ends on
// it. In Dark Key-to-Door it is a key and a door, two cells: the key pays once, and after it the
// door pays once.
type Goal uint32

// keyed marks a goal of Dark Key-to-Door: the key in bits 8 to 15, the door below.
const keyed Goal = 1 << 16

// KeyAndDoor is a goal of Dark Key-to-Door.
func KeyAndDoor(key, door Cell) Goal { return keyed | Goal(key)<<8 | Goal(door) }

// Keyed tells whether the goal has a key and a door.
func (g Goal) Keyed() bool { return g&keyed != 0 }

// Cell is the cell that pays, of a key and a door the door.
func (g Goal) Cell() Cell { return Cell(g) }

// Key is where the key lies; without one it is the cell that pays.
func (g Goal) Key() Cell {
	if !g.Keyed() {
		return g.Cell()
	}
	return Cell(g >> 8)
}

func (g Goal) String() string {
	if !g.Keyed() {
		return g.Cell().String()
	}
	return fmt.Sprintf("key %v door %v", g.Key(), g.Cell())
}

// pair is a goal of Dark Key-to-Door in JSON.
type pair struct {
	Key  *Cell `json:"key"`
	Door *Cell `json:"door"`
}

// MarshalJSON writes [x,y], or {"key":[x,y],"door":[x,y]}.
func (g Goal) MarshalJSON() ([]byte, error) {
	if !g.Keyed() {
		return json.Marshal(g.Cell())
	}
	key, door := g.Key(), g.Cell()
	return json.Marshal(pair{&key, &door})
}

// UnmarshalJSON reads either.
func (g *Goal) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(text, []byte("{")) {
		var c Cell
		err := json.Unmarshal(text, &c)
		*g = Goal(c)
		return err
	}
	var p pair
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	if p.Key == nil || p.Door == nil {
		return errors.New("a goal with a key or a door alone: want both")
	}
	*g = KeyAndDoor(*p.Key, *p.Door)
	return nil
}

// State is where an agent stands and what it has done in the episode: a cell in the low byte, above
// it the stage. Dark Room has one stage; in Dark Key-to-Door an agent looks for the key, then for
// the door, then has opened it. Agents see the cell alone.
type State uint16

// NumStates is over every State.
const NumStates = 3 << 8

// StateOf puts a cell and a stage together.
func StateOf(c Cell, stage uint8) State { return State(c) | State(stage)<<8 }

// Cell is where the agent stands.
func (s State) Cell() Cell { return Cell(s) }

// Stage is how many parts of a goal with parts are behind it.
func (s State) Stage() uint8 { return uint8(s >> 8) }

// MarshalJSON writes [x,y], and from the second stage on [x,y,stage].
func (s State) MarshalJSON() ([]byte, error) {
	if s.Stage() == 0 {
		return json.Marshal(s.Cell())
	}
	return json.Marshal([3]int{s.Cell().X(), s.Cell().Y(), int(s.Stage())})
}

// UnmarshalJSON reads either.
func (s *State) UnmarshalJSON(text []byte) error {
	var parts []int
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	stage := 0
	if len(parts) == 3 {
		parts, stage = parts[:2], parts[2]
	}
	if len(parts) != 2 || min(parts[0], parts[1], stage) < 0 || max(parts[0], parts[1]) >= MaxSize || stage >= NumStates>>8 {
		return fmt.Errorf("%s is not a state: want [x,y] or [x,y,stage] with cells in 0..%d and stages in 0..%d", text, MaxSize-1, NumStates>>8-1)
	}
	*s = StateOf(At(parts[0], parts[1]), uint8(stage))
	return nil
}

// nowhere is no cell: what pays where nothing is left to earn.
const nowhere = 256

// Rule is a goal as environments apply it: what pays in each stage, and whether being paid leads to
// the next stage.
type Rule struct {
	pays   [4]uint16
	passes State // the bit of a stage, or none
}

// Rule is the goal's.
func (g Goal) Rule() Rule {
	if g.Keyed() {
		return Rule{[4]uint16{uint16(g.Key()), uint16(g.Cell()), nowhere, nowhere}, 1 << 8}
	}
	return Rule{pays: [4]uint16{uint16(g.Cell()), nowhere, nowhere, nowhere}}
}

// Enter is the state after a step that ends on a cell, and its reward, 0 or 1. There is no branch:
// an agent that learns makes it unpredictable.
func (r *Rule) Enter(s State, to Cell) (State, uint8) {
	hit := (uint32(to) ^ uint32(r.pays[s>>8&3]) - 1) >> 31
	return s&^0xff + State(hit<<8)&r.passes | State(to), uint8(hit)
}

// Goals lists every goal of the room, row by row: the cells, or for each cell of a key the other
// cells as doors.
func (r Room) Goals() []Goal {
	cells := r.Cells()
	out := make([]Goal, 0, r.NumGoals())
	for _, key := range cells {
		if r.Kind == DarkRoom {
			out = append(out, Goal(key))
			continue
		}
		for _, door := range cells {
			if door != key {
				out = append(out, KeyAndDoor(key, door))
			}
		}
	}
	return out
}

// NumGoals is how many goals the room has.
func (r Room) NumGoals() int {
	n := r.Size * r.Size
	if r.Kind == KeyDoor {
		n *= n - 1
	}
	return n
}

// CheckGoal refuses what is no goal of the room.
func (r Room) CheckGoal(g Goal) error {
	if g.Keyed() != (r.Kind == KeyDoor) {
		return fmt.Errorf("goal %v is none of a %v", g, r)
	}
	if !r.Contains(g.Key()) || !r.Contains(g.Cell()) {
		return fmt.Errorf("goal %v lies outside the %v", g, r)
	}
	if g.Keyed() && g.Key() == g.Cell() {
		return fmt.Errorf("goal %v has its key and its door in one cell", g)
	}
	return nil
}

// Optimal is the best return of an episode. In Dark Room the walk to a goal at distance d is paid
// from its own last step on, so it misses d-1 rewards; a goal at the start misses none. Of a key
// and a door each is paid if the walk gets there in time; a key at the start takes a step too.
func (r Room) Optimal(goal Goal) float64 {
	first := max(1, distance(r.Start(), goal.Key())) // the first step that can be paid
	if !goal.Keyed() {
		return float64(max(0, r.Horizon-first+1))
	}
	out := 0.0
	for _, step := range []int{first, first + distance(goal.Key(), goal.Cell())} {
		if step <= r.Horizon {
			out++
		}
	}
	return out
}

// Split deals the goals of a room into those to learn from and those held out: a permutation by
// seed, of which the first round(ratio·goals) train. Ratio lies in [0, 1]. The horizon has no part
// in it.
func (r Room) Split(seed uint64, ratio float64) (train, test []Goal) {
	if !(ratio >= 0 && ratio <= 1) {
		panic("grid: split ratio outside [0, 1]")
	}
	goals := r.Goals()
	// Fisher–Yates; index i of the stream picks the partner of place i
	for i := len(goals) - 1; i > 0; i-- {
		j := rng.Below(rng.At(seed, uint64(i), 0, rng.Goals)[0], uint32(i+1))
		goals[i], goals[j] = goals[j], goals[i]
	}
	n := int(math.Round(ratio * float64(len(goals))))
	return goals[:n:n], goals[n:]
}

// Sample takes n of the room's goals, in the room's order: of those to learn from and those held
// out the share that the whole room has. So a goal that is held out in one sample is learned from
// in none. n lies in [0, NumGoals()].
func (r Room) Sample(seed uint64, ratio float64, n int) []Goal {
	train, test := r.Split(seed, ratio)
	some := int(math.Round(ratio * float64(n)))
	out := slices.Concat(train[:some], test[:n-some])
	slices.Sort(out) // numbers rise in the room's order
	return out
}
