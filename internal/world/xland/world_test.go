package xland

import (
	"encoding/json"
	"strings"
	"testing"

	"haul/internal/rng"
	"haul/internal/world"
)

var _ world.Game = World{}
var _ world.Seeded = &Env{}

var trivial = Tasks{Name: "trivial", Seed: PublicSeed}

// TestNames: what the package registers is made, and what it would not is refused.
func TestNames(t *testing.T) {
	for _, name := range []string{"XLand-MiniGrid-R1-9x9", "R1-17x17", "R2-9x9", "R4-17x17", "R6-13x13", "R6-17x17", "R6-19x19", "R9-16x16", "R9-25x25"} {
		w, err := New(name, trivial)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := w.Space().Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if w.Horizon != 3*w.Size*w.Size || w.View != 5 {
			t.Errorf("%s: %v", name, w)
		}
		text, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if back, _ := json.Marshal(again); string(back) != string(text) {
			t.Errorf("%s becomes %s", text, back)
		}
	}
	for name, why := range map[string]string{"R3-9x9": `unknown layout "R3": use R1, R2, R4, R6 or R9`, "R1-9x11": "squares", "R1-4x4": "want 5 to 64", "R1-65x65": "want 5 to 64", "R4-10x10": "odd",
		"R9-17x17": "3n+1", "R6-15x15": "6n+1", "MiniGrid-Empty": "no environment", "R1-5x5": ""} {
		_, err := New(name, trivial)
		if why == "" && err != nil || why != "" && (err == nil || !strings.Contains(err.Error(), why)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New("R1-5x5", Tasks{Name: "small", Seed: 1}); err == nil {
		t.Error("ten objects and an agent have room in nine cells")
	}
	if _, err := New("R1-9x9", Tasks{Name: "tiny"}); err == nil || !strings.Contains(err.Error(), "trivial") {
		t.Errorf("tasks of an unknown name: %v", err)
	}
}

// TestRewardsHaveValues: every reward of an episode has the Python package's value. Past 255 steps
// the value differs by less than the range of a group.
func TestRewardsHaveValues(t *testing.T) {
	for _, name := range []string{"R1-9x9", "R1-17x17"} {
		w, err := New(name, trivial)
		if err != nil {
			t.Fatal(err)
		}
		values, group := w.Space().Rewards, w.shared.group
		if exact := group == 1; exact != (w.Horizon <= 255) {
			t.Fatalf("%s: groups of %d steps", name, group)
		}
		for clock := 1; clock <= w.Horizon; clock++ {
			got, want := values[1+(w.Horizon-clock)/group], float64(w.shared.room.rewards[clock])
			if off := got - want; off*off > 1e-12 && (group == 1 || max(off, -off) > 0.9*float64(group)/float64(w.Horizon)) {
				t.Errorf("%s: %d steps pay %v, their value is %v", name, clock, want, got)
			}
		}
	}
}

// TestRulesetsAreChecked: encodings that no room has are refused one by one.
func TestRulesetsAreChecked(t *testing.T) {
	good := Ruleset{Goal: [5]uint8{goalHold, Ball, Red}, Rules: [][7]uint8{{ruleTileNear, Ball, Red, Key, Blue, Star, Pink}}, Tiles: [][2]uint8{{Ball, Red}, {}}}
	if err := good.Check(9); err != nil {
		t.Fatal(err)
	}
	for why, change := range map[string]func(*Ruleset){
		"goal of kind 15": func(r *Ruleset) { r.Goal[0] = 15 },
		"tile (13, 1)":    func(r *Ruleset) { r.Goal = [5]uint8{goalHold, 13, 1} },
		"tile (3, 12)":    func(r *Ruleset) { r.Rules[0][6], r.Rules[0][5] = 12, 3 },
		"row 9":           func(r *Ruleset) { r.Goal = [5]uint8{goalOnPosition, 9, 8} },
		"column 9":        func(r *Ruleset) { r.Goal = [5]uint8{goalTileOnPosition, Ball, Red, 8, 9} },
		"rule 0 of kind":  func(r *Ruleset) { r.Rules[0][0] = 12 },
		"turns walls":     func(r *Ruleset) { r.Rules[0] = [7]uint8{ruleNear, Wall, Grey, Ball, Red} },
		"of a wall":       func(r *Ruleset) { r.Goal = [5]uint8{goalTileNearUp, Ball, Red, Wall, Grey} },
		"object 1":        func(r *Ruleset) { r.Tiles[1] = [2]uint8{13, 0} },
		"49 objects":      func(r *Ruleset) { r.Tiles = make([][2]uint8, 49) },
		"65 rules":        func(r *Ruleset) { r.Rules = make([][7]uint8, 65) },
	} {
		r, _ := parseRuleset(good.bytes())
		change(r)
		if err := r.Check(9); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
	if err := (&Ruleset{Goal: [5]uint8{goalOnPosition, 8, 8}, Tiles: make([][2]uint8, 48)}).Check(9); err != nil {
		t.Errorf("the last row, and as many objects as there is room for: %v", err)
	}
}

// TestTasksHeldOutAreOthers: no ruleset is on both sides, and of a file its own are listed.
func TestTasksHeldOutAreOthers(t *testing.T) {
	w, err := New("R1-9x9", trivial)
	if err != nil {
		t.Fatal(err)
	}
	c := Choose{Learn: 400, Held: 50}
	if _, err := c.From(w, nil, "trivial"); err != nil {
		t.Fatal(err)
	}
	learned := map[string]bool{}
	for _, id := range c.Learned {
		r, _ := w.Ruleset(id)
		learned[string(r.bytes())] = true
	}
	for _, id := range c.HeldOut {
		if r, _ := w.Ruleset(id); learned[string(r.bytes())] {
			t.Errorf("%v is learned from and held out", id)
		}
	}
	if len(c.Learned) != 400 || len(c.HeldOut) != 50 || c.Shared == 0 || c.Shared == 50 {
		t.Errorf("%d learned, %d held out, %d with a goal of those learned", len(c.Learned), len(c.HeldOut), c.Shared)
	}
	f, err := OpenFile("testdata/benchmark.bz2")
	if err != nil {
		t.Fatal(err)
	}
	c = Choose{Learn: 9, Held: 3}
	own, err := c.From(w, f, "benchmark.bz2")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range append(c.Learned, c.HeldOut...) {
		if r, err := own.Ruleset(id); err != nil || string(r.bytes()) != string(f.Ruleset(int(id)).bytes()) {
			t.Errorf("%v: %v", id, err)
		}
	}
	if _, err := own.Ruleset(12); err == nil {
		t.Error("a thirteenth of twelve rulesets")
	}
	// A thirteenth that is the first again.
	f.goals, f.rules, f.tiles = append(f.goals, f.goals[:goalBytes]...), append(f.rules, f.rules[:ruleBytes*f.eachRule]...), append(f.tiles, f.tiles[:2*f.eachTile]...)
	f.count++
	c = Choose{Learn: 9, Held: 4}
	if _, err := c.From(w, f, "benchmark.bz2"); err == nil {
		t.Errorf("learned from %v, held out %v, and the last is the first again", c.Learned, c.HeldOut)
	}
}

// TestLockedDoors: a door opens to the key of its colour and to no other, and then to anybody.
func TestLockedDoors(t *testing.T) {
	w, err := New("R1-9x9", trivial)
	if err != nil {
		t.Fatal(err)
	}
	s := w.NewState(0)
	s.Seed(rng.NewJAXKey(1))
	ahead := s.at + s.room.ahead[s.facing]
	for _, c := range []struct {
		pocket, door, after Tile
	}{
		{TileOf(Key, Red), TileOf(DoorLocked, Blue), TileOf(DoorLocked, Blue)},
		{TileOf(Ball, Blue), TileOf(DoorLocked, Blue), TileOf(DoorLocked, Blue)},
		{0, TileOf(DoorLocked, Blue), TileOf(DoorLocked, Blue)},
		{TileOf(Key, Blue), TileOf(DoorLocked, Blue), TileOf(DoorOpen, Blue)},
		{0, TileOf(DoorOpen, Blue), TileOf(DoorClosed, Blue)},
		{0, TileOf(DoorClosed, Blue), TileOf(DoorOpen, Blue)},
	} {
		s.pocket, s.grid[ahead] = c.pocket, c.door
		if s.Step(Toggle); s.grid[ahead] != c.after || s.pocket != c.pocket {
			t.Errorf("with %v in the pocket the %v becomes a %v", c.pocket, c.door, s.grid[ahead])
		}
	}
}

// TestStepsAllocateNothing: neither steps nor starts.
func TestStepsAllocateNothing(t *testing.T) {
	w, err := New("R4-13x13", Tasks{Name: "small", Seed: PublicSeed})
	if err != nil {
		t.Fatal(err)
	}
	s := w.NewState(3)
	s.Seed(rng.NewJAXKey(1))
	var seen [25]uint8
	n := uint32(0)
	if got := testing.AllocsPerRun(2000, func() {
		n++
		if _, ends := s.Step(uint8(mix(n) % 6)); ends {
			s.Reset()
		}
		view(seen[:], s)
	}); got != 0 {
		t.Errorf("%v allocations per step", got)
	}
}

// BenchmarkStep is one environment of trivial tasks under random actions, views included.
func BenchmarkStep(b *testing.B) {
	w, err := New("R1-9x9", trivial)
	if err != nil {
		b.Fatal(err)
	}
	s := w.NewState(0)
	s.Seed(rng.NewJAXKey(1))
	var seen [25]uint8
	for i := range b.N {
		if _, ends := s.Step(uint8(mix(uint32(i)) % 6)); ends {
			s.Reset()
		}
		view(seen[:], s)
	}
}
