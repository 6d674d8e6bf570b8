package recurrent

import (
	"context"
	"slices"
	"testing"

	"haul/internal/world/xland"
)

// TestLabelsReadWhatActingSaw: if nothing is learned, a step's label is the most likely action at
// the time that the learner acted, for any previous action and reward.
func TestLabelsReadWhatActingSaw(t *testing.T) {
	const steps = 90
	s, w := small(), room(t, 3, 7)
	s.Envs = 60 // the first step of some depends on what is shown as the action before
	l := open(t, &s, w, 1)
	r := l.envs.(*rooms)
	r.keep(make([][]xland.Step, s.Envs))
	if err := l.begin(1, 8); err != nil {
		t.Fatal(err)
	}
	convinced(t, l)
	likeliest := make([][]uint8, s.Envs)
	for range steps {
		if err := l.collect(context.Background(), 1); err != nil {
			t.Fatal(err)
		}
		for e := range s.Envs {
			logits := l.net.outs[e*int(xland.NumActions+1):][:xland.NumActions]
			likeliest[e] = append(likeliest[e], uint8(slices.Index(logits, slices.Max(logits))))
		}
	}
	if err := l.label(context.Background()); err != nil {
		t.Fatal(err)
	}
	goals, labels := 0, map[uint8]bool{}
	for e, lived := range r.dst {
		for k, step := range lived {
			if step.Best != likeliest[e][k] {
				t.Fatalf("history %d, step %d: labelled %d, likeliest was %d", e, k, step.Best, likeliest[e][k])
			}
			if labels[step.Best] = true; step.Reward > 0 {
				goals++
			}
		}
	}
	if goals < 3 || len(labels) < 3 {
		t.Errorf("%d goals were reached, and there are %d labels: too few to tell", goals, len(labels))
	}
}

// TestLabelsSeeExactRewards: in episodes so long that neighbouring rewards have the same
// stored value, labels see the exact reward, as the learner did.
func TestLabelsSeeExactRewards(t *testing.T) {
	s, w := small(), room(t, 3, 507)
	s.Steps = 2 * w.Horizon
	l := open(t, &s, w, 1)
	r, rounded := l.envs.(*rooms), 0
	for clock := 1; clock <= w.Horizon; clock++ {
		want := outcome(w.Pays(clock), true)
		if outcome(float32(w.Space().Rewards[w.Paid(clock)]), true) != want {
			rounded++
		} else if clock%50 != 1 {
			continue
		}
		if err := l.begin(3, 8); err != nil {
			t.Fatal(err)
		}
		lived := make([]xland.Step, 2+clock+1) // this episode between one of two steps and one of one
		lived[1].Ends, lived[1].Reward = true, w.Paid(2)
		lived[1+clock].Ends, lived[1+clock].Reward = true, w.Paid(clock)
		lived[2+clock].Ends = true
		r.keep(make([][]xland.Step, 1))
		r.dst[0] = lived
		if err := l.label(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := r.outcome[0]; got != want {
			t.Errorf("a goal after %d steps is outcome %d, the learner saw %d", clock, got, want)
		}
	}
	if rounded == 0 {
		t.Error("no reward is rounded to another outcome: nothing is tested")
	}
}

// TestOutcomes: each goal's reward has a separate outcome, and none of them means an end without
// reward.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		reward float32
		ends   bool
		want   int32
	}{{0, false, none}, {0, true, unpaid}, {1e-6, true, paid}, {0.12, true, paid}, {0.13, true, paid + 1}, {0.62, true, paid + 4}, {0.99, true, paid + 7}, {1, true, paid + 7}} {
		if got := outcome(c.reward, c.ends); got != c.want || firstOutcome+int(got) >= tableRows {
			t.Errorf("%v, ends %v: outcome %d, want %d", c.reward, c.ends, got, c.want)
		}
	}
}

// TestLearnersBeginAnew: nothing of a task before is shown, and the first policy is uniform.
func TestLearnersBeginAnew(t *testing.T) {
	s, w := small(), room(t, 3, 5)
	l := open(t, &s, w, 1)
	live(t, l, 1, 8, s.Envs)
	r := l.envs.(*rooms)
	r.keep(nil)
	if err := l.begin(3, 8); err != nil {
		t.Fatal(err)
	}
	for e := range s.Envs {
		if r.last[e] != noAction || r.outcome[e] != none {
			t.Errorf("environment %d begins with action %d and outcome %d", e, r.last[e], r.outcome[e])
		}
	}
	if err := l.collect(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(l.net.outs, func(v float32) bool { return v != 0 }) {
		t.Errorf("the first step's logits and values are %v", l.net.outs)
	}
}
