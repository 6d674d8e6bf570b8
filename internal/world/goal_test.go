package world

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestKeyBeforeDoor: the door pays nobody without the key, and neither pays twice.
func TestKeyBeforeDoor(t *testing.T) {
	goal := KeyAndDoor(At(1, 0), At(0, 1))
	rule := goal.Rule()
	at := StateOf(At(0, 0), 0)
	for i, c := range []struct {
		to    Cell
		stage uint8
		paid  uint8
	}{
		{At(0, 1), 0, 0}, {At(0, 1), 0, 0}, {At(1, 0), 1, 1}, {At(1, 0), 1, 0}, {At(0, 0), 1, 0}, {At(0, 1), 2, 1}, {At(0, 1), 2, 0}, {At(1, 0), 2, 0}, {At(0, 1), 2, 0},
	} {
		var paid uint8
		if at, paid = rule.Enter(at, c.to); at != StateOf(c.to, c.stage) || paid != c.paid {
			t.Fatalf("step %d to %v: at %v in stage %d, paid %d; want stage %d, paid %d", i, c.to, at.Cell(), at.Stage(), paid, c.stage, c.paid)
		}
	}
}

func TestGoalJSON(t *testing.T) {
	goals := []Goal{goalAt(8, 3), KeyAndDoor(At(1, 2), At(15, 0)), KeyAndDoor(0, 1)}
	out, err := json.Marshal(goals)
	if got, want := string(out), `[[8,3],{"key":[1,2],"door":[15,0]},{"key":[0,0],"door":[1,0]}]`; err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	var again []Goal
	if err := json.Unmarshal(out, &again); err != nil || !slices.Equal(goals, again) {
		t.Errorf("read back as %v, %v", again, err)
	}
	for _, bad := range []string{`{}`, `{"key":[1,2]}`, `{"door":[1,2]}`, `{"key":[1,2],"door":[16,0]}`, `[1]`, `3`, `"a"`} {
		var g Goal
		if json.Unmarshal([]byte(bad), &g) == nil {
			t.Errorf("%s was read as %v", bad, g)
		}
	}
}

func TestStateJSON(t *testing.T) {
	states := []State{StateOf(At(8, 3), 0), StateOf(At(0, 15), 2)}
	out, err := json.Marshal(states)
	if got, want := string(out), `[[8,3],[0,15,2]]`; err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	var again []State
	if err := json.Unmarshal(out, &again); err != nil || !slices.Equal(states, again) {
		t.Errorf("read back as %v, %v", again, err)
	}
	for _, bad := range []string{`[1]`, `[1,2,3]`, `[1,2,-1]`, `[1,16]`, `[1,2,0,0]`, `{}`} {
		var s State
		if json.Unmarshal([]byte(bad), &s) == nil {
			t.Errorf("%s was read as %v", bad, s)
		}
	}
}

func TestKeyDoorGoals(t *testing.T) {
	goals := doors.Goals()
	if len(goals) != 81*80 || doors.NumGoals() != len(goals) || !slices.IsSorted(goals) {
		t.Fatalf("%d goals, want 6480 in the order of their numbers", len(goals))
	}
	seen := map[Goal]bool{}
	for _, g := range goals {
		if err := doors.checkGoal(g); err != nil || seen[g] {
			t.Fatalf("goal %v: %v, seen before: %v", g, err, seen[g])
		}
		seen[g] = true
		if doors.Optimal(g) != 2 {
			t.Fatalf("goal %v has an optimum of %v, and 50 steps lead anywhere twice", g, doors.Optimal(g))
		}
	}
	for bad, want := range map[Goal]string{
		goalAt(1, 1):                   "goal (1,1) is none of a 9×9 key-to-door room with horizon 50",
		KeyAndDoor(At(1, 1), At(1, 1)): "goal key (1,1) door (1,1) has its key and its door in one cell",
		KeyAndDoor(At(1, 1), At(9, 1)): "goal key (1,1) door (9,1) lies outside the 9×9 key-to-door room with horizon 50",
		KeyAndDoor(At(1, 9), At(1, 1)): "goal key (1,9) door (1,1) lies outside the 9×9 key-to-door room with horizon 50",
	} {
		if diff := cmp.Diff(want, text(doors.checkGoal(bad))); diff != "" {
			t.Error(diff)
		}
	}
}

