package grid

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKeyBeforeDoor: the door gives no reward without the key, and neither gives a second one.
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
		if err := doors.CheckGoal(g); err != nil || seen[g] {
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
		if diff := cmp.Diff(want, text(doors.CheckGoal(bad))); diff != "" {
			t.Error(diff)
		}
	}
}
