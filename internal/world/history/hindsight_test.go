package history

import (
	"testing"

	"haul/internal/world/grid"
)

// TestPackBest: random steps that have covered a whole room are labelled with an action of a
// shortest path to the next reward, and with the learner's action if it is one. Otherwise the
// records equal Pack's.
func TestPackBest(t *testing.T) {
	dark, doors := grid.Room{Size: 4, Horizon: 40}, grid.Room{Size: 3, Horizon: 60, Kind: grid.KeyDoor}
	for _, h := range []Header{
		{Room: dark, Goals: dark.Goals()},
		{Room: doors, Goals: doors.Goals()[:5]},
	} {
		h.SplitSeed, h.TrainRatio, h.Streams, h.Steps, h.Settings = 5, 0.8, 6, 20*h.Room.Horizon, "grid_size: 3\n"
		rooms, err := OpenRooms(write(t, t.TempDir(), h))
		if err != nil {
			t.Fatal(err)
		}
		defer rooms.Close()
		const streams = 2
		goals, steps := []int{3, 1}, h.Steps-7
		plain, err := rooms.Pack(goals, streams, steps)
		if err != nil {
			t.Fatal(err)
		}
		got, err := rooms.PackBest(goals, streams, steps)
		if err != nil || got.Stride != 2 || got.Label != 4 || len(got.Words) != 2*len(plain.Words) {
			t.Fatalf("%+v, %v", got, err)
		}
		own := 0
		for i, word := range plain.Words {
			if got.Words[2*i] != word {
				t.Fatalf("record %d is %x, Pack's %x", i, got.Words[2*i], word)
			}
			goal, at := h.Goals[goals[i/(streams*steps)]], i%steps
			paid := 0
			for k := at / h.Room.Horizon * h.Room.Horizon; k < at; k++ {
				paid += int(plain.Words[i-at+k] >> 24)
			}
			next := goal.Cell()
			switch {
			case goal.Keyed() && paid == 0:
				next = goal.Key()
			case goal.Keyed() && paid == 2:
				continue // nothing pays
			}
			cell, action := grid.At(int(word&255), int(word>>8&255)), uint8(word>>16&255)
			good := func(a uint8) bool {
				return far(h.Room.Move(cell, a), next) == max(0, far(cell, next)-1)
			}
			best := uint8(got.Words[2*i+1])
			if !good(best) || good(action) && best != action {
				t.Fatalf("%v, goal %v, at %v after %d rewards: %d is held best, %d was done", h.Room, goal, cell, paid, best, action)
			}
			if best == action {
				own++
			}
		}
		if own == 0 || own == len(plain.Words) {
			t.Errorf("%d labels of %d are the learner's own", own, len(plain.Words))
		}
		if _, err := rooms.PackBest([]int{99}, 1, 5); err == nil {
			t.Error("a goal that the file does not have")
		}
	}
}

// far is the number of steps between two cells.
func far(a, b grid.Cell) int {
	return max(a.X()-b.X(), b.X()-a.X()) + max(a.Y()-b.Y(), b.Y()-a.Y())
}
