package recurrent

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu"
	"haul/internal/kernel/reference"
	"haul/internal/plan"
	"haul/internal/rng"
	"haul/internal/world/xland"
)

func openCPU(t *testing.T, workers int) kernel.Device {
	t.Helper()
	dev, err := cpu.Open(cpu.Options{Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// room returns a small world whose episodes have at most horizon steps.
func room(t *testing.T, view, horizon int) xland.World {
	t.Helper()
	w, err := xland.New("R1-5x5", xland.Tasks{Name: "trivial", Seed: xland.PublicSeed})
	if err != nil {
		t.Fatal(err)
	}
	w.View, w.Horizon = view, horizon
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
	return w
}

// small is a learner of a moment.
func small() Settings {
	s := Default()
	s.Steps, s.Envs, s.Rollout, s.Hidden, s.Parts = 23, 5, 4, 6, 2
	return s
}

func open(t *testing.T, s *Settings, w xland.World, workers int) *learner {
	t.Helper()
	r := newRooms(w, s.Envs, workers)
	l, err := newLearner(openCPU(t, workers), s, r.senses(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func live(t *testing.T, l *learner, task xland.ID, seed uint64, histories int) [][]xland.Step {
	t.Helper()
	dst := make([][]xland.Step, histories)
	l.envs.(*rooms).keep(dst)
	if err := l.learn(context.Background(), int64(task), seed); err != nil {
		t.Fatal(err)
	}
	return dst
}

// TestHistoriesAreLived: a history contains the world's observations and rewards for its actions,
// from the first step to the end of the last whole episode. The cases vary the view and the lengths
// of episodes, rollouts and histories: one environment, rollouts of one step, episodes of one step,
// episodes that end with the first or the last step of a rollout, goals in episodes after the
// first.
func TestHistoriesAreLived(t *testing.T) {
	goals := 0 // after a first episode
	for _, c := range []struct{ view, horizon, envs, rollout, steps int }{
		{3, 7, 40, 9, 60}, {5, 9, 5, 4, 23}, {3, 4, 3, 4, 16}, {7, 5, 1, 4, 13}, {5, 1, 2, 3, 7}, {3, 6, 1, 1, 9}, {5, 7, 2, 14, 14}, {5, 3, 13, 2, 5},
	} {
		s, w := small(), room(t, c.view, c.horizon)
		s.Envs, s.Rollout, s.Steps = c.envs, c.rollout, c.steps
		if err := s.Check(w); err != nil {
			t.Fatal(err)
		}
		l := open(t, &s, w, 1)
		kept := max(1, c.envs-1)
		all := live(t, l, 1, 8, kept)
		starts := rng.At(l.key, 0, 0, rng.Starts)
		b, err := xland.NewBatch(w, slices.Repeat([]xland.ID{1}, c.envs), rng.JAXKey{starts[0], starts[1]}, 1)
		if err != nil {
			t.Fatal(err)
		}
		last, clock := make([]int, kept), make([]int, kept)
		rewards := w.Space().Rewards
		for k := range c.steps {
			actions := make([]uint8, c.envs)
			for e, steps := range all {
				if k < len(steps) {
					actions[e] = steps[k].Action
					if !slices.Equal(steps[k].Seen[:c.view*c.view], b.Views[e*c.view*c.view:][:c.view*c.view]) {
						t.Fatalf("%+v: history %d sees something else at step %d", c, e, k)
					}
				}
			}
			b.Step(actions)
			for e, steps := range all {
				if k >= len(steps) {
					continue
				}
				if steps[k].Ends != b.Ends[e] || math.Abs(rewards[steps[k].Reward]-float64(b.Rewards[e])) > 1e-6 {
					t.Fatalf("%+v: step %d of history %d: %+v, the world pays %v and ends: %v", c, k, e, steps[k], b.Rewards[e], b.Ends[e])
				}
				if clock[e]++; b.Rewards[e] > 0 && b.Rewards[e] != w.Pays(clock[e]) {
					t.Fatalf("%+v: step %d of an episode pays %v, not %v", c, clock[e], b.Rewards[e], w.Pays(clock[e]))
				}
				if b.Rewards[e] > 0 && last[e] > 0 {
					goals++
				}
				if b.Ends[e] {
					last[e], clock[e] = k+1, 0
				}
			}
		}
		for e, steps := range all {
			if len(steps) != last[e] || len(steps) <= c.steps-c.horizon {
				t.Errorf("%+v: history %d has %d steps, its last episode ends with step %d", c, e, len(steps), last[e])
			}
		}
	}
	if goals < 10 {
		t.Errorf("%d goals were reached after a first episode: too few to tell how steps are counted", goals)
	}
}

// convinced gives a learner weights that tell states apart, and returns them.
func convinced(t *testing.T, l *learner) []float32 {
	t.Helper()
	weights := make([]float32, l.net.model.Layout().Len)
	for i := range weights {
		weights[i] = rng.Float(rng.At(9, uint64(i), 0, rng.Weights)[0]) - 0.5
	}
	if err := l.net.store.WriteWeights(weights); err != nil {
		t.Fatal(err)
	}
	return weights
}

// TestLearningSeesWhatActingSaw: before anything is learned, the program that learns computes from
// the units at a rollout's start and what was shown since the very values and probabilities that
// were acted on, though episodes ended on the way.
func TestLearningSeesWhatActingSaw(t *testing.T) {
	for _, horizon := range []int{1, 3, 6} {
		s, w := small(), room(t, 5, horizon)
		s.Rate, s.Clip, s.Rollout, s.Steps, s.Passes, s.Parts, s.Envs = 1e-12, 2e-5, 6, 24, 1, 1, 30
		l := open(t, &s, w, 2)
		if err := l.begin(2, 5); err != nil {
			t.Fatal(err)
		}
		convinced(t, l)
		rounds := 0
		l.curve = func(_ int, _ float64, _ int, m kernel.Metrics) {
			rounds++
			var miss float64
			ends := 0
			for e := range s.Envs {
				for k := range s.Rollout {
					at := e*s.Rollout + k
					d := float64(l.roll.value[e*(s.Rollout+1)+k] - l.roll.sample[4*at+3])
					miss += d * d
					if l.roll.ends[at] {
						ends++
					}
				}
			}
			if got := m.Sum(plan.PPOValue); m.Sum(plan.PPOClipped) > 0 || math.Abs(got-miss) > 1e-4*miss {
				t.Errorf("horizon %d, rollout %d: %v ratios are not 1, errors of %v for %v", horizon, rounds, m.Sum(plan.PPOClipped), got, miss)
			}
			if ends < s.Envs*s.Rollout/6 {
				t.Errorf("horizon %d: %d episodes ended", horizon, ends)
			}
		}
		var units [2][]float32
		follows := make([]float32, s.Envs) // what the rollout before holds its next step worth
		for k := range 3 {
			for i, do := range []func() error{
				func() error { return l.collect(context.Background(), s.Rollout) }, func() error { return l.improve(context.Background()) },
			} {
				units[i] = make([]float32, s.Envs*s.Hidden)
				if err := errors.Join(do(), l.net.act.ReadBatch(l.net.actState, units[i])); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(units[0], units[1]) {
				t.Error("units move while nobody acts")
			}
			for e := range follows {
				v := l.roll.value[e*(s.Rollout+1):][:s.Rollout+1]
				if math.Abs(float64(v[0]-follows[e])) > 1e-6 && k > 0 {
					t.Errorf("horizon %d: environment %d was held worth %v, and is %v when its rollout begins", horizon, e, follows[e], v[0])
				}
				follows[e] = v[s.Rollout]
			}
		}
		if rounds != 3 {
			t.Errorf("%d rollouts", rounds)
		}
	}
}

// TestAdvantages: computed by hand, for episodes that end with the rollout's first step, end
// with its last, continue, are truncated by a limit with a value of 8 to follow, and have an idle
// step in the middle.
func TestAdvantages(t *testing.T) {
	s := Settings{Envs: 5, Rollout: 3, Discount: 0.5, Lambda: 0.25}
	r := newRollout(&s, senses{inputs: 1, actions: 2})
	copy(r.value, slices.Repeat([]float32{1, 2, 4, 6}, 5))
	copy(r.reward, []float32{3, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 9, 0})
	r.ends[0], r.ends[5], r.ends[10], r.ends[12] = true, true, true, true
	r.after[10], r.idle[13] = 8, true
	r.advantages(&s)
	// what is paid, half of what follows and what was expected make 2, 0, -1; 0, 0, -1; 0, 0, -1;
	// 0, 2, -1; -1, none, -1
	want := []float64{2, -0.125, -1, -1. / 64, -0.125, -1, -1. / 64, -0.125, -1, 0.25, 2, -1, -1, 0, -1}
	mean, squares, n := 0.0, 0.0, 14.0
	for i, a := range want {
		v := []float64{1, 2, 4}[i%3]
		if got := float64(r.sample[4*i+3]); math.Abs(got-(a+v)) > 1e-6 {
			t.Errorf("step %d: a target of %v, want %v", i, got, a+v)
		}
		mean += a / n
		squares += a * a / n
	}
	for i, a := range want {
		shifted := (a - mean) / (math.Sqrt(squares-mean*mean) + 0.02) // as docs/models.md has it
		if i == 13 {
			shifted = 0 // an idle step is not learned from
		}
		if got := float64(r.sample[4*i+2]); math.Abs(got-shifted) > 1e-5 {
			t.Errorf("step %d: an advantage of %v for %v", i, got, a)
		}
	}
}

// TestLearnerForgets: a learner that had another task before does what a new one does, another seed
// and another task do something else, and environments differ.
func TestLearnerForgets(t *testing.T) {
	s, w := small(), room(t, 5, 9)
	used := open(t, &s, w, 1)
	live(t, used, 1, 8, 2)
	again, fresh := live(t, used, 3, 8, 2), live(t, open(t, &s, w, 2), 3, 8, 2)
	if !reflect.DeepEqual(again, fresh) {
		t.Error("what a learner does depends on the task before, or on the cores")
	}
	acts := func(steps []xland.Step) (out []uint8) {
		for _, s := range steps {
			out = append(out, s.Action)
		}
		return out[:min(len(out), 14)]
	}
	for what, other := range map[string][]xland.Step{"seed": live(t, used, 3, 9, 1)[0], "task": live(t, used, 4, 8, 1)[0], "environment": fresh[1]} {
		if slices.Equal(acts(other), acts(fresh[0])) {
			t.Errorf("another %s, the same actions", what)
		}
	}
}

// TestLabelsAreOfTheEnd: a step's label is the likeliest action of the policy that has learned,
// which read the history up to there: the reference's, over the whole history at once. Before it
// learned it acted at random.
func TestLabelsAreOfTheEnd(t *testing.T) {
	s, w := small(), room(t, 3, 9)
	s.Rollout = 60
	l := open(t, &s, w, 1)
	if err := l.begin(3, 8); err != nil {
		t.Fatal(err)
	}
	l.envs.(*rooms).keep(make([][]xland.Step, 1))
	err := l.collect(context.Background(), s.Rollout)
	weights, strong := convinced(t, l), make([]float32, s.Envs*s.Hidden) // units that no label may begin with
	for i := range strong {
		strong[i] = float32(9 - 18*(i%2))
	}
	if err = errors.Join(err, l.net.act.WriteBatch(l.net.actState, strong), l.label(context.Background())); err != nil {
		t.Fatal(err)
	}
	steps := l.envs.(*rooms).dst[0]
	dev := reference.New[float64](1)
	store, err := dev.NewStore(l.net.model.Layout(), true)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.WriteWeights(weights); err != nil {
		t.Fatal(err)
	}
	p := plan.New("label", dev, 1, 1, l.net.model.Layout())
	index, units := p.RowInts("index", 1, len(steps)*l.inputs, 1), p.Rows("units", 1, s.Hidden)
	out := plan.Keep(l.net.model.Record(p, index, nil, units, false))
	run, err := p.Compile(dev, store)
	if err != nil {
		t.Fatal(err)
	}
	var shown []int32
	action, led := noAction, int32(none)
	for _, step := range steps {
		for _, tile := range step.Seen[:9] {
			shown = append(shown, int32(tile))
		}
		shown = append(shown, int32(firstAction)+action, int32(firstOutcome)+led)
		action, led = int32(step.Action), outcome(float32(w.Space().Rewards[step.Reward]), step.Ends)
	}
	if err := errors.Join(run.WriteBatch(index, shown), run.WriteBatch(units, make([]float32, s.Hidden)), run.Run()); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, len(steps)*7)
	if err := run.ReadBatch(out, got); err != nil {
		t.Fatal(err)
	}
	kinds := map[uint8]bool{}
	for i, step := range steps {
		if row := got[7*i:][:6]; row[step.Best] < slices.Max(row)-1e-5 {
			t.Fatalf("step %d is labelled %d of %v", i, step.Best, row)
		}
		kinds[step.Best] = true
	}
	if len(kinds) < 2 {
		t.Error("all labels are equal: the policy does not tell states apart")
	}
}

// TestLearnersLearn: learners are paid far more often in the last tenth of their steps than in the
// first.
func TestLearnersLearn(t *testing.T) {
	w, err := xland.New("R1-9x9", xland.Tasks{Name: "trivial", Seed: xland.PublicSeed})
	if err != nil {
		t.Fatal(err)
	}
	s := Default()
	s.Steps, s.Rollout, s.Hidden = 960, 32, 32
	l := open(t, &s, w, 1)
	for seed := range uint64(2) {
		var returns [10]float64
		l.curve = func(done int, r float64, _ int, _ kernel.Metrics) { returns[(done-1)*10/s.Steps] += r }
		live(t, l, 1, seed, 1)
		if first, last := returns[0], returns[9]; !(last > 4*first) || first == 0 {
			t.Errorf("seed %d: paid %.1f at first and %.1f in the end", seed, first, last)
		}
	}
}

// TestPoolIsLearners: a pool of one learner and one of two append the same steps, report all
// transitions, and stop with the first error.
func TestPoolIsLearners(t *testing.T) {
	s, w := small(), room(t, 5, 9)
	ids := []xland.ID{3, 3, 0, 1, 1, 1, 2}
	var made [2][][]xland.Step
	for i := range made {
		var steps []int64
		devices := []kernel.Device{openCPU(t, 1), openCPU(t, 1)}[:1+i]
		p, err := NewPool(w, s, 8, devices, 1, func(n int64) { steps = append(steps, n) })
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		made[i] = make([][]xland.Step, len(ids))
		made[i][6] = append(made[i][6], xland.Step{Action: 5})
		if err := p.Lives(context.Background(), made[i], ids, 40); err != nil {
			t.Fatal(err)
		}
		if want := int64(4 * (s.Steps / s.Rollout * s.Rollout) * s.Envs); !slices.IsSorted(steps) || len(steps) == 0 || steps[len(steps)-1] != want {
			t.Errorf("told of %v, want %d in the end", steps, want)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := p.Lives(ctx, make([][]xland.Step, 1), ids[:1], 0); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	}
	if !reflect.DeepEqual(made[0], made[1]) {
		t.Error("histories depend on the number of learners")
	}
	l := open(t, &s, w, 1)
	if own := live(t, l, 1, 8, 3); !reflect.DeepEqual(own, made[0][3:6]) {
		t.Error("a pool's learner does something else than a learner alone")
	}
	if own := live(t, l, 2, 8, 1); made[0][6][0].Action != 5 || !reflect.DeepEqual(own[0], made[0][6][1:]) {
		t.Error("what was in a history is not followed by the learner's steps")
	}
}

// TestSettingsAreChecked: what no learner can follow is refused in words.
func TestSettingsAreChecked(t *testing.T) {
	w := room(t, 5, 9)
	most := Settings{Steps: 1 << 24, Envs: 1 << 16, Rollout: 1 << 12, Hidden: 1 << 12, Rate: 1, Entropy: 1}
	least := Settings{Steps: 9, Envs: 1, Rollout: 1, Hidden: 1, Rate: 1e-300}
	if err := errors.Join(most.Check(w), least.Check(w)); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		change func(*Settings)
		why    string
	}{
		{func(s *Settings) { s.Steps = 3 }, "3 steps of a history: want 4 (a rollout)"},
		{func(s *Settings) { s.Steps, s.Rollout = 8, 2 }, "want 9 at least, the longest episode"},
		{func(s *Settings) { s.Steps = 1<<24 + 1 }, "16777217 steps of a history: want 4 (a rollout) to 16777216"},
		{func(s *Settings) { s.Envs = 0 }, "0 environments"},
		{func(s *Settings) { s.Envs = 1<<16 + 1 }, "65537 environments of a learner: want 1 to 65536"},
		{func(s *Settings) { s.Rollout = 0 }, "0 steps of a rollout"},
		{func(s *Settings) { s.Rollout = 1<<12 + 1 }, "4097 steps of a rollout: want 1 to 4096"},
		{func(s *Settings) { s.Rollout = 1 << 25 }, "33554432 steps of a rollout: want 1 to 4096"},
		{func(s *Settings) { s.Hidden = 0 }, "0 hidden units"},
		{func(s *Settings) { s.Hidden = 1<<12 + 1 }, "4097 hidden units: want 1 to 4096"},
		{func(s *Settings) { s.Rate = 0 }, "a learning rate of 0"},
		{func(s *Settings) { s.Rate = 1.001 }, "a learning rate of 1.001"},
		{func(s *Settings) { s.Rate = math.NaN() }, "a learning rate of NaN"},
		{func(s *Settings) { s.Entropy = -1 }, "an entropy bonus of -1"},
		{func(s *Settings) { s.Entropy = 1.001 }, "an entropy bonus of 1.001"},
	} {
		s := small()
		if err := s.Check(w); err != nil {
			t.Fatal(err)
		}
		c.change(&s)
		if _, err := NewPool(w, s, 0, nil, 1, nil); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
}

// TestLabelsOfATie: of actions that are equally likely the first is the label.
func TestLabelsOfATie(t *testing.T) {
	for want, out := range [][]float32{{0, 0, 0}, {1, 2, 2}, {-3, -2, -1}} {
		if got := likeliest(out); int(got) != want {
			t.Errorf("%v: %d, want %d", out, got, want)
		}
	}
}
