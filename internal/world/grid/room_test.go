package grid

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var (
	nine  = Room{Size: 9, Horizon: 20}
	doors = Room{Size: 9, Horizon: 50, Kind: KeyDoor}
)

func goalAt(x, y int) Goal { return Goal(At(x, y)) }

func TestMove(t *testing.T) {
	for _, c := range []struct {
		name   string
		size   int
		from   Cell
		action uint8
		want   Cell
	}{
		{"stay", 9, At(4, 4), Stay, At(4, 4)},
		{"up", 9, At(4, 4), Up, At(4, 3)},
		{"down", 9, At(4, 4), Down, At(4, 5)},
		{"left", 9, At(4, 4), Left, At(3, 4)},
		{"right", 9, At(4, 4), Right, At(5, 4)},
		{"the upper wall", 9, At(7, 0), Up, At(7, 0)},
		{"the lower wall", 9, At(7, 8), Down, At(7, 8)},
		{"the left wall", 9, At(0, 2), Left, At(0, 2)},
		{"the right wall", 9, At(8, 2), Right, At(8, 2)},
		{"the far corner of the largest room", 16, At(15, 15), Right, At(15, 15)},
		{"the smallest room", 2, At(1, 1), Up, At(1, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := (Room{Size: c.size, Horizon: 1}).Move(c.from, c.action); got != c.want {
				t.Errorf("from %v to %v, want %v", c.from, got, c.want)
			}
		})
	}
}

func TestOptimal(t *testing.T) {
	for _, c := range []struct {
		room Room
		goal Goal
		want float64
	}{
		{nine, goalAt(4, 4), 20},
		{nine, goalAt(4, 5), 20},
		{nine, goalAt(3, 3), 19},
		{nine, goalAt(0, 0), 13},
		{Room{Size: 9, Horizon: 8}, goalAt(0, 8), 1},
		{Room{Size: 9, Horizon: 7}, goalAt(0, 8), 0},
		{Room{Size: 9, Horizon: 3}, goalAt(0, 8), 0},
		{Room{Size: 2, Horizon: 5}, goalAt(0, 0), 4},
		{doors, KeyAndDoor(At(0, 0), At(8, 8)), 2},                // after 8 and 24 steps
		{Room{9, 24, KeyDoor}, KeyAndDoor(At(0, 0), At(8, 8)), 2}, // just in time
		{Room{9, 23, KeyDoor}, KeyAndDoor(At(0, 0), At(8, 8)), 1}, // the door is too far
		{Room{9, 7, KeyDoor}, KeyAndDoor(At(0, 0), At(8, 8)), 0},  // the key is too far
		{Room{9, 2, KeyDoor}, KeyAndDoor(At(4, 4), At(4, 5)), 2},  // a key at the start takes a step
		{Room{9, 1, KeyDoor}, KeyAndDoor(At(4, 4), At(4, 5)), 1},
	} {
		if got := c.room.Optimal(c.goal); got != c.want {
			t.Errorf("%v, goal %v: %v, want %v", c.room, c.goal, got, c.want)
		}
	}
	sum := 0.0
	for _, g := range nine.Goals() {
		sum += nine.Optimal(g)
	}
	if mean := sum / 81; math.Round(mean*100)/100 != 16.54 {
		t.Errorf("the mean over all goals is %v, want 16.54", mean)
	}
}

// TestOptimalIsReached searches all action sequences, by the number of rewards that a cell and a
// stage can still give.
func TestOptimalIsReached(t *testing.T) {
	type place struct {
		cell  Cell
		stage int
	}
	for _, room := range []Room{{2, 3, 0}, {3, 4, 0}, {4, 2, 0}, {5, 9, 0}, {9, 20, 0}, {16, 12, 0}, {2, 2, KeyDoor}, {3, 4, KeyDoor}, {3, 7, KeyDoor}, {4, 5, KeyDoor}} {
		for _, goal := range room.Goals() {
			best := map[place]int{}
			for range room.Horizon {
				next := map[place]int{}
				for _, c := range room.Cells() {
					for stage := range room.Stages() {
						for a := range uint8(NumActions) {
							to := place{room.Move(c, a), stage}
							reward := 0
							if room.Kind == DarkRoom && to.cell == goal.Cell() || room.Kind == KeyDoor && (stage == 0 && to.cell == goal.Key() || stage == 1 && to.cell == goal.Cell()) {
								reward = 1
							}
							if room.Kind == KeyDoor {
								to.stage += reward
							}
							next[place{c, stage}] = max(next[place{c, stage}], best[to]+reward)
						}
					}
				}
				best = next
			}
			if got, want := room.Optimal(goal), float64(best[place{room.Start(), 0}]); got != want {
				t.Fatalf("%v, goal %v: Optimal %v, the search finds %v", room, goal, got, want)
			}
		}
	}
}

