package recurrent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/kernel/reference"
	"haul/internal/plan"
	"haul/internal/rng"
)

// lever is a world of another program. Each environment shows a number; the task decides whether
// its sign or the opposite sign selects the rewarded action. Episodes have a fixed number of steps,
// after which they are truncated if cuts is set. One in `idles` steps is idle.
type lever struct {
	task    int64
	whole   bool // sizes 3 and 2 in place of one measured number
	steps   int
	cuts    bool
	idles   int
	clock   int
	shows   []float64
	all     [][]float64 // what was shown before each step, by environment
	acts    [][]uint8
	counted [][]bool
	paid    []float64 // by step: all environments together
}

func (w *lever) observed(envs int) [][]float64 {
	w.shows = w.shows[:0]
	out := make([][]float64, envs)
	for e := range out {
		u := rng.Float(rng.At(77, uint64(e), uint32(w.clock), rng.Starts)[0])
		v := float64(100 + 40*(2*u-1))
		if w.whole {
			v = math.Floor(float64(2 * u))
			out[e] = []float64{2, v}
			w.shows = append(w.shows, 2*v-1)
			continue
		}
		out[e] = []float64{v}
		w.shows = append(w.shows, v-100)
	}
	return out
}

func (w *lever) begin(task int64, envs int) [][]float64 {
	w.task, w.clock, w.all, w.acts, w.counted, w.paid = task, 0, make([][]float64, envs), make([][]uint8, envs), make([][]bool, envs), nil
	return w.observed(envs)
}

func (w *lever) act(_ context.Context, actions []uint8) (*StepResult, error) {
	n := len(actions)
	t := &StepResult{Rewards: make([]float64, n), Terminated: make([]bool, n), Truncated: make([]bool, n), Idle: make([]bool, n)}
	w.clock++
	sum := 0.0
	for e, a := range actions {
		w.all[e] = append(w.all[e], w.shows[e])
		w.acts[e] = append(w.acts[e], a)
		idle := w.idles > 0 && (w.clock+e)%w.idles == 0
		w.counted[e] = append(w.counted[e], !idle)
		if t.Idle[e] = idle; idle {
			t.Rewards[e] = 99 // the reward of an idle step, which must not be learned from
			continue
		}
		if right := (w.shows[e] > 0) == (w.task%2 == 0); right == (a == 1) {
			t.Rewards[e] = 5
		}
		sum += t.Rewards[e]
		if over := w.clock%w.steps == 0; over {
			t.Terminated[e], t.Truncated[e] = !w.cuts, w.cuts
		}
	}
	w.paid = append(w.paid, sum/float64(n))
	if w.cuts {
		t.FinalObs = make([][]float64, n)
		for e := range t.FinalObs {
			if t.Truncated[e] && e%2 == 0 {
				t.FinalObs[e] = slices.Clone(w.observedAt(e))
			}
		}
	}
	t.Observed = w.observed(n)
	return t, nil
}

func (w *lever) observedAt(e int) []float64 {
	if w.whole {
		return []float64{2, (w.shows[e] + 1) / 2}
	}
	return []float64{w.shows[e] + 100}
}

func (w *lever) shown() Shown {
	if w.whole {
		return Shown{Sizes: []int{3, 2}, Actions: 3}
	}
	return Shown{Measured: 1, Actions: 3}
}

