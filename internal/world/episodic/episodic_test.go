package episodic

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"haul/internal/world/grid"
)

// TestEpisodesEndWithTheTask: Dark Room ends on its goal. The door gives a reward only to an agent
// that has the key, after the key's reward.
func TestEpisodesEndWithTheTask(t *testing.T) {
	play := func(r Room, g Goal, from [2]int, actions ...uint8) (rewards []int, ended int) {
		e := r.NewEnv(g).(*Env)
		e.x, e.y = from[0], from[1]
		for i, a := range actions {
			reward, ends := e.Step(int(a))
			if rewards = append(rewards, reward); ends {
				return rewards, i + 1
			}
		}
		return rewards, 0
	}
	r, u, d, l := grid.Right, grid.Up, grid.Down, grid.Left
	dark, doors := NewRoom(grid.DarkRoom, 5, 6), NewRoom(grid.KeyDoor, 5, 8)
	for _, c := range []struct {
		name    string
		room    Room
		goal    Goal
		actions []uint8
		rewards []int
		ended   int
	}{
		{"the goal ends it", dark, At(4, 2), []uint8{r, r, r}, []int{0, 1}, 2},
		{"the limit ends it", dark, At(0, 0), []uint8{r, r, r, r, r, r, r}, []int{0, 0, 0, 0, 0, 0}, 6},
		{"a door without its key", doors, KeyAndDoor([2]int{2, 1}, [2]int{3, 2}), []uint8{r, l, u, d, r}, []int{0, 0, 1, 0, 1}, 5},
		{"a key pays once", doors, KeyAndDoor([2]int{2, 1}, [2]int{0, 0}), []uint8{u, d, u, d}, []int{1, 0, 0, 0}, 0},
	} {
		if rewards, ended := play(c.room, c.goal, [2]int{2, 2}, c.actions...); !slices.Equal(rewards, c.rewards) || ended != c.ended {
			t.Errorf("%s: paid %v, ended after %d; want %v and %d", c.name, rewards, ended, c.rewards, c.ended)
		}
	}
}

// TestBestIsReached: an expert earns what Best says wherever the limit allows it.
func TestBestIsReached(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]grid.Kind{grid.DarkRoom, grid.KeyDoor}).Draw(t, "kind")
		size := rapid.IntRange(MinSize, 20).Draw(t, "size")
		room := NewRoom(kind, size, rapid.IntRange(1, 4*size).Draw(t, "horizon"))
		g := room.goal(rapid.IntRange(0, room.NumGoals()-1).Draw(t, "goal"))
		if err := room.CheckGoal(g); err != nil {
			t.Fatal(err)
		}
		most := 0.0
		for x := range size {
			for y := range size {
				e := room.NewEnv(g).(*Env)
				if room.Anywhere {
					e.x, e.y = x, y
				}
				earned := 0.0
				for ends := false; !ends; {
					var reward int
					reward, ends = e.Step(e.Expert())
					earned += float64(reward)
				}
				most = max(most, earned)
			}
		}
		if most != room.Best(g) {
			t.Fatalf("%v, %v: experts earn %v at most, Best says %v", room, g, most, room.Best(g))
		}
	})
}

// TestDeal: goals are different, all of the room's, and a seed's own.
func TestDeal(t *testing.T) {
	room := NewRoom(grid.KeyDoor, 4, 16)
	learn, held, err := room.Deal(3, 200, -1)
	if err != nil || len(learn) != 200 || len(held) != 40 {
		t.Fatal(len(learn), len(held), err)
	}
	seen := map[Goal]bool{}
	for _, g := range slices.Concat(learn, held) {
		if seen[g] || room.CheckGoal(g) != nil {
			t.Fatalf("goal %v: seen before %v, %v", g, seen[g], room.CheckGoal(g))
		}
		seen[g] = true
	}
	if other, _, _ := room.Deal(4, 200, -1); slices.Equal(learn, other) {
		t.Error("two seeds deal alike")
	}
	if _, _, err := room.Deal(3, 240, 1); err == nil {
		t.Error("more goals than there are")
	}
}

