package episodic

import (
	"encoding/json"
	"fmt"
	"math"

	"haul/internal/rng"
	"haul/internal/world/grid"
)

// Goal is a cell with a reward, or a key and a door: the column of the cell or door in bits 0 to 5,
// its row in bits 6 to 11, the key likewise from bit 12 on, and bit 24 set for a key.
type Goal uint32

const keyedBit Goal = 1 << 24

// At returns the goal of a cell.
func At(x, y int) Goal { return Goal(x | y<<6) }

// KeyAndDoor returns the goal of a key and a door.
func KeyAndDoor(key, door [2]int) Goal {
	return keyedBit | At(key[0], key[1])<<12 | At(door[0], door[1])
}

func (g Goal) keyed() bool { return g&keyedBit != 0 }

// Cell returns the cell with the last reward: the door if the goal has one.
func (g Goal) Cell() [2]int { return [2]int{int(g & 63), int(g >> 6 & 63)} }

// Key returns the cell of the key. Without a key it returns Cell.
func (g Goal) Key() [2]int {
	if !g.keyed() {
		return g.Cell()
	}
	return [2]int{int(g >> 12 & 63), int(g >> 18 & 63)}
}

func (g Goal) String() string {
	c := g.Cell()
	if !g.keyed() {
		return fmt.Sprintf("(%d,%d)", c[0], c[1])
	}
	k := g.Key()
	return fmt.Sprintf("key (%d,%d) door (%d,%d)", k[0], k[1], c[0], c[1])
}

// MarshalJSON writes [x,y], or {"key":[x,y],"door":[x,y]}.
func (g Goal) MarshalJSON() ([]byte, error) {
	if !g.keyed() {
		return json.Marshal(g.Cell())
	}
	return json.Marshal(struct {
		Key  [2]int `json:"key"`
		Door [2]int `json:"door"`
	}{g.Key(), g.Cell()})
}

// CheckGoal returns an error if g is not a goal of the room.
func (r Room) CheckGoal(g Goal) error {
	k, c := g.Key(), g.Cell()
	switch {
	case g>>25 != 0 || g.keyed() != (r.Kind == grid.KeyDoor) || !g.keyed() && g>>12 != 0:
		return fmt.Errorf("goal %v is none of a %v", g, r)
	case max(k[0], k[1], c[0], c[1]) >= r.Size:
		return fmt.Errorf("goal %v lies outside the %v", g, r)
	case g.keyed() && k == c:
		return fmt.Errorf("goal %v has its key and its door in one cell", g)
	}
	return nil
}

// NumGoals returns the number of goals of the room.
func (r Room) NumGoals() int {
	n := r.Size * r.Size
	if r.Kind == grid.KeyDoor {
		n *= n - 1
	}
	return n
}

// goal returns the goal with a number in [0, NumGoals).
func (r Room) goal(i int) Goal {
	cells := r.Size * r.Size
	cell := func(c int) [2]int { return [2]int{c % r.Size, c / r.Size} }
	if r.Kind == grid.DarkRoom {
		c := cell(i)
		return At(c[0], c[1])
	}
	key, door := i/(cells-1), i%(cells-1)
	if door >= key {
		door++
	}
	return KeyAndDoor(cell(key), cell(door))
}

// Deal draws `learn` goals to learn from and `held` other goals to hold out; a negative held means
// all others. It returns an error if the room has too few goals.
func (r Room) Deal(seed uint64, learn, held int) (train, test []Goal, err error) {
	n := r.NumGoals()
	if held < 0 {
		held = max(0, n-learn)
	}
	if learn < 1 || held < 1 || learn+held > n {
		return nil, nil, fmt.Errorf("%d goals to learn from and %d held out: a %v has %d", learn, held, r, n)
	}
	if n > math.MaxInt32 {
		return nil, nil, fmt.Errorf("a %v has %d goals, more than can be dealt", r, n)
	}
	// Fisher–Yates over the first positions only; moved holds the goals that are not at their own
	// index.
	moved := map[int]int{}
	at := func(i int) int {
		if v, ok := moved[i]; ok {
			return v
		}
		return i
	}
	for i := range learn + held {
		j := i + int(rng.Below(rng.At(seed, uint64(i), 2, rng.Goals)[0], uint32(n-i)))
		g := r.goal(at(j))
		moved[j] = at(i)
		if i < learn {
			train = append(train, g)
		} else {
			test = append(test, g)
		}
	}
	return train, test, nil
}