func openLive(t *testing.T, s Settings, w *lever, workers int) *Live {
	t.Helper()
	l, err := NewLive(openCPU(t, workers), s, w.shown(), 4, func(ctx context.Context, actions []uint8) (*StepResult, error) {
		return w.act(ctx, actions)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// TestLiveLearnersLearn: in environments of whole numbers and of measured ones, with episodes that
// end, that are cut and with steps that are none, a learner is paid nearly always in the end, and
// so would the actions be that it holds best, those of its clumsy first steps too. Another task is
// learned from nothing.
func TestLiveLearnersLearn(t *testing.T) {
	for _, c := range []struct {
		whole, cuts bool
		idles       int
	}{{false, false, 0}, {true, true, 0}, {false, true, 7}} {
		s := LiveDefault()
		s.Steps, s.Rollout, s.Hidden, s.Envs, s.Rate = 1440, 16, 16, 8, 3e-3
		w := &lever{whole: c.whole, cuts: c.cuts, idles: c.idles, steps: 5}
		l := openLive(t, s, w, 1)
		for task := range int64(2) {
			best, err := l.Learn(context.Background(), task, w.begin(task, s.Envs))
			if err != nil {
				t.Fatal(err)
			}
			mean := func(v []float64) (sum float64) {
				for _, x := range v {
					sum += x / float64(len(v))
				}
				return sum
			}
			most := 5.0
			if c.idles > 0 {
				most *= 1 - 1/float64(c.idles)
			}
			if first, last := mean(w.paid[:32]), mean(w.paid[len(w.paid)-96:]); first > 0.75*most || last < 0.88*most {
				t.Errorf("%+v, task %d: paid %.2f at first and %.2f in the end, of %.2f", c, task, first, last, most)
			}
			hits, all := 0, 0
			for e := range best {
				if len(best[e]) != s.Steps {
					t.Fatalf("%d labels of %d steps", len(best[e]), s.Steps)
				}
				for k, v := range w.all[e][:s.Steps/2] {
					if all++; (best[e][k] == 1) == ((v > 0) == (task%2 == 0)) {
						hits++
					}
				}
			}
			if share := float64(hits) / float64(all); share < 0.9 {
				t.Errorf("%+v, task %d: %.2f of the labels of the first half would be paid", c, task, share)
			}
		}
	}
}

// TestLiveLearnersRepeat: the result of a learner depends only on the seed, not on earlier tasks or
// the number of cores.
func TestLiveLearnersRepeat(t *testing.T) {
	s := LiveDefault()
	s.Steps, s.Rollout, s.Hidden, s.Envs = 40, 8, 6, 5
	lived := func(l *Live, w *lever, task int64) [][]uint8 {
		t.Helper()
		if _, err := l.Learn(context.Background(), task, w.begin(task, s.Envs)); err != nil {
			t.Fatal(err)
		}
		return w.acts
	}
	w, v := &lever{steps: 6, cuts: true}, &lever{steps: 6, cuts: true}
	used, fresh := openLive(t, s, w, 1), openLive(t, s, v, 2)
	lived(used, w, 8)
	again := lived(used, w, 3)
	if want := lived(fresh, v, 3); fmt.Sprint(again) != fmt.Sprint(want) {
		t.Error("what a learner does depends on the task before, or on the cores")
	}
	if other := lived(used, w, 4); fmt.Sprint(again) == fmt.Sprint(other) {
		t.Error("two tasks, the same actions")
	}
	used.seed++
	if other := lived(used, w, 3); fmt.Sprint(again) == fmt.Sprint(other) {
		t.Error("two seeds, the same actions")
	}
}

// TestLabelsReadWhatWasShown: labels are the likeliest actions of a network that reads each life
// from its first step: the reference's, over the whole life at once, whose inputs are put together
// here from what the world gave.
func TestLabelsReadWhatWasShown(t *testing.T) {
	s := LiveDefault()
	s.Steps, s.Rollout, s.Hidden, s.Envs, s.Rate = 22, 11, 6, 3, 1e-12
	w := &lever{steps: 4, cuts: true, idles: 5}
	l := openLive(t, s, w, 1)
	learner := l.learner
	l.there.first = w.begin(2, s.Envs)
	if err := learner.begin(2, 4); err != nil {
		t.Fatal(err)
	}
	weights := convinced(t, learner)
	for _, q := range learner.net.model.Layout().Params { // what is shown outweighs the biases
		for i := range weights[q.Offset:][:q.Len()] {
			switch {
			case strings.HasSuffix(q.Name, "bias"):
				weights[q.Offset+i] = 0
			case strings.HasPrefix(q.Name, "measured"), strings.HasSuffix(q.Name, "_mh"):
				weights[q.Offset+i] *= 4
			}
		}
	}
	if err := errors.Join(learner.net.store.WriteWeights(weights), learner.collect(context.Background(), 11), learner.collect(context.Background(), 11)); err != nil {
		t.Fatal(err)
	}
	rewards := slices.Clone(l.there.rewards)
	if err := learner.label(context.Background()); err != nil {
		t.Fatal(err)
	}
	dev := reference.New[float64](1)
	store, err := dev.NewStore(learner.net.model.Layout(), true)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.WriteWeights(weights); err != nil {
		t.Fatal(err)
	}
	var level, gain scale
	sums := make([]float64, s.Envs)
	for k := range s.Steps {
		for e := range s.Envs {
			level.add(w.all[e][k] + 100)
			if !w.counted[e][k] {
				continue
			}
			sums[e] = s.Discount*sums[e] + rewards[e*s.Steps+k]
			gain.add(sums[e]) // episodes are cut: what follows would be paid too
		}
	}
	for e := range s.Envs {
		level.add(w.shows[e] + 100)
	}
	kinds := map[uint8]bool{}
	for e := range s.Envs {
		p := plan.New("label", dev, 1, 1, learner.net.model.Layout())
		index, numbers, units := p.RowInts("index", 1, 2*s.Steps, 1), p.Rows("measured", 1, s.Steps, 2), p.Rows("units", 1, s.Hidden)
		out := plan.Keep(learner.net.model.Record(p, index, numbers, units, false))
		run, err := p.Compile(dev, store)
		if err != nil {
			t.Fatal(err)
		}
		var rows []int32
		var values []float32
		action, over, paid := int32(3), int32(4), 0.0
		for k := range s.Steps {
			rows = append(rows, action, over)
			values = append(values, float32((w.all[e][k]+100-level.mean)/math.Sqrt(level.squares/level.n)), float32(paid/math.Hypot(gain.mean, math.Sqrt(gain.squares/gain.n))))
			action, over, paid = int32(w.acts[e][k]), 4, rewards[e*s.Steps+k]
			switch {
			case !w.counted[e][k]:
				action, paid = 3, 0
			case (k+1)%4 == 0:
				over = 5
			}
		}
		if err := errors.Join(run.WriteBatch(index, rows), run.WriteBatch(numbers, values), run.WriteBatch(units, make([]float32, s.Hidden)), run.Run()); err != nil {
			t.Fatal(err)
		}
		got := make([]float32, 4*s.Steps)
		if err := run.ReadBatch(out, got); err != nil {
			t.Fatal(err)
		}
		for k := range s.Steps {
			best := l.there.best[e*s.Steps+k]
			if row := got[4*k:][:3]; row[best] < slices.Max(row)-1e-5 {
				t.Fatalf("step %d of environment %d is labelled %d of %v", k, e, best, row)
			}
			kinds[best] = true
		}
	}
	if len(kinds) < 2 {
		t.Error("all labels are equal: the policy does not tell states apart")
	}
}

// TestCutsAreJudged: a truncated episode continues with the critic's value of the last observation,
// or of the observation before it if the last one is missing. The evaluation does not change the
// units.
func TestCutsAreJudged(t *testing.T) {
	s := LiveDefault()
	s.Steps, s.Rollout, s.Hidden, s.Envs = 4, 4, 6, 4
	judge := func(cuts bool) (after []float32, units []float32, shows [][]float64) {
		w := &lever{steps: 3, cuts: cuts}
		l := openLive(t, s, w, 1)
		l.there.first = w.begin(2, s.Envs)
		if err := l.learner.begin(2, 4); err != nil {
			t.Fatal(err)
		}
		convinced(t, l.learner)
		units = make([]float32, s.Envs*s.Hidden)
		if err := errors.Join(l.learner.collect(context.Background(), 4), l.learner.net.act.ReadBatch(l.learner.net.actState, units)); err != nil {
			t.Fatal(err)
		}
		return l.learner.roll.after, units, w.all
	}
	after, units, _ := judge(true)
	none, same, _ := judge(false)
	for i, v := range none {
		if v != 0 {
			t.Errorf("after step %d nothing follows, and it is worth %v", i%4, v)
		}
		if cut := i%4 == 2; cut != (after[i] != 0) {
			t.Errorf("after step %d of environment %d: %v", i%4, i/4, after[i])
		}
	}
	if !slices.Equal(units, same) {
		t.Error("units know of what the critic was asked")
	}
}

// TestCutsAreShownAsGoingOn: the critic evaluates a truncated episode as if it continued, from
// its last observation or, if that is missing, from the previous one. The network then continues
// with the first observation of the next episode, marked as the start of an episode.
func TestCutsAreShownAsGoingOn(t *testing.T) {
	s := LiveDefault()
	s.Envs, s.Steps = 4, 2
	o := newElsewhere(&s, Shown{Measured: 1, Actions: 3}, func(context.Context, []uint8) (*StepResult, error) {
		return &StepResult{Observed: [][]float64{{10}, {20}, {30}, {40}}, Rewards: []float64{1, 2, 3, 4}, Terminated: []bool{false, false, true, false}, Truncated: []bool{true, true, false, false},
			FinalObs: [][]float64{{-5}, nil, nil, nil}}, nil
	})
	o.first = [][]float64{{1}, {2}, {3}, {4}}
	if err := errors.Join(o.begin(0, 0), o.step(context.Background(), []uint8{0, 1, 2, 1})); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		show func([]int32, []float32)
		rows []int32 // of the action, and of whether the episode is over: those of actions come first
		seen []float64
	}{{o.showLast, []int32{0, 4, 1, 4, 2, 4, 1, 4}, []float64{-5, 2, 30, 40}}, {o.show, []int32{0, 5, 1, 5, 2, 5, 1, 4}, []float64{10, 20, 30, 40}}} {
		rows, numbers := make([]int32, 8), make([]float32, 8)
		c.show(rows, numbers)
		if !slices.Equal(rows, c.rows) {
			t.Errorf("rows %v, want %v", rows, c.rows)
		}
		for e, v := range c.seen {
			if want := []float32{o.scales[0].centred(v), o.gain.shrunk(float64(e + 1))}; !slices.Equal(numbers[2*e:][:2], want) {
				t.Errorf("environment %d shows %v, want %v", e, numbers[2*e:][:2], want)
			}
		}
	}
}

// TestLivesAreShownOnceMore: labels are read from what each step was shown before it was taken: the
// observation, the action before and whether an episode is over, steps that were none among them.
// What is measured is in spreads of the whole life.
func TestLivesAreShownOnceMore(t *testing.T) {
	s := LiveDefault()
	s.Envs, s.Steps = 2, 5
	step := 0
	o := newElsewhere(&s, Shown{Measured: 1, Actions: 3}, func(context.Context, []uint8) (*StepResult, error) {
		step++
		x := float64(step)
		return &StepResult{Observed: [][]float64{{x}, {10 * x}}, Rewards: []float64{x, -x}, Terminated: []bool{step == 1, step == 4}, Truncated: []bool{step == 3, false}, Idle: []bool{false, step == 2}}, nil
	})
	o.first = [][]float64{{-1}, {-2}}
	if err := o.begin(0, 0); err != nil {
		t.Fatal(err)
	}
	rows, numbers, shown := make([]int32, 4), make([]float32, 4), [][]int32{}
	for k := range s.Steps {
		o.show(rows, numbers)
		shown = append(shown, slices.Clone(rows))
		if err := o.step(context.Background(), []uint8{uint8(k % 3), uint8((k + 1) % 3)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := o.recall(); n != s.Steps {
		t.Fatalf("%d steps are kept of %d", n, s.Steps)
	}
	seen := [][]float64{{-1, -2}, {1, 10}, {2, 20}, {3, 30}, {4, 40}}
	paid := [][]float64{{0, 0}, {1, -1}, {2, 0}, {3, -3}, {4, -4}} // by the step before
	for k := range s.Steps {
		o.turn(k)
		o.show(rows, numbers)
		if !slices.Equal(rows, shown[k]) {
			t.Errorf("step %d shows the rows %v, at first %v", k, rows, shown[k])
		}
		for e := range s.Envs {
			if want := []float32{o.scales[0].centred(seen[k][e]), o.gain.shrunk(paid[k][e])}; !slices.Equal(numbers[2*e:][:2], want) {
				t.Errorf("step %d of environment %d shows %v, want %v", k, e, numbers[2*e:][:2], want)
			}
		}
	}
}

// TestStepResultsAreChecked: observations, rewards and marks that cannot be are refused in words.
func TestStepResultsAreChecked(t *testing.T) {
	s := LiveDefault()
	s.Steps, s.Rollout, s.Hidden, s.Envs = 4, 4, 4, 2
	w := &lever{whole: true, steps: 3}
	l := openLive(t, s, w, 1)
	good := func() *StepResult {
		return &StepResult{Observed: [][]float64{{0, 0}, {2, 1}}, Rewards: []float64{0, -1e300}, Terminated: []bool{true, false}, Truncated: []bool{false, true}, FinalObs: [][]float64{nil, {1, 1}}}
	}
	if err := l.CheckStep(good()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*StepResult)
		why    string
	}{
		{func(t *StepResult) { t.Observed = t.Observed[:1] }, "obs: want a list of 2 observations"},
		{func(t *StepResult) { t.Observed[1] = []float64{0} }, "obs: that of environment 1 has 1 numbers, want 2"},
		{func(t *StepResult) { t.Observed[1] = nil }, "obs: that of environment 1 has 0 numbers"},
		{func(t *StepResult) { t.Observed[0][0] = 3 }, "field 0 of environment 0 is 3, want a whole number from 0 to 2"},
		{func(t *StepResult) { t.Observed[0][0] = -1 }, "is -1, want"},
		{func(t *StepResult) { t.Observed[0][1] = 0.5 }, "is 0.5, want"},
		{func(t *StepResult) { t.Observed[0][1] = math.NaN() }, "is NaN"},
		{func(t *StepResult) { t.Rewards = []float64{1} }, "reward: want a list of 2 numbers"},
		{func(t *StepResult) { t.Rewards[1] = math.Inf(1) }, "reward: that of environment 1 is +Inf"},
		{func(t *StepResult) { t.Terminated = []bool{true} }, "end: want a list of 2 truth values"},
		{func(t *StepResult) { t.Truncated = []bool{} }, "cut: want a list of 2"},
		{func(t *StepResult) { t.Idle = []bool{true, false, true} }, "idle: want a list of 2"},
		{func(t *StepResult) { t.FinalObs = t.FinalObs[:1] }, "last: want a list of 2 observations"},
		{func(t *StepResult) { t.FinalObs[1][1] = 2 }, "last: field 1 of environment 1 is 2"},
		{func(t *StepResult) { t.Truncated = nil }, "last: the episode of environment 1 goes on: want null"},
		{func(t *StepResult) { t.Idle = []bool{true, false} }, "idle: environment 0 only began an episode, and its episode is over"},
		{func(t *StepResult) { t.Idle = []bool{false, true} }, "idle: environment 1 only began"},
	} {
		result := good()
		c.change(result)
		if err := l.CheckStep(result); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	for _, c := range []struct {
		change func(*Settings, *Shown)
		why    string
	}{
		{func(_ *Settings, s *Shown) { s.Sizes = nil }, "want either"},
		{func(_ *Settings, s *Shown) { s.Measured = 1 }, "want either"},
		{func(_ *Settings, s *Shown) { s.Sizes, s.Measured = nil, 65 }, "an observation of 65 numbers: want 1 to 64"},
		{func(_ *Settings, s *Shown) { s.Sizes = make([]int, 65) }, "an observation of 65 numbers"},
		{func(_ *Settings, s *Shown) { s.Sizes[1] = 0 }, "field 1 takes 0 values: want 1 to 256"},
		{func(_ *Settings, s *Shown) { s.Sizes[1] = 257 }, "field 1 takes 257 values"},
		{func(_ *Settings, s *Shown) { s.Actions = 1 }, "1 actions: want 2 to 64"},
		{func(_ *Settings, s *Shown) { s.Actions = 65 }, "65 actions"},
		{func(s *Settings, _ *Shown) { s.Discount = 1 }, "a discount of 1"},
		{func(s *Settings, _ *Shown) { s.Steps = 3 }, "3 steps of a history"},
		{func(s *Settings, _ *Shown) { s.Steps, s.Envs = 1<<24, 1<<16 }, "keeping histories until they are labelled needs"}, // before memory is asked for
	} {
		settings, shown := s, w.shown()
		c.change(&settings, &shown)
		if _, err := NewLive(nil, settings, shown, 0, nil); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
}

// TestScales: numbers are shown by how large others were that came by, and never as no number.
func TestScales(t *testing.T) {
	var s scale
	if s.centred(3) != 3 {
		t.Error("without a spread a number is as it is")
	}
	for _, v := range []float64{2, 4, 4, 4, 5, 5, 7, 9} {
		s.add(v)
	}
	if got := s.centred(9); got != 2 {
		t.Errorf("9 is %v spreads of 2 from 5", got)
	}
	if got := float64(s.shrunk(-29)); math.Abs(got+math.Sqrt(29)) > 1e-6 {
		t.Errorf("-29 is %v units of the root of 29", got)
	}
	if s.centred(1e6) != farthest || s.centred(-1e6) != -farthest {
		t.Error("a number may be farther than the farthest")
	}
	s = scale{}
	s.add(math.MaxFloat64)
	s.add(-math.MaxFloat64)
	for _, v := range []float64{math.MaxFloat64, -math.MaxFloat64, 0} {
		if got := float64(s.centred(v)); math.IsNaN(got) {
			t.Errorf("%v is shown as %v", v, got)
		}
	}
	s.add(math.MaxFloat64) // the mean is none by now
	if got := s.centred(1); got != 0 {
		t.Errorf("after numbers too large to be added up 1 is shown as %v", got)
	}
}
