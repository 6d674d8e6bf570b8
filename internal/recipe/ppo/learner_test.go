package ppo

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haul/internal/config"
	"haul/internal/device"
	"haul/internal/kernel"
	"haul/internal/world/grid"
)

// smallData is a room that learners master in a fraction of a second, with steps left over after
// the last update.
func smallData(t testing.TB, sets ...string) *config.PPO {
	t.Helper()
	c, err := config.LoadPPO("", append([]string{"grid_size=5", "horizon=10", "n_stream=10", "n_steps=40", "n_epochs=10", "batch_size=40",
		"total_source_timesteps=8100", "hidden=16", "source_lr=0.002"}, sets...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func openLearner(t testing.TB, c *config.PPO) *learner {
	t.Helper()
	l, err := newLearner(openCPU(t, 1), c, nil)
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

func live(t testing.TB, l *learner, goal grid.Goal) []grid.Step {
	t.Helper()
	out := make([]grid.Step, l.c.TotalSourceTimesteps/l.c.NStream*l.c.NStream)
	if err := l.learn(context.Background(), goal, out, nil); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLearnerForgetsTheLastGoal(t *testing.T) {
	c := smallData(t, "total_source_timesteps=1300")
	used := openLearner(t, c)
	live(t, used, grid.Goal(grid.At(1, 3)))
	again, fresh := live(t, used, grid.Goal(grid.At(4, 0))), live(t, openLearner(t, c), grid.Goal(grid.At(4, 0)))
	if diff := cmp.Diff(fresh, again); diff != "" {
		t.Error(diff)
	}
	other := live(t, openLearner(t, smallData(t, "total_source_timesteps=1300", "alg_seed=43")), grid.Goal(grid.At(4, 0)))
	if cmp.Equal(fresh, other) {
		t.Error("another seed lives the same life")
	}
}

func TestFirstPolicyIsUniform(t *testing.T) {
	l := openLearner(t, smallData(t))
	if err := l.begin(grid.Goal(grid.At(0, 0))); err != nil {
		t.Fatal(err)
	}
	if err := l.look(); err != nil {
		t.Fatal(err)
	}
	for _, cell := range l.batch.states {
		for k, lp := range l.batch.policy.logProb[cell] {
			if math.Abs(float64(lp)+math.Log(grid.NumActions)) > 1e-6 {
				t.Fatalf("action %d in %v has log-probability %v", k, cell, lp)
			}
		}
		if v := l.batch.policy.value[cell]; v != 0 {
			t.Fatalf("%v is valued %v before anything happened", cell, v)
		}
	}
}

func TestTargetKLEndsThePasses(t *testing.T) {
	goal := grid.Goal(grid.At(2, 2))
	free, held := openLearner(t, smallData(t)), openLearner(t, smallData(t, "target_kl=1e-9"))
	live(t, free, goal)
	live(t, held, goal)
	updates := uint64(8100 / 10 / 40)
	if free.pass != 10*updates || held.pass != updates {
		t.Errorf("%d passes free and %d held, want %d and %d", free.pass, held.pass, 10*updates, updates)
	}
}

// TestMeanKLIsFromTheRollout: the divergence is measured from the policy that collected the
// samples, for any number of calls.
func TestMeanKLIsFromTheRollout(t *testing.T) {
	l := openLearner(t, smallData(t))
	if err := errors.Join(l.begin(grid.Goal(grid.At(2, 2))), l.look()); err != nil {
		t.Fatal(err)
	}
	_ = l.batch.collect(t.Context(), l.key, l.c.NSteps, make([]grid.Step, l.c.NSteps*l.c.NStream))
	l.batch.advantages(l.c)
	if err := l.improve(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, err := l.meanKL()
	again, err2 := l.meanKL()
	if err := errors.Join(err, err2); err != nil || !(first > 0) || again != first {
		t.Errorf("moved by %g, and asked again by %g, %v", first, again, err)
	}
}

func TestGradientThatIsNotFinite(t *testing.T) {
	l := openLearner(t, smallData(t, "source_lr=1e38"))
	out := make([]grid.Step, 8100)
	err := l.learn(context.Background(), grid.Goal(grid.At(2, 2)), out, nil)
	if err == nil || !strings.Contains(err.Error(), "is not finite: try a lower source_lr") {
		t.Errorf("%v", err)
	}
}

// TestShuffleIsAPermutation also sees that passes differ.
func TestShuffleIsAPermutation(t *testing.T) {
	l := openLearner(t, smallData(t))
	last := make([]int32, len(l.order))
	for range 3 {
		l.shuffle()
		seen := make([]bool, len(l.order))
		for _, i := range l.order {
			if seen[i] {
				t.Fatalf("%d appears twice", i)
			}
			seen[i] = true
		}
		if cmp.Equal(last, l.order) {
			t.Fatal("two passes take the same order")
		}
		copy(last, l.order)
	}
}

// TestAdvantages holds judge to the definition: A_t = Σ over k of (γλ)^k·δ_{t+k} within the episode
// and the rollout, then divided by the spread.
func TestAdvantages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &config.PPO{Env: rapid.SampledFrom([]string{config.EnvDarkRoom, config.EnvKeyDoor}).Draw(t, "env"), GridSize: 3, Horizon: rapid.IntRange(1, 6).Draw(t, "horizon"), NStream: rapid.IntRange(1, 3).Draw(t, "streams"), NSteps: 9,
			Gamma: rapid.Float64Range(0.5, 1).Draw(t, "gamma"), GAELambda: rapid.Float64Range(0, 1).Draw(t, "lambda")}
		r := newRollout(c)
		outs := make([]float32, len(r.states)*(grid.NumActions+1))
		for i := range outs {
			outs[i] = rapid.Float32Range(-1, 1).Draw(t, "out")
		}
		r.policy.fill(r.states, outs)
		goal := grid.Goal(grid.At(0, 1))
		if c.Env == config.EnvKeyDoor {
			goal = grid.KeyAndDoor(grid.At(1, 0), grid.At(0, 1))
		}
		r.begin(goal)
		history := make([]grid.Step, 2*c.NSteps*c.NStream)
		for range 2 { // the second rollout may begin within an episode
			from := r.done
			_ = r.collect(t.Context(), 7, c.NSteps, history)
			r.advantages(c)
			checkAdvantages(t, &r, c, from)
		}
	})
}

func checkAdvantages(t *rapid.T, r *rollout, c *config.PPO, from int) {
	value := func(s grid.State) float64 { return float64(r.policy.value[s]) }
	raw := make([]float64, len(r.samples))
	var sum, squares float64
	for i, m := range r.samples {
		step, stream := i/c.NStream, i%c.NStream
		decay := 1.0
		for k := step; k < c.NSteps; k++ {
			at := r.samples[k*c.NStream+stream]
			stage := at.state.Stage()
			if c.Env == config.EnvKeyDoor {
				stage += at.reward
			}
			after := grid.StateOf(r.room.Move(at.state.Cell(), at.action), stage)
			raw[i] += decay * (rewardUnit(c)*float64(at.reward) + c.Gamma*value(after) - value(at.state))
			decay *= c.Gamma * c.GAELambda
			if (from+k+1)%c.Horizon == 0 {
				break
			}
		}
		sum += raw[i]
		squares += raw[i] * raw[i]
		if want := raw[i] + value(m.state); math.Abs(float64(m.target)-want) > 1e-5 {
			t.Fatalf("step %d of stream %d aims at %v, want %v", step, stream, m.target, want)
		}
	}
	n := float64(len(raw))
	spread := math.Sqrt(max(0, squares/n-sum*sum/(n*n))) + spreadFloor
	for i, m := range r.samples {
		if want := raw[i] / spread; math.Abs(float64(m.advantage)-want) > 1e-4*(1+math.Abs(want)) {
			t.Fatalf("sample %d has advantage %v, want %v", i, m.advantage, want)
		}
	}
}

// TestDrawFollowsThePolicy splits [0, 1) finely and counts.
func TestDrawFollowsThePolicy(t *testing.T) {
	var p policyTable
	logits := []float32{0.3, -1, 2, 0, -40, 0.7}
	cell := grid.StateOf(grid.At(0, 0), 0)
	p.fill([]grid.State{cell}, logits)
	if p.value[cell] != 0.7 {
		t.Errorf("value %v", p.value[cell])
	}
	const n = 10000
	var count [grid.NumActions]float64
	for i := range n {
		count[p.draw(cell, float32(i)/n)]++
	}
	for k, lp := range p.logProb[cell] {
		if want := math.Exp(float64(lp)); math.Abs(count[k]/n-want) > 2.0/n {
			t.Errorf("action %d is drawn %v of the time, want %v", k, count[k]/n, want)
		}
	}
}

func openCPU(t testing.TB, workers int) kernel.Device {
	t.Helper()
	dev, err := device.Open("cpu", device.Options{Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

// The value of the goal does not stay within 0 to 1 for every discount.
func TestGoalValueByDiscount(t *testing.T) {
	for _, c := range []struct {
		gamma   float64
		horizon int
		want    float64
	}{{0.5, 20, 1}, {0.9, 20, 1}, {0.95, 20, 1}, {0.99, 20, 5}, {0.99, 200, 1}} {
		if got := rewardUnit(&config.PPO{Gamma: c.gamma, Horizon: c.horizon}) / (1 - c.gamma); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("γ %g, horizon %d: staying on the goal is worth %g, want %g", c.gamma, c.horizon, got, c.want)
		}
	}
}

// TestFeaturesOfAState: the coordinates of a cell lie between -1 and 1. With a key and a door they
// are in the inputs of the state's stage, after both flags, and every input reaches the network.
func TestFeaturesOfAState(t *testing.T) {
	room := grid.Room{Size: 5, Horizon: 1}
	for cell, want := range map[grid.Cell][]float32{grid.At(0, 0): {-1, -1}, grid.At(4, 0): {1, -1}, grid.At(2, 3): {0, 0.5}} {
		if diff := cmp.Diff(want, featuresOf(room, grid.StateOf(cell, 0))); diff != "" {
			t.Error(diff)
		}
	}
	room.Kind = grid.KeyDoor
	for stage, want := range map[uint8][]float32{0: {-1, -1, 0, 0.5, 0, 0, 0, 0}, 1: {1, -1, 0, 0, 0, 0.5, 0, 0}, 2: {1, 1, 0, 0, 0, 0, 0, 0.5}} {
		if diff := cmp.Diff(want, featuresOf(room, grid.StateOf(grid.At(2, 3), stage))); diff != "" {
			t.Errorf("stage %d: %s", stage, diff)
		}
	}
	r := newRollout(&config.PPO{Env: room.Name(), GridSize: 5, Horizon: 1, NStream: 1, NSteps: 1})
	last := featuresOf(room, grid.StateOf(grid.At(2, 3), 2))
	if r.features != len(last) || !cmp.Equal(r.feature[grid.StateOf(grid.At(2, 3), 2)][:r.features], last) {
		t.Errorf("%d features %v reach the network, want %v", r.features, r.feature[grid.StateOf(grid.At(2, 3), 2)], last)
	}
}
