package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The original program's files for the room and for the learner each load alone. They equal the
// shipped pair and the defaults.
func TestOriginalHistoriesLoadUnchanged(t *testing.T) {
	for _, path := range []string{
		"testdata/original_agent/darkroom.yaml", "testdata/original_agent/ppo_darkroom.yaml", "testdata/original_agent/ppo_base.yaml",
		"darkroom", "ppo_darkroom", "ppo_default",
	} {
		got, err := LoadPPO(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, err := ParsePPO(path, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", path, diff)
		}
	}
	c, err := LoadPPO("", nil)
	if err != nil || c.Name != DefaultPPO {
		t.Fatalf("no name loads %+v, %v", c, err)
	}
	if c.Goals() != 81 || c.TrainGoals() != 73 {
		t.Errorf("%d goals, %d trained on", c.Goals(), c.TrainGoals())
	}
}

func TestWorkers(t *testing.T) {
	for _, tc := range []struct{ processes, cores, want int }{{0, 4, 4}, {3, 4, 3}, {8, 2, 2}, {1, 1, 1}} {
		if got := (&PPO{NProcess: tc.processes}).Workers(tc.cores); got != tc.want {
			t.Errorf("n_process %d on %d cores: %d workers, want %d", tc.processes, tc.cores, got, tc.want)
		}
	}
}

func TestBadHistories(t *testing.T) {
	for _, tc := range []struct{ yaml, want string }{
		{"n_stream: 0", "f.yaml:1: n_stream must be at least 1, got 0"},
		{"env: maze", "f.yaml:1: env must be one of darkroom, keydoor, got maze"},
		{"alg: DQN", "f.yaml:1: alg must be PPO, got DQN"},
		{"num_actions: 4", "f.yaml:1: num_actions must be 5, got 4"},
		{"grid_sise: 4", "f.yaml:1: unknown key grid_sise; did you mean grid_size?"},
		{"grid_size: 1", "f.yaml:1: grid_size must be at least 2 and at most 16, got 1"},
		{"train_env_ratio: 1.0", "f.yaml:1: train_env_ratio must be more than 0 and below 1, got 1.0"},
		{"gamma: 0", "f.yaml:1: gamma must be more than 0 and below 1, got 0"},
		// values would have no fixed point
		{"gamma: 1", "f.yaml:1: gamma must be more than 0 and below 1, got 1"},
		// Between keys.
		{"train_env_ratio: 0.999", "f.yaml:1: train_env_ratio 0.999 of grid_size 9 leaves 81 goals to train on and 0 held out; both need one"},
		{"grid_size: 2\ntrain_env_ratio: 0.1", "f.yaml:2: train_env_ratio 0.1 of grid_size 2 leaves 0 goals to train on and 4 held out; both need one"},
		{"batch_size: 8001", "f.yaml:1: batch_size 8001 is over the 8000 steps that n_steps 80 and n_stream 100 gather"},
		{"total_source_timesteps: 7999", "f.yaml:1: total_source_timesteps 7999 is less than the 8000 steps of n_steps 80 and n_stream 100: the learner would never learn"},
		{"horizon: 1001", "f.yaml:1: total_source_timesteps 100000 gives each of n_stream 100 less than an episode of horizon 1001"},
	} {
		if _, err := ParsePPO("f.yaml", []byte(tc.yaml), nil); err == nil || err.Error() != tc.want {
			t.Errorf("%q\n got %v\nwant %s", tc.yaml, err, tc.want)
		}
	}
}
