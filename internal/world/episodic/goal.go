package episodic

import (
	"encoding/json"
	"fmt"
	"math"

	"haul/internal/rng"
	"haul/internal/world/grid"
)

// Goal is a cell that pays, or a key and a door: the column of the cell or door in bits 0 to 5, its
// row in bits 6 to 11, the key likewise from bit 12 on, and bit 24 where there is a key.
type Goal uint32

const keyedBit Goal = 1 << 24

// At is the goal of a cell.
func At(x, y int) Goal { return Goal(x | y<<6) }

// KeyAndDoor is the goal of a key and a door.
func KeyAndDoor(key, door [2]int) Goal {
	return keyedBit | At(key[0], key[1])<<12 | At(door[0], door[1])
}

func (g Goal) keyed() bool { return g&keyedBit != 0 }

// Cell is what pays last, of a key and a door the door.
func (g Goal) Cell() [2]int { return [2]int{int(g & 63), int(g >> 6 & 63)} }

// Key is what pays first; without a key it is the cell.
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

// CheckGoal refuses what is no goal of the room.
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

// NumGoals is how many goals the room has.
func (r Room) NumGoals() int {
	n := r.Size * r.Size
	if r.Kind == grid.KeyDoor {
		n *= n - 1
	}
	return n
}

// goal is the goal of a number in [0, NumGoals).
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

// Deal draws different goals, so many to learn from and so many to be held out; with held below 0
// all that are left. It refuses more than there are.
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
	// Fisher–Yates over the first places alone; moved holds what is no longer at its own.
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
