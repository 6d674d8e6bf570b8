package history

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haul/internal/world/grid"

	"pgregory.net/rapid"
)

func smallDoors() Header {
	room := grid.Room{Size: 3, Horizon: 9, Kind: grid.KeyDoor}
	return Header{Room: room, Goals: room.Sample(5, 0.8, 20), SplitSeed: 5, TrainRatio: 0.8, Streams: 2, Steps: 30}
}

// TestFilesNameTheirRoom: files of Dark Room have the version that programs without Dark
// Key-to-Door read. A file without a room's name is of Dark Room. Files of Dark Key-to-Door have a
// version that these programs refuse.
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
	if err != nil || h.Room.Kind != grid.DarkRoom {
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

// TestValidatorKnowsTheKey: a door that pays without the key, a key that pays twice and a reward
// kept back are found in a file whose sums fit.
func TestValidatorKnowsTheKey(t *testing.T) {
	room := grid.Room{Size: 3, Horizon: 6, Kind: grid.KeyDoor}
	goal := grid.KeyAndDoor(grid.At(2, 1), grid.At(1, 0))
	h := Header{Room: room, Goals: []grid.Goal{goal}, TrainRatio: 0.5, Streams: 1, Steps: 6}
	play := func(rewards ...uint8) error {
		at, steps := room.Start(), []grid.Step(nil)
		// the door, back, the key, the key, back, the door
		for i, a := range []uint8{grid.Up, grid.Down, grid.Right, grid.Stay, grid.Left, grid.Up} {
			steps = append(steps, grid.MakeStep(at, a, rewards[i]))
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

// TestSampleLeaksNothing: samples hold what they should of goals to learn from and held out, and a
// goal's side is the same in every one.
func TestSampleLeaksNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		room := grid.Room{Size: rapid.IntRange(grid.MinSize, 5).Draw(t, "size"), Horizon: 1, Kind: rapid.SampledFrom([]grid.Kind{grid.DarkRoom, grid.KeyDoor}).Draw(t, "kind")}
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
