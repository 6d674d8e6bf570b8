package agent

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/world"
)

// TestLiveAgentsActAsEvaluatedOnes: agents in another program's loop get the same return in every
// episode as in this program's, with compressed contexts, with contexts that drop their oldest
// episode, with tokens that contain the last observation, and with shared keys.
func TestLiveAgentsActAsEvaluatedOnes(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	for _, sets := range [][]string{nil, {"last_observation=true"}, {"tf_n_head=4", "tf_n_kv_head=2", "tf_positions=rotary"}, {"use_compressed_context=false", "n_transit=10", "last_observation=true"}} {
		dev := openCPU(t, 1)
		a, heard := trainedAgent(t, dev, h, sets...)
		game := a.World.(world.Game)
		const episodes, each = 9, 2
		want, err := a.Evaluate(t.Context(), EvalOptions{History: h, Agents: each, Episodes: episodes})
		if err != nil {
			t.Fatal(err)
		}
		var envs []world.Env
		for _, g := range want.Goals {
			for range each {
				envs = append(envs, game.NewEnv(g.Goal))
			}
		}
		l, err := NewLive(dev, heard.Info.Last, LiveOptions{Agents: len(envs)})
		if err != nil {
			t.Fatal(err)
		}
		observed, rewards, actions := make([][]float64, len(envs)), make([]float64, len(envs)), make([]int, len(envs))
		fields := make([]int32, len(game.Space().Fields))
		see := func(i int) {
			envs[i].Observe(fields)
			observed[i] = nil
			for _, v := range fields {
				observed[i] = append(observed[i], float64(v))
			}
		}
		for i := range envs {
			see(i)
		}
		earned := make([]float64, episodes)
		for step := range episodes * game.Limit() {
			if step == 3 { // an invalid request reaches no agent
				bad := slices.Clone(observed)
				bad[1] = []float64{0, math.NaN()}
				if err := l.Act(actions, bad, rewards, nil); !errors.Is(err, ErrLine) || !strings.Contains(err.Error(), "agent 1 has NaN") {
					t.Fatal(err)
				}
			}
			if err := l.Act(actions, observed, rewards, nil); err != nil {
				t.Fatal(err)
			}
			for i, e := range envs {
				reward, ends := e.Step(actions[i])
				rewards[i] = game.Space().Rewards[reward]
				earned[step/game.Limit()] += rewards[i] / float64(len(envs))
				if ends {
					e.Reset()
				}
				see(i)
			}
		}
		for e, v := range earned {
			if math.Abs(v-want.Return[e]) > 1e-9 {
				t.Errorf("%v: episode %d pays %v here, %v in an evaluation", sets, e, v, want.Return[e])
			}
		}
		if err := errors.Join(l.Close(), a.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNearest(t *testing.T) {
	values := []float64{-1, 0, 2}
	for v, want := range map[float64]int{-9: 0, -1: 0, -0.6: 0, -0.4: 1, 0: 1, 1: 1, 1.01: 2, 2: 2, 99: 2} {
		if got := nearest(values, v); got != want {
			t.Errorf("%v is nearest to value %d, want %d", v, got, want)
		}
	}
}

// TestStrangeRewards: an agent notes once a reward that its histories do not contain, outside their
// range or between their values. Many values may be levels, and a reward between levels is usual.
func TestStrangeRewards(t *testing.T) {
	levels := make([]float64, fewRewards+1)
	for i := range levels {
		levels[i] = float64(i)
	}
	for _, c := range []struct {
		known  []float64
		reward float64
		want   string
	}{
		{[]float64{0, 1}, 0, ""},
		{[]float64{0, 1}, 1, ""},
		{[]float64{0, 1}, 0.9999, ""}, // the same number in another precision
		{[]float64{0, 0.1, 1}, float64(float32(0.1)), ""},
		{[]float64{0, 1}, 0.5, "a reward of 0.5 is none of the 2 that the agent has learned from and is taken for the nearest, 0;"},
		{[]float64{0, 1}, 0.75, "taken for the nearest, 1;"},
		{[]float64{0, 1}, 1.5, "none that the agent has learned from (0 to 1) and is taken for 1;"},
		{[]float64{0, 1}, -7, "taken for 0;"},
		{[]float64{1}, 1, ""},
		{[]float64{1}, 0.5, "(1 to 1) and is taken for 1;"},
		{levels[:fewRewards], 2.5, "none of the 16"},
		{levels, 2.5, ""},
		{levels, 17, "(0 to 16) and is taken for 16;"},
	} {
		var l Live
		l.strange(c.reward, c.known)
		got := l.Note()
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%g, known %v: %q, want %q", c.reward, c.known, got, c.want)
		}
		if l.strange(c.reward, c.known); l.Note() != "" {
			t.Errorf("%g is noted twice", c.reward)
		}
	}
}