// TestSampleLeaksNothing: samples hold what they should of goals to learn from and held out, and a
// goal's side is the same in every one.
func TestSampleLeaksNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		room := Room{Size: rapid.IntRange(MinSize, 5).Draw(t, "size"), Horizon: 1, Kind: anyKind(t)}
		seed, ratio := rapid.Uint64().Draw(t, "seed"), rapid.Float64Range(0, 1).Draw(t, "ratio")
		n := rapid.IntRange(0, room.NumGoals()).Draw(t, "n")
		goals := room.Sample(seed, ratio, n)
		if len(goals) != n || !slices.IsSorted(goals) || len(slices.Compact(slices.Clone(goals))) != n {
			t.Fatalf("%d goals of %d asked for: %v", len(goals), n, goals)
		}
		if n == room.NumGoals() && !slices.Equal(goals, room.Goals()) {
			t.Fatal("a sample of all goals is not the room's")
		}
		h := Header{Room: room, Goals: goals, SplitSeed: seed, TrainRatio: ratio}
		train, test := h.Split()
		if want := int(math.Round(ratio * float64(n))); len(train) != want || len(train)+len(test) != n {
			t.Fatalf("%d goals to learn from and %d held out, want %d of %d", len(train), len(test), want, n)
		}
		_, held := room.Split(seed, ratio)
		for _, i := range test {
			if !slices.Contains(held, goals[i]) {
				t.Fatalf("%v is held out of the sample and not of the room", goals[i])
			}
		}
	})
}

func smallDoors() Header {
	room := Room{Size: 3, Horizon: 9, Kind: KeyDoor}
	return Header{Room: room, Goals: room.Sample(5, 0.8, 20), SplitSeed: 5, TrainRatio: 0.8, Streams: 2, Steps: 30}
}

// TestFilesNameTheirRoom: a file of Dark Room is of the version that programs without Dark
// Key-to-Door read, and one that names no room is Dark Room's; a file of Dark Key-to-Door is of a
// version that they refuse.
func TestFilesNameTheirRoom(t *testing.T) {
	read := func(h Header) []byte {
		data, err := os.ReadFile(write(t, t.TempDir(), h))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	dark, keys := read(small()), read(smallDoors())
	if dark[8] != 1 || keys[8] != 2 {
		t.Errorf("versions %d and %d, want 1 and 2", dark[8], keys[8])
	}
	const name = `,"env":"darkroom"`
	payload, b := taken(t, dark)
	body, err := json.Marshal(b)
	if err != nil || strings.Count(string(body), name) != 1 {
		t.Fatalf("%v, the header is %s", err, body)
	}
	h, err := parse(seal(payload, []byte(strings.Replace(string(body), name, "", 1))))
	if err != nil || h.Room.Kind != DarkRoom {
		t.Errorf("a file from before rooms had names: %v", err)
	}
	for _, c := range []struct{ from, to, want string }{
		{`"env":"keydoor"`, `"env":"maze"`, `a room of the kind "maze": this program knows darkroom and keydoor`},
		{`"env":"keydoor"`, `"env":"keydoor"`, "format version 1, a file of a 3×3 key-to-door room with horizon 9 has 2"},
	} {
		payload, b := taken(t, keys)
		body, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = parse(seal(payload, []byte(strings.Replace(string(body), c.from, c.to, 1)))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
}

// TestRefereeKnowsTheKey: a door that pays without the key, a key that pays twice and a reward kept
// back are found in a file whose sums fit.
func TestRefereeKnowsTheKey(t *testing.T) {
	room := Room{Size: 3, Horizon: 6, Kind: KeyDoor}
	goal := KeyAndDoor(At(2, 1), At(1, 0))
	h := Header{Room: room, Goals: []Goal{goal}, TrainRatio: 0.5, Streams: 1, Steps: 6}
	play := func(rewards ...uint8) error {
		at, steps := room.Start(), []Step(nil)
		// the door, back, the key, the key, back, the door
		for i, a := range []uint8{Up, Down, Right, Stay, Left, Up} {
			steps = append(steps, MakeStep(at, a, rewards[i]))
			at = room.Move(at, a)
		}
		w, err := Create(filepath.Join(t.TempDir(), "a.hist"), h)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Discard()
		return w.WriteGoal(0, steps)
	}
	if err := play(0, 0, 1, 0, 0, 1); err != nil {
		t.Errorf("an honest walk: %v", err)
	}
	for name, rewards := range map[string][]uint8{
		"transition 0 says": {1, 0, 1, 0, 0, 1}, "transition 3 says": {0, 0, 1, 1, 0, 1}, "transition 5 says": {0, 0, 1, 0, 0, 0}, "transition 2 says": {0, 0, 0, 0, 0, 1},
	} {
		if err := play(rewards...); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("rewards %v: %v, want %s", rewards, err, name)
		}
	}
}
