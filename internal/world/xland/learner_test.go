package xland

import (
	"slices"
	"testing"
)

// TestLearnersLearn: of three kinds of goals, learners end better than they began, a history is a
// function of its numbers, and labels are actions that the last values hold best.
func TestLearnersLearn(t *testing.T) {
	w, err := New("R1-9x9", Tasks{Name: "trivial", Seed: PublicSeed})
	if err != nil {
		t.Fatal(err)
	}
	rules := DefaultSchedule()
	rules.Episodes = 300
	rewards := w.Space().Rewards
	ahead, picked := 0, 0
	for _, id := range []ID{1, 4, 9} { // next to, hold, left of you
		h := w.History(nil, id, rules, 3, uint64(id))
		if again := w.History(h[:0:0], id, rules, 3, uint64(id)); !slices.Equal(h, again) {
			t.Errorf("task %d: two histories of the same numbers differ", id)
		}
		if other := w.History(nil, id, rules, 4, uint64(id)); slices.Equal(h, other) {
			t.Errorf("task %d: seeds 3 and 4 give the same history", id)
		}
		var first, last float64
		episode, steps, agree := 0, 0, 0
		for i, s := range h {
			if steps++; s.Ends != (s.Reward > 0 || steps == w.Horizon) {
				t.Fatalf("task %d: step %d of episode %d pays %d and ends: %v", id, steps, episode, s.Reward, s.Ends)
			}
			if s.Reward > 0 && rewards[s.Reward] != float64(rewardsOf(w)[steps]) {
				t.Fatalf("task %d: a goal after %d steps pays %v, not %v", id, steps, rewards[s.Reward], rewardsOf(w)[steps])
			}
			if i > len(h)*9/10 && s.Best == s.Action {
				agree++
			}
			// Task 4 is to hold the pink star: where it lies ahead, it is picked up.
			if id == 4 && Tile(s.Seen[3*5+2]) == TileOf(Star, Pink) {
				ahead++
				if s.Best == PickUp {
					picked++
				}
			}
			if s.Ends {
				if episode < 20 {
					first += rewards[s.Reward] / 20
				} else if episode >= 280 {
					last += rewards[s.Reward] / 20
				}
				episode, steps = episode+1, 0
			}
		}
		if episode != rules.Episodes || last < first+0.08 {
			t.Errorf("task %d: %d episodes, from %.2f to %.2f", id, episode, first, last)
		}
		if agree < len(h)/30 { // a third of the last tenth; any action would be a sixth
			t.Errorf("task %d: of the last tenth of %d steps %d take the best action", id, len(h), agree)
		}
	}
	if picked < ahead*8/10 || ahead < 100 {
		t.Errorf("%d times the star lay ahead, %d times the label was to pick it up", ahead, picked)
	}
}

// rewardsOf are the package's, by steps.
func rewardsOf(w World) []float32 { return w.shared.room.rewards }

// TestSchedulesAreChecked: one below, at and one above what a schedule may be.
func TestSchedulesAreChecked(t *testing.T) {
	for _, c := range []struct {
		change func(*Schedule)
		fine   bool
	}{
		{func(s *Schedule) { s.Episodes = 0 }, false}, {func(s *Schedule) { s.Episodes = 1 }, true},
		{func(s *Schedule) { s.Episodes = 1 << 20 }, true}, {func(s *Schedule) { s.Episodes = 1<<20 + 1 }, false},
		{func(s *Schedule) { s.Discount = 1 }, false}, {func(s *Schedule) { s.Discount = 0 }, true},
		{func(s *Schedule) { s.Rate = 0 }, false}, {func(s *Schedule) { s.Rate = 1 }, true}, {func(s *Schedule) { s.Rate = 1.01 }, false},
		{func(s *Schedule) { s.Final = -0.1 }, false}, {func(s *Schedule) { s.Falls = 0 }, false}, {func(s *Schedule) { s.Falls = 1 }, true},
	} {
		s := DefaultSchedule()
		c.change(&s)
		if err := s.Check(); (err == nil) != c.fine {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
