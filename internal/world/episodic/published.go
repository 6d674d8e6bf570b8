package episodic

import (
	"fmt"
	"regexp"
	"strconv"

	"haul/internal/world/grid"
)

// Set is a set of histories, named as in the paper: DR19-300-5 is Dark Room of 19 by 19 cells with
// 300 training goals and 5 histories per goal.
type Set struct {
	Name      string
	Room      Room
	Learn     int // number of goals to learn from
	Histories int // per goal
	Held      int // number of held-out goals; negative: all others
}

var setName = regexp.MustCompile(`^(DR|K2D)([0-9]{1,3})-([0-9]{1,7})-([0-9]{1,5})$`)

// limits are the published steps per episode, by game and size.
var limits = map[string]int{"DR9": 20, "DR19": 100, "K2D9": 50, "K2D13": 100}

// ParseSet parses a name. Sizes without a published limit get as many steps as cells, in Dark Room
// a quarter of that. A positive horizon replaces the limit.
func ParseSet(name string, horizon int) (Set, error) {
	m := setName.FindStringSubmatch(name)
	if m == nil {
		return Set{}, fmt.Errorf("%q is no set of histories: write DR9-70-5 for Dark Room of 9 by 9 cells, 70 goals, 5 histories of each, or K2D13-250-1 for Key-to-Door", name)
	}
	var n [3]int
	for i := range n {
		n[i], _ = strconv.Atoi(m[2+i]) // cannot fail: a few digits
	}
	kind, held := grid.DarkRoom, -1
	if m[1] == "K2D" {
		kind, held = grid.KeyDoor, 100
	}
	limit, known := limits[m[1]+m[2]]
	if !known {
		if limit = n[0] * n[0]; kind == grid.DarkRoom {
			limit = max(2*n[0], limit/4)
		}
	}
	if horizon > 0 {
		limit = horizon
	}
	s := Set{Name: name, Room: NewRoom(kind, n[0], limit), Learn: n[1], Histories: n[2], Held: held}
	if err := s.Room.Check(); err != nil {
		return Set{}, err
	}
	if s.Histories < 1 {
		return Set{}, fmt.Errorf("%s: a goal needs at least one history", name)
	}
	left := s.Room.NumGoals() - s.Learn
	if s.Learn < 1 || left < 1 {
		return Set{}, fmt.Errorf("%s: %d goals to learn from: the room has %d, and one at least is held out: write 1 to %d", name, s.Learn, s.Room.NumGoals(), s.Room.NumGoals()-1)
	}
	if s.Held > left {
		s.Held = left
	}
	return s, nil
}