// TestLabelsAreHindsight: a learner that explores for long has seen every way, and the label of
// each step then leads by a shortest one.
func TestLabelsAreHindsight(t *testing.T) {
	for _, room := range []Room{NewRoom(grid.DarkRoom, 4, 16), NewRoom(grid.KeyDoor, 3, 20)} {
		for i := range room.NumGoals() {
			g := room.goal(i)
			s := Published()
			s.Final = 1 // explores to the end
			s.Episodes = 400
			steps := room.History(nil, g, s, 5, uint64(i))
			holds := !g.keyed()
			for k, step := range steps {
				to := g.Cell()
				if !holds {
					to = g.Key()
				}
				at := [2]int{int(step.X), int(step.Y)}
				x, y := move(at[0], at[1], room.Size, int(step.Best))
				if apart([2]int{x, y}, to) != max(0, apart(at, to)-1) && at != to {
					t.Fatalf("%v, goal %v, step %d at %v, key %v: action %d leads to (%d,%d)", room, g, k, at, holds, step.Best, x, y)
				}
				if holds = holds || step.Reward > 0; step.Ends {
					holds = !g.keyed()
				}
			}
		}
	}
}

// TestLearnersLearn: Q-learning ends near the best on most goals, noise falls to none.
func TestLearnersLearn(t *testing.T) {
	for _, learner := range []Learner{QLearning, Noise} {
		room := NewRoom(grid.KeyDoor, 6, 30)
		s := Published()
		s.Learner = learner
		learn, _, err := room.Deal(1, 30, 5)
		if err != nil {
			t.Fatal(err)
		}
		first, last := 0, 0
		for i, g := range learn {
			episode := 0
			for _, step := range room.History(nil, g, s, 2, uint64(i)) {
				if episode < 20 {
					first += int(step.Reward)
				} else if episode >= 180 {
					last += int(step.Reward)
				}
				if step.Ends {
					episode++
				}
			}
		}
		if a, b := float64(first)/600, float64(last)/600; a > 0.8 || b < 1.85 {
			t.Errorf("%s: %.2f at first, %.2f at last; want below 0.8 and over 1.85", learner, a, b)
		}
	}
}

// TestSetsHoldGoalsOut: a set learns from one goal at least, and at most from all but one.
func TestSetsHoldGoalsOut(t *testing.T) {
	for name, held := range map[string]int{"DR3-0-1": 0, "DR3-1-1": -1, "DR3-8-1": -1, "DR3-9-1": 0, "K2D3-71-1": 1, "K2D3-72-1": 0, "K2D3-73-1": 0, "K2D13-250-1": 100} {
		s, err := ParseSet(name, 0)
		if held == 0 {
			if err == nil || !strings.Contains(err.Error(), "and one at least is held out: write 1 to ") {
				t.Errorf("%s: %v", name, err)
			}
		} else if err != nil || s.Held != held {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

func TestParseSet(t *testing.T) {
	s, err := ParseSet("K2D13-250-1", 0)
	if err != nil || s.Room != NewRoom(grid.KeyDoor, 13, 100) || s.Learn != 250 || s.Histories != 1 || s.Held != 100 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := ParseSet("DR19-300-5", 0); err != nil || s.Room.Horizon != 100 || s.Held >= 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := ParseSet("DR7-30-2", 33); err != nil || s.Room.Horizon != 33 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{"", "DR9", "DR9-70", "dr9-70-5", "K2D65-10-1", "DR1-1-1", "DR9-70-0", "DR9-70-5x"} {
		if _, err := ParseSet(bad, 0); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestGoalJSON: a goal's JSON tells it apart from others.
func TestGoalJSON(t *testing.T) {
	room := NewRoom(grid.KeyDoor, 3, 5)
	seen := map[string]bool{}
	for i := range room.NumGoals() {
		text, err := json.Marshal(room.goal(i))
		if err != nil || seen[string(text)] {
			t.Fatalf("%s, %v", text, err)
		}
		seen[string(text)] = true
	}
}