func TestTowardsIsAShortestWay(t *testing.T) {
	room := Room{Size: 7, Horizon: 9}
	for _, goal := range room.Cells() {
		cell, earned := room.Start(), 0.0
		for range room.Horizon {
			if cell = room.Move(cell, Towards(cell, goal)); cell == goal {
				earned++
			}
		}
		if earned != room.Optimal(Goal(goal)) {
			t.Errorf("goal %v: the walk earns %v, the optimum is %v", goal, earned, room.Optimal(Goal(goal)))
		}
	}
}

func TestRoomCheck(t *testing.T) {
	for _, c := range []struct {
		room Room
		want string
	}{
		{Room{Size: 2, Horizon: 1}, ""},
		{Room{Size: 16, Horizon: MaxHorizon}, ""},
		{Room{Size: 1, Horizon: 20}, "a room of size 1: want 2 to 16"},
		{Room{Size: 17, Horizon: 20}, "a room of size 17: want 2 to 16"},
		{Room{Size: 9, Horizon: 0}, "a horizon of 0 steps: want 1 to 65536"},
		{Room{Size: 9, Horizon: MaxHorizon + 1}, "a horizon of 65537 steps: want 1 to 65536"},
	} {
		if diff := cmp.Diff(c.want, text(c.room.Check())); diff != "" {
			t.Error(diff)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestCellJSON(t *testing.T) {
	out, err := json.Marshal([]Goal{goalAt(0, 0), goalAt(8, 3), goalAt(15, 15)})
	if got, want := string(out), "[[0,0],[8,3],[15,15]]"; err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	for _, bad := range []string{"[1]", "[1,2,3]", "[-1,0]", "[0,16]", "3", `"a"`, "null"} {
		var c Cell
		if json.Unmarshal([]byte(bad), &c) == nil {
			t.Errorf("%s was read as %v", bad, c)
		}
	}
}

func TestSplit(t *testing.T) {
	train, test := nine.Split(0, 0.9)
	if len(train) != 73 || len(test) != 8 {
		t.Errorf("%d and %d goals, want 73 and 8", len(train), len(test))
	}
	// The held-out goals of the default seed are part of every stored result.
	if diff := cmp.Diff([]Goal{goalAt(8, 0), goalAt(3, 8), goalAt(2, 1), goalAt(1, 3), goalAt(5, 7), goalAt(0, 6), goalAt(8, 6), goalAt(2, 3)}, test); diff != "" {
		t.Error(diff)
	}
	if other, _ := nine.Split(1, 0.9); slices.Equal(train, other) {
		t.Error("two seeds gave one split")
	}
}

func TestSplitDealsEveryCellOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(MinSize, MaxSize).Draw(t, "size")
		seed := rapid.Uint64().Draw(t, "seed")
		ratio := rapid.Float64Range(0, 1).Draw(t, "ratio")
		train, test := Room{Size: size}.Split(seed, ratio)
		if want := int(math.Round(ratio * float64(size*size))); len(train) != want {
			t.Fatalf("%d train goals, want %d", len(train), want)
		}
		all := slices.Sorted(slices.Values(slices.Concat(train, test)))
		if diff := cmp.Diff(Room{Size: size}.Goals(), all); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestPlacedBatch: a batch that is put where another stood goes on as that one does, and refuses
// what cannot be.
func TestPlacedBatch(t *testing.T) {
	room := Room{Size: 4, Horizon: 5, Kind: KeyDoor}
	goals := []Goal{KeyAndDoor(At(2, 1), At(0, 0)), KeyAndDoor(At(2, 3), At(3, 1)), KeyAndDoor(At(1, 2), At(0, 2))}
	a, b := NewBatch(room, goals), NewBatch(room, goals)
	rewards, again := make([]uint8, 3), make([]uint8, 3)
	step := func(b *Batch, rewards []uint8, i int) bool {
		return b.Step(rewards, []uint8{uint8(i % 5), uint8((i + 2) % 5), Left})
	}
	for i := range 7 {
		step(a, rewards, i)
	}
	if err := b.Place(a.States(), a.Clock()); err != nil {
		t.Fatal(err)
	}
	for i := range 13 {
		one, two := step(a, rewards, i), step(b, again, i)
		if one != two || !slices.Equal(rewards, again) || !slices.Equal(a.States(), b.States()) {
			t.Fatalf("step %d: %v %v %v, then %v %v %v", i, one, rewards, a.States(), two, again, b.States())
		}
	}
	for _, c := range []struct {
		states []State
		clock  int
	}{{a.States()[:2], 0}, {a.States(), 5}, {a.States(), -1}, {[]State{0, 0, StateOf(At(1, 1), 3)}, 0}, {[]State{0, 0, StateOf(At(4, 0), 0)}, 0}} {
		if err := b.Place(c.states, c.clock); err == nil {
			t.Errorf("%v after %d steps was accepted", c.states, c.clock)
		}
	}
}
