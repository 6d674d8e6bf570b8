package grid

import (
	"encoding/json"
	"testing"
)

// TestWordsOfSteps: each part of a transition has its byte.
func TestWordsOfSteps(t *testing.T) {
	for _, c := range []struct {
		cell           Cell
		action, reward uint32
		want           int32
	}{{At(3, 5), 2, 1, 3 | 5<<8 | 2<<16 | 1<<24}, {At(15, 15), 4, 0, 15 | 15<<8 | 4<<16}, {At(0, 0), 0, 1, 1 << 24}} {
		s := Step(uint32(c.cell) | c.action<<8 | c.reward<<11)
		if got := s.Word(); got != c.want || s.Reward() != uint8(c.reward) || s.Action() != uint8(c.action) || s.Cell() != c.cell {
			t.Errorf("%v %d %d: %x, want %x", c.cell, c.action, c.reward, got, c.want)
		}
	}
}

// TestCellsOutsideAreRefused, with the largest coordinate there is.
func TestCellsOutsideAreRefused(t *testing.T) {
	var c Cell
	if err := json.Unmarshal([]byte("[15,0]"), &c); err != nil || c != At(15, 0) {
		t.Errorf("%v, %v", c, err)
	}
	if err := json.Unmarshal([]byte("[16,0]"), &c); err == nil || err.Error() != "[16,0] is not a cell: want [x,y] with both in 0..15" {
		t.Errorf("%v", err)
	}
}

// TestEpisodesEndAtTheHorizon, and not before.
func TestEpisodesEndAtTheHorizon(t *testing.T) {
	r := Room{Size: 3, Horizon: 4}
	e := &env{room: r, rule: Goal(0).Rule()}
	for range 2 {
		e.Reset()
		for step := 1; step <= 4; step++ {
			if _, ended := e.Step(0); ended != (step == 4) {
				t.Errorf("step %d: ended %v", step, ended)
			}
		}
	}
}

// What an agent sees of a room is its column and its row, in that order.
func TestObserve(t *testing.T) {
	e := &env{room: Room{Size: 4, Horizon: 9}, state: StateOf(At(3, 1), 0)}
	seen := []int32{-1, -1}
	if e.Observe(seen); seen[0] != 3 || seen[1] != 1 {
		t.Errorf("%v", seen)
	}
}
