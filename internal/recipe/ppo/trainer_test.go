package ppo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/config"
	"haul/internal/plan"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/run/runtest"
	"haul/internal/world/grid"
)

// TestSuite: what every recipe's runs must hold; rounds end in the middle of episodes.
func TestSuite(t *testing.T) {
	for env, more := range map[string][]string{config.EnvDarkRoom: nil, config.EnvKeyDoor: {"env=keydoor", "goal=311"}} {
		t.Run(env, func(t *testing.T) {
			small := func(sets ...string) *config.PPO {
				return smallData(t, append(append([]string{"n_steps=37", "n_epochs=2", "total_source_timesteps=1480"}, more...), sets...)...)
			}
			var states []grid.State
			for i := range small().NStream {
				stage := i % roomOf(small()).Stages() // a key that is held must be held when the run goes on
				states = append(states, grid.StateOf(grid.At(i%5, i/5+1), uint8(stage)))
			}
			runtest.Suite(t, runtest.Case{Recipe: Recipe{}, Settings: small(), Device: openCPU,
				Open:  func(testing.TB, config.Settings) run.Task { return task{} },
				Other: small("gamma=0.5"), Differs: "gamma: 0.9", State: &state{Pass: 9, Steps: 74, Clock: 4, States: states, Earned: 3}})
		})
	}
}

// TestARunIsItsGoalsHistory: a run of one goal ends with the weights of the learner that makes this
// goal's history, and has acted alike.
func TestARunIsItsGoalsHistory(t *testing.T) {
	c := smallData(t, "goal=7")
	l := openLearner(t, c)
	history := live(t, l, goalOf(c))
	want := make([]float32, l.net.Layout().Len)
	if err := l.store.ReadWeights(want); err != nil {
		t.Fatal(err)
	}
	e, ck := runtest.Whole(t, run.Options{Recipe: Recipe{}, Task: task{}, Settings: c, Device: openCPU(t, 2)})
	file, err := run.Load(e.Info.Last, Name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := file.Weights(l.net.Layout(), "")
	if err != nil || !slices.Equal(want, got) {
		t.Errorf("the weights differ, %v", err)
	}
	if want := (Recipe{}).Length(c); ck.Progress.Updates != want {
		t.Errorf("%d rounds, want %d", ck.Progress.Updates, want)
	}
	// The return of the first round equals the mean return of the history's first episodes.
	sum, n := 0, c.NSteps/c.Horizon*c.Horizon
	each := len(history) / c.NStream
	for s := range c.NStream {
		for _, step := range history[s*each:][:n] {
			sum += int(step.Reward())
		}
	}
	if rows := runtest.Rows[Iteration](e); *rows[0].Return != float64(sum)/float64(c.NStream*n/c.Horizon) {
		t.Errorf("return %v in the first round, the history has %d in %d steps of %d streams", *rows[0].Return, sum, n, c.NStream)
	}
}

// TestLearns: the policy finds the goal and stays on it, and the final figures equal those in the
// last iteration's row.
func TestLearns(t *testing.T) {
	c := smallData(t, "total_source_timesteps=6000")
	e, _ := runtest.Whole(t, run.Options{Recipe: Recipe{}, Task: task{}, Settings: c, Device: openCPU(t, 1)})
	rows := runtest.Rows[Iteration](e)
	first, last := rows[0], rows[len(rows)-1]
	if last.Share < 0.9 || last.Share < first.Share+0.3 || last.Entropy >= first.Entropy || last.Greedy != last.Optimal {
		t.Errorf("nothing was learned: %+v, then %+v", first, last)
	}
	if s := e.Ending.Row.(*Summary); s.Expected != last.Expected || s.Share != last.Share || s.Steps != 6000 {
		t.Errorf("the end is %+v", s)
	}
	if len(e.Info.View.Pictures()) != 2 {
		t.Error("curves and walks were to be drawn")
	}
}

// TestExpectedReturn compares the exact figure with many sampled episodes.
func TestExpectedReturn(t *testing.T) {
	t.Run("darkroom", func(t *testing.T) {
		testExpectedReturn(t, grid.Room{Size: 4, Horizon: 6}, grid.Goal(grid.At(2, 3)))
	})
	t.Run("keydoor", func(t *testing.T) {
		testExpectedReturn(t, grid.Room{Size: 3, Horizon: 8, Kind: grid.KeyDoor}, grid.KeyAndDoor(grid.At(2, 1), grid.At(1, 0)))
	})
}

func testExpectedReturn(t *testing.T, room grid.Room, goal grid.Goal) {
	var p policyTable
	outs := make([]float32, len(room.States())*(grid.NumActions+1))
	for i := range outs {
		outs[i] = 2 * rng.Float(rng.At(3, uint64(i), 0, rng.Learner)[0])
	}
	p.fill(room.States(), outs)
	const episodes = 200_000
	sum := 0.0
	for e := range uint64(episodes) {
		sum += returnOf(p.walk(room, goal, func(step int) float32 { return rng.Float(rng.At(4, e, uint32(step), rng.Learner)[0]) }), goal)
	}
	// A return of at most 6 has a standard error below 6/2/sqrt(episodes) = 0.007.
	if got, want := p.expected(room, goal), sum/episodes; math.Abs(got-want) > 0.03 {
		t.Errorf("expected return %v, %d episodes earned %v", got, episodes, want)
	}
}

func TestNonFinite(t *testing.T) {
	o := run.Options{Recipe: Recipe{}, Task: task{}, Settings: smallData(t, "source_lr=1e38"), Device: openCPU(t, 1), Dir: runtest.OpenDir(t, runtest.Folder(t), false)}
	err := run.Run(t.Context(), o)
	var bad *run.NonFinite
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), "lower source_lr") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

