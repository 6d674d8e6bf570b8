package xland

import (
	"slices"
	"strings"
	"testing"
)

// room9 is one room with the public benchmark of tasks without rules.
func room9(t *testing.T) World {
	t.Helper()
	w, err := New("R1-9x9", trivial)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// returns computes the returns of a history's episodes, which are all finished.
func returns(t *testing.T, w World, h []Step) (out []float64) {
	t.Helper()
	values, sum := w.Space().Rewards, 0.0
	for _, s := range h {
		if sum += values[s.Reward]; s.Ends {
			out, sum = append(out, sum), 0
		}
	}
	if !h[len(h)-1].Ends {
		t.Error("a history ends within an episode")
	}
	return out
}

// TestSearchersFindGoals: for every kind of goal, searchers get a higher return in their first
// episode than random actions (0.22), and most of the possible return from the fifth episode on.
func TestSearchersFindGoals(t *testing.T) {
	w := room9(t)
	var first, count float64
	late, of := map[uint8]float64{}, map[uint8]float64{}
	for id := range ID(110) {
		r := returns(t, w, w.Search(nil, id, Searching{Steps: 900, Noise: 0.1}, 3, uint64(id)))
		first, count = first+r[0], count+1
		kind := w.program(id).goal.kind
		mean, n := 0.0, 0.0
		for _, v := range r[min(4, len(r)-1):] {
			n++
			mean += (v - mean) / n
		}
		late[kind], of[kind] = late[kind]+mean, of[kind]+1 // every task counts alike
	}
	if len(of) != 11 {
		t.Fatalf("%d kinds of goals among the tasks, want 11", len(of))
	}
	if first/count < 0.5 {
		t.Errorf("first episodes earn %.3f", first/count)
	}
	for kind, n := range of {
		if late[kind]/n < 0.8 {
			t.Errorf("goals of kind %d: %.3f from the fifth episode on", kind, late[kind]/n)
		}
	}
}

// TestSearchersDoNotKnowTheGoal: before the first reward, a searcher's actions do not depend on the
// goal.
func TestSearchersDoNotKnowTheGoal(t *testing.T) {
	w := room9(t)
	life := func(g goal) []Step {
		e := w.NewEnv(ID(7)).(*Env)
		own := *e.task
		own.goal = g
		e.task = &own
		e.Seed(5, 9)
		return w.search(nil, e, Searching{Steps: 243, Noise: 0.2}, 5, 9)
	}
	tiles := w.program(7).tiles
	var goals []goal
	for _, tile := range tiles {
		if can[tile]&pickable != 0 {
			goals = append(goals, goal{kind: goalHold, a: tile}, goal{kind: goalNearUp, a: tile}, goal{kind: goalNear, a: tile})
		}
	}
	never := life(goal{kind: goalHold, a: TileOf(Star, NoColour)}) // no such tile lies there
	ends := map[int]bool{}
	for _, g := range goals {
		h := life(g)
		n := slices.IndexFunc(h, func(s Step) bool { return s.Reward > 0 })
		if n < 0 {
			continue
		}
		ends[n] = true
		for i, s := range h[:n+1] {
			if s.Seen != never[i].Seen || s.Action != never[i].Action || s.Best != never[i].Best {
				t.Errorf("goal %+v, paid in step %d: another life from step %d on", g, n, i)
				break
			}
		}
	}
	if len(ends) < 3 {
		t.Errorf("goals were reached in %d different steps: they tell nothing", len(ends))
	}
}

// TestSearchersHeedWhatPays: a goal reached without reward is not tried again. If several goals may
// have given a reward, others of these are tried.
func TestSearchersHeedWhatPays(t *testing.T) {
	w := room9(t)
	s := w.NewState(3)
	s.Seed([2]uint32{1, 2})
	l := newSearcher(s)
	l.begin()
	for range 40 {
		if len(l.met) > 1 {
			break
		}
		a := l.act(0)
		s.Step(a)
		l.heed(a, false)
		l.look()
	}
	tile := l.met[slices.IndexFunc(l.met, func(t Tile) bool { return can[t]&pickable != 0 })]
	hold := goal{kind: goalHold, a: tile}
	l.alive = append(slices.DeleteFunc(l.alive, func(g goal) bool { return g == hold }), hold)
	s.pocket = tile
	before := len(l.alive)
	l.heed(PickUp, false)
	if slices.Contains(l.alive, hold) || len(l.alive) != before-1 {
		t.Errorf("held without pay: %d goals of %d are left, the goal to hold it among them: %v", len(l.alive), before, slices.Contains(l.alive, hold))
	}
	l.alive = append(l.alive, hold)
	l.heed(PickUp, true)
	if len(l.alive) != 1 || l.alive[0] != hold || !l.paid {
		t.Errorf("held and paid: %d goals are left", len(l.alive))
	}
	l.heed(PickUp, false) // a contradiction
	if len(l.alive) == 0 || l.paid {
		t.Error("what was believed did not hold: nothing is tried any more")
	}
}

// TestSearchable: what searchers have no notion of is refused in a line.
func TestSearchable(t *testing.T) {
	for want, c := range map[string]struct{ env, tasks string }{
		"":                                       {"R1-9x9", "trivial"},
		"searchers know one room":                {"R4-13x13", "trivial"},
		"has rules, which searchers do not know": {"R1-9x9", "medium"},
	} {
		w, err := New(c.env, Tasks{Name: c.tasks, Seed: PublicSeed})
		if err != nil {
			t.Fatal(err)
		}
		err = nil
		for id := range ID(20) {
			if err == nil {
				err = w.Searchable(id)
			}
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s of %s: %v, want %q", c.env, c.tasks, err, want)
		}
	}
	for _, s := range []Searching{{Steps: 0}, {Steps: 1<<20 + 1}, {Steps: 1, Noise: -0.1}, {Steps: 1, Noise: 1.1}} {
		if s.Check() == nil {
			t.Errorf("%+v is taken", s)
		}
	}
	for _, s := range []Searching{{Steps: 1}, {Steps: 1 << 20, Noise: 1}, DefaultSearching()} {
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
}

// TestGuidedLivesAreTheSearchers: an agent that takes the searcher's actions has the same steps as
// a searcher.
func TestGuidedLivesAreTheSearchers(t *testing.T) {
	w := room9(t)
	for id := range ID(12) {
		want := w.Search(nil, id, Searching{Steps: 300}, 4, 11)
		g, seen := w.Guide(nil, id, 4, 11), make([]float64, 25)
		for range want {
			g.Observe(seen)
			for i, v := range seen {
				if v != float64(g.now.Seen[i]) {
					t.Fatalf("%v: observed %v of %d", id, v, g.now.Seen[i])
				}
			}
			reward, over := g.Take(int(g.now.Best))
			if s := want[len(g.Steps())-1]; reward != w.Space().Rewards[s.Reward] || over != s.Ends {
				t.Fatalf("%v, step %d: reward %v, over %v", id, len(g.Steps()), reward, over)
			}
		}
		if !slices.Equal(g.Steps(), want) {
			t.Errorf("%v: another life", id)
		}
	}
}
