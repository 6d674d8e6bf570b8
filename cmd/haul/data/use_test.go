package data_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
)

// TestDataRefusals: what haul data cannot honour is refused in one line that names what was typed.
func TestDataRefusals(t *testing.T) {
	out := filepath.Join(t.TempDir(), "x.hist")
	for args, want := range map[string]string{
		"data show":                                               "name a file of learning histories (see haul data show --help)",
		"data import":                                             "name an .npz file, or a folder of .npy files (see haul data import --help)",
		"data import a b":                                         `unexpected argument "b"`,
		"data import a --actions 1":                               "--actions is 1: it must be 2 to 64, or 0 for the largest in the arrays, plus 1",
		"data import a --actions 65":                              "--actions is 65: it must be 2 to 64",
		"data import a --actions -1":                              "--actions is -1: it must be 2 to 64",
		"data import a --train-ratio 1":                           "--train-ratio is 1: it must lie between 0 and 1",
		"data tabular":                                            "name a set, for example DR9-70-5",
		"data tabular DR9-70-5 b":                                 `unexpected argument "b"`,
		"data tabular DR1-1-1":                                    "a room of 1 by 1 cells: want sides of 2 to 64 cells",
		"data tabular DR65-1-1":                                   "a room of 65 by 65 cells",
		"data tabular DR5-25-1":                                   "write 1 to 24",
		"data tabular DR5-18-5 --episodes 0":                      "--episodes is 0: it must be 1 to 1048576",
		"data tabular DR5-18-5 --episodes 1048577":                "--episodes is 1048577: it must be 1 to 1048576",
		"data tabular DR5-18-5 --epsilon-first 1.1":               "--epsilon-first is 1.1: it must be 0 to 1",
		"data tabular DR5-18-5 --epsilon-last NaN":                "--epsilon-last is NaN: it must be 0 to 1",
		"data tabular DR5-18-5 --learner ppo":                     `--learner is "ppo": use q or noise`,
		"data darkroom --streams 3 --steps 200":                   "--steps 200: total_source_timesteps 200 is less than the 240 steps",
		"data darkroom --set n_stream=3 --steps 200":              "--steps 200: total_source_timesteps 200 is less than the 240 steps",
		"data darkroom --streams 70000":                           "--streams 70000: must be at most 65536",
		"bench worlds DR4-12-2 --context 40 --set n_transit=60":   "--context gives n_transit too: leave it or --set n_transit=60 out",
		"bench worlds DR4-12-2 --set compress_min=3 --context 40": "--context gives compress_min too",
		"bench worlds DR4-12-2 --iterations 20":                   "--iterations 20: num_warmup_steps 200 is over train_timesteps 20",
	} {
		words := strings.Fields(args)
		if words[1] != "show" && words[0] == "data" {
			words = append(words, "--out", out)
		}
		inprocess.Refused(t, words, cli.ExitUsage, want)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a refused command left a file")
	}
}

// TestImportNamesTheFolderThatIsFull: histories need a temporary file in another folder, and where
// that cannot be written the line does not blame the folder of the histories.
func TestImportNamesTheFolderThatIsFull(t *testing.T) {
	from, gone := saveArrays(t, nil), filepath.Join(t.TempDir(), "gone")
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, gone)
	}
	out := filepath.Join(filepath.Dir(from), "x.hist")
	inprocess.Refused(t, []string{"data", "import", from, "--out", out}, cli.ExitFailed, "temporary folder "+gone+" (TMPDIR names another): ")
	if left, _ := filepath.Glob(out + "*"); left != nil {
		t.Errorf("%v is left behind", left)
	}
}

// TestUnusedSettingsAreNoted: a setting on the command line that changes nothing is said to, and
// the command goes on.
func TestUnusedSettingsAreNoted(t *testing.T) {
	out := filepath.Join(t.TempDir(), "x.hist")
	r := inprocess.Run(t, "data", "darkroom", "--set", "grid_size=3", "--set", "max_reward=3", "--streams", "2", "--steps", "200", "--out", out)
	if r.Code != cli.ExitDone || strings.Count(r.Stderr, "has no effect") != 1 || !strings.Contains(r.Stderr, "--set max_reward=3 has no effect: Returns are compared with") {
		t.Errorf("%d: %s", r.Code, r.Stderr)
	}
	args := []string{"train", "--config", "ad_dr", "--history", out, "--iterations", "1", "--device", "cpu", "--out", filepath.Join(t.TempDir(), "run")}
	for _, set := range []string{"tf_n_embd=16", "tf_n_layer=1", "tf_n_head=2", "train_batch_size=4", "num_warmup_steps=0", "test_batch_size=4", "eval_agents=1", "eval_episodes=1",
		"train_n_stream=2", "train_source_timesteps=100", "compress_interval=40"} {
		args = append(args, "--set", set)
	}
	if r := inprocess.Run(t, args...); r.Code != cli.ExitDone || strings.Count(r.Stderr, "has no effect") != 1 || !strings.Contains(r.Stderr, "--set compress_interval=40 has no effect: use_compressed_context is false") {
		t.Errorf("%d: %s", r.Code, r.Stderr)
	}
}

// TestReplacedSettingsAreNoted: a flag takes the place of a setting, and the command says so. --set
// seed=9 beside --seed 3, and the first of two --set of one key, were passed over in silence.
func TestReplacedSettingsAreNoted(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone.hist")
	for args, want := range map[string][]string{
		"train --config ad_dr --set seed=9 --seed 3 --set train_timesteps=2000 --iterations 2500 --set lr=0.1 --set lr=0.01 --device cpu --history " + gone: {
			"--set seed=9 has no effect: --seed is given too", "--set train_timesteps=2000 has no effect: --iterations is given too", "--set lr=0.1 has no effect: lr is set again behind it"},
		"data darkroom --set n_stream=3 --streams 2 --set alg_seed=1 --seed 2 --set n_process=2 --workers 1 --set grid_size=3 --set horizon=5 --steps 200 --out " + gone: {
			"--set n_stream=3 has no effect: --streams is given too", "--set alg_seed=1 has no effect: --seed is given too", "--set n_process=2 has no effect: --workers is given too"},
		"config show --config ad_dr --set lr=0.1 --set lr=0.01": {"--set lr=0.1 has no effect: lr is set again behind it"},
		"config check ad_dr --set iql_beta=3":                   {"--set iql_beta=3 has no effect: method is imitate"},
		"bench sizes --config tiny_1 --set training.batch_size=4 --set problem.num_customers=7 --customers 5,6 --device cpu": {"--set problem.num_customers=7 has no effect: --customers is given too"},
	} {
		r := inprocess.Run(t, strings.Fields(args)...)
		if n := strings.Count(r.Stderr, "has no effect"); n != len(want) {
			t.Errorf("%s: %d notes in %s", args, n, r.Stderr)
		}
		for _, line := range want {
			if !strings.Contains(r.Stderr, line+"\n") {
				t.Errorf("%s: %s; want %q", args, r.Stderr, line)
			}
		}
	}
}
