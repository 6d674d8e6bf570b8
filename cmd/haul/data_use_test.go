package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDataRefusals: what haul data cannot honour is refused in one line that names what was typed.
func TestDataRefusals(t *testing.T) {
	out := filepath.Join(t.TempDir(), "x.hist")
	for args, want := range map[string]string{
		"data show":                                  "name a file of learning histories (see haul data show --help)",
		"data import":                                "name an .npz file, or a folder of .npy files (see haul data import --help)",
		"data import a b":                            `unexpected argument "b"`,
		"data import a --actions 1":                  "--actions is 1: it must be 2 to 64, or 0 for the largest in the arrays, plus 1",
		"data import a --actions 65":                 "--actions is 65: it must be 2 to 64",
		"data import a --actions -1":                 "--actions is -1: it must be 2 to 64",
		"data import a --train-ratio 1":              "--train-ratio is 1: it must lie between 0 and 1",
		"data tabular":                               "name a set, for example DR9-70-5",
		"data tabular DR9-70-5 b":                    `unexpected argument "b"`,
		"data tabular DR1-1-1":                       "a room of 1 by 1 cells: want sides of 2 to 64 cells",
		"data tabular DR65-1-1":                      "a room of 65 by 65 cells",
		"data tabular DR5-25-1":                      "write 1 to 24",
		"data tabular DR5-18-5 --episodes 0":         "--episodes is 0: it must be 1 to 1048576",
		"data tabular DR5-18-5 --episodes 1048577":   "--episodes is 1048577: it must be 1 to 1048576",
		"data tabular DR5-18-5 --epsilon-first 1.1":  "--epsilon-first is 1.1: it must be 0 to 1",
		"data tabular DR5-18-5 --epsilon-last NaN":   "--epsilon-last is NaN: it must be 0 to 1",
		"data tabular DR5-18-5 --learner ppo":        `--learner is "ppo": use q or noise`,
		"data darkroom --streams 3 --steps 200":      "--steps 200: total_source_timesteps 200 is less than the 240 steps",
		"data darkroom --set n_stream=3 --steps 200": "--steps 200: total_source_timesteps 200 is less than the 240 steps",
		"data darkroom --streams 70000":              "--streams 70000: must be at most 65536",
		"bench worlds DR4-12-2 --iterations 20":      "--iterations 20: num_warmup_steps 200 is over train_timesteps 20",
	} {
		words := strings.Fields(args)
		if words[1] != "show" && words[0] == "data" {
			words = append(words, "--out", out)
		}
		refused(t, words, exitUsage, want)
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
	refused(t, []string{"data", "import", from, "--out", out}, exitFailed, "temporary folder "+gone+" (TMPDIR names another): ")
	if left, _ := filepath.Glob(out + "*"); left != nil {
		t.Errorf("%v is left behind", left)
	}
}