// TestBrokenState: a checkpoint with environments outside of the room is refused.
func TestBrokenState(t *testing.T) {
	s := &run.Setup{Settings: smallData(t), Device: openCPU(t, 1), Progress: &run.Progress{}}
	tr, err := newTrainer(s)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	tr.at = state{States: []grid.State{grid.StateOf(grid.At(15, 15), 0)}}
	if err := tr.Restore(t.Context(), &run.Checkpoint{Path: "x"}, false); err == nil || !strings.Contains(err.Error(), "its state is broken") {
		t.Errorf("got %v", err)
	}
}

// TestStep: what is measured is one step of the learner, its work by formula.
func TestStep(t *testing.T) {
	s, err := Recipe{}.Step(openCPU(t, 1), smallData(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Runner.Close()
	if err := s.Runner.Run(); err != nil {
		t.Fatal(err)
	}
	if n, err := s.FLOPs(); err != nil || n != 40*6*int64(s.Program.Layout.Count()) {
		t.Errorf("%d operations, %v", n, err)
	}
}

// TestAnAbandonedRoundNeverHappened: a round that is given up anywhere leaves the run where it
// began, sums too, and the run goes on from there as if nothing had been.
func TestAnAbandonedRoundNeverHappened(t *testing.T) {
	begin := func() *trainer {
		tr, err := newTrainer(&run.Setup{Settings: smallData(t, "n_steps=37", "n_epochs=2"), Device: openCPU(t, 1), Progress: &run.Progress{}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tr.Close() })
		if err := tr.begin(tr.goal); err != nil {
			t.Fatal(err)
		}
		if err := tr.Update(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := tr.update.TakeMetrics(); err != nil {
			t.Fatal(err)
		}
		return tr
	}
	stands := func(tr *trainer) string {
		n := tr.net.Layout().Len
		w, m, v := make([]float32, n), make([]float32, n), make([]float32, n)
		s, err := tr.update.State()
		if err := errors.Join(err, tr.store.ReadWeights(w), tr.store.ReadMoments(m, v)); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%+v %+v %v %v %v", *tr.State().(*state), s, w, m, v)
	}
	whole := begin()
	if err := whole.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := stands(whole)
	for _, passes := range []uint64{0, 1} { // before a step is taken; between two passes over them
		tr := begin()
		before, ctx := stands(tr), ended(t)
		tr.onPass = func(float64) {
			if tr.pass >= 2+passes {
				tr.Abandon()
			}
		}
		if passes == 0 {
			tr.Abandon()
		}
		if err := tr.Update(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d passes: %v", passes, err)
		}
		if stands(tr) != before {
			t.Errorf("given up after %d passes, it does not stand where it began", passes)
		}
		if m, err := tr.update.TakeMetrics(); err != nil || m.Steps != 0 || m.Sums.Of(plan.PPOEntropy) != 0 {
			t.Errorf("given up after %d passes, it has summed up %+v, %v", passes, m, err)
		}
		tr.onPass = nil
		tr.within, tr.abandon = context.WithCancel(context.Background())
		if err := tr.Update(t.Context()); err != nil || stands(tr) != want {
			t.Errorf("given up after %d passes, it goes on to another place, %v", passes, err)
		}
	}
}

// ended is a context that has come to its end.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
