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

// A goal's number selects its learner's random numbers, and a split uses the order of a room's
// goals. Both are part of every history and result on disk and must not change.

// Goal is the source of rewards. In Dark Room it is the number of a cell, which gives a reward for
// every step that ends on it. In Dark Key-to-Door it is a key and a door, two cells: the key gives
// a reward once, and then the door once.
type Goal uint32

// keyed marks a goal of Dark Key-to-Door: the key in bits 8 to 15, the door below.
const keyed Goal = 1 << 16

// KeyAndDoor returns a goal of Dark Key-to-Door.
func KeyAndDoor(key, door Cell) Goal { return keyed | Goal(key)<<8 | Goal(door) }

// Keyed reports whether the goal has a key and a door.
func (g Goal) Keyed() bool { return g&keyed != 0 }

// Cell returns the cell with the (last) reward: the door if the goal has one.
func (g Goal) Cell() Cell { return Cell(g) }

// Key returns the cell of the key. Without a key it returns Cell.
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

// UnmarshalJSON reads both forms.
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

// State is an agent's cell and its stage of the episode: the cell in the low byte, the stage above
// it. Dark Room has one stage. In Dark Key-to-Door an agent looks for the key, then for the door,
// and then has opened it. Agents observe only the cell.
type State uint16

// NumStates exceeds every State.
const NumStates = 3 << 8

// StateOf returns the state of a cell and a stage.
func StateOf(c Cell, stage uint8) State { return State(c) | State(stage)<<8 }

// Cell returns the agent's cell.
func (s State) Cell() Cell { return Cell(s) }

// Stage returns the number of rewards of a key or a door in the episode so far.
func (s State) Stage() uint8 { return uint8(s >> 8) }

// MarshalJSON writes [x,y], and from the second stage on [x,y,stage].
func (s State) MarshalJSON() ([]byte, error) {
	if s.Stage() == 0 {
		return json.Marshal(s.Cell())
	}
	return json.Marshal([3]int{s.Cell().X(), s.Cell().Y(), int(s.Stage())})
}

// UnmarshalJSON reads both forms.
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

// nowhere is no cell: the place of the reward in a stage without rewards.
const nowhere = 256

// Rule is a goal as environments apply it: the cell with a reward in each stage, and whether the
// reward leads to the next stage.
type Rule struct {
	pays   [4]uint16
	passes State // the bit of a stage, or none
}

// Rule returns the goal's rule.
func (g Goal) Rule() Rule {
	if g.Keyed() {
		return Rule{[4]uint16{uint16(g.Key()), uint16(g.Cell()), nowhere, nowhere}, 1 << 8}
	}
	return Rule{pays: [4]uint16{uint16(g.Cell()), nowhere, nowhere, nowhere}}
}

// Enter returns the state after a step that ends on a cell, and the reward, 0 or 1. It has no
// branch, because a learning agent would make branches unpredictable.
func (r *Rule) Enter(s State, to Cell) (State, uint8) {
	hit := (uint32(to) ^ uint32(r.pays[s>>8&3]) - 1) >> 31
	return s&^0xff + State(hit<<8)&r.passes | State(to), uint8(hit)
}

// Goals returns every goal of the room, row by row: the cells, or for each cell as the key all
// other cells as doors.
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

// NumGoals returns the number of goals of the room.
func (r Room) NumGoals() int {
	n := r.Size * r.Size
	if r.Kind == KeyDoor {
		n *= n - 1
	}
	return n
}

// CheckGoal returns an error if the room has no such goal.
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

// Optimal returns the largest return of an episode. In Dark Room a goal at distance d gives a
// reward from the last step of the path on, so d-1 rewards are missed; at the start none is missed.
// Key and door each count if the path reaches them in time. A key at the start also takes a step.
func (r Room) Optimal(goal Goal) float64 {
	first := max(1, distance(r.Start(), goal.Key())) // the first step that can have a reward
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

// Split divides the room's goals into goals to learn from and held-out goals. It permutes them by
// seed; the first round(ratio·goals) are for learning. ratio is in [0, 1]. The horizon has no
// influence.
func (r Room) Split(seed uint64, ratio float64) (train, test []Goal) {
	if !(ratio >= 0 && ratio <= 1) {
		panic("grid: split ratio outside [0, 1]")
	}
	goals := r.Goals()
	// Fisher–Yates: number i of the stream picks the goal to swap with goal i.
	for i := len(goals) - 1; i > 0; i-- {
		j := rng.Below(rng.At(seed, uint64(i), 0, rng.Goals)[0], uint32(i+1))
		goals[i], goals[j] = goals[j], goals[i]
	}
	n := int(math.Round(ratio * float64(len(goals))))
	return goals[:n:n], goals[n:]
}

// Sample returns n of the room's goals in the room's order. The sample has the same ratio of
// training and held-out goals as the room, and each goal keeps its role: a goal held out in one
// sample is in no sample learned from. n is in [0, NumGoals()].
func (r Room) Sample(seed uint64, ratio float64, n int) []Goal {
	train, test := r.Split(seed, ratio)
	some := int(math.Round(ratio * float64(n)))
	out := slices.Concat(train[:some], test[:n-some])
	slices.Sort(out) // the numbers are ascending in the room's order
	return out
}
