package root_test

import (
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
)

// TestFlagsAreJudgedBeforeFiles: what is wrong with a flag's value is wrong use, exit code 2,
// whether or not the files and settings named beside it can be read: nobody waits for a checkpoint
// to hear of a slip of the hand.
func TestFlagsAreJudgedBeforeFiles(t *testing.T) {
	for line, want := range map[string]string{
		"eval --checkpoint nowhere --decode beam":                                 `unknown decode "beam"`,
		"eval --checkpoint nowhere --decode sample:0":                             "the number of samples",
		"eval --checkpoint nowhere --count 0":                                     "--count is 0",
		"eval --checkpoint nowhere --goals some":                                  `unknown --goals "some"`,
		"eval --checkpoint nowhere --episodes 0":                                  "--episodes is 0",
		"eval --checkpoint nowhere --agents -1":                                   "--agents is -1",
		"eval --checkpoint nowhere --temperature -1":                              "--temperature is -1",
		"eval --checkpoint nowhere --plot x.gif":                                  `cannot write "gif"`,
		"eval --checkpoint nowhere --model X":                                     `unknown model "X"`,
		"eval --checkpoint nowhere --device cuda:x":                               "the card is a number",
		"eval kool:20/dev --checkpoint nowhere":                                   `"dev" is no part of the set`,
		"eval x.npz --checkpoint nowhere --distance metric":                       `unknown distance "metric"`,
		"eval x.npz --checkpoint nowhere --time soon":                             `--time is "soon"`,
		"eval --checkpoint nowhere --time 3s":                                     "--time is for a set",
		"train --config nowhere --data disk":                                      `unknown --data "disk"`,
		"train --resume nowhere --data disk":                                      `unknown --data "disk"`,
		"train --config nowhere --device cuda:-1":                                 "the card is a number",
		"train --config nowhere --precision fp8":                                  `unknown precision "fp8"`,
		"train --config nowhere --device cpu --precision tf32":                    "a CPU computes in fp32",
		"solve nowhere.vrp --policy x --set decode=beam":                          `unknown decode "beam"`,
		"solve nowhere.vrp --policy x --set decode=eas:0":                         "with 1 to 1000000 iterations",
		"eval --checkpoint nowhere --decode eas8:1000001":                         "with 1 to 1000000 iterations",
		"solve nowhere.vrp --policy cvrp20 --set decode=eas --time 1s --target 3": "--target is about the search, and the decoder eas takes the --time",
		"solve nowhere.vrp --policy x --set device=gpu":                           `unknown device "gpu"`,
		"solve nowhere.vrp --out x.gif":                                           `cannot write "gif"`,
		"solve nowhere.vrp --curve x.gif":                                         `cannot write "gif"`,
		"solve nowhere.vrp --set distance=metric":                                 `unknown distance "metric"`,
		"solve nowhere.vrp --method tabu":                                         `unknown method "tabu"`,
		"profile --config nowhere --trace x.txt":                                  ".json",
		"profile --config nowhere --device gpu":                                   `unknown device "gpu"`,
		"bench step --config nowhere --precision fp8":                             `unknown precision "fp8"`,
		"bench scale --config nowhere --plot x.gif":                               `cannot write "gif"`,
		"bench scale --config nowhere --device gpu":                               `unknown device "gpu"`,
		"bench exchange --megabytes -1":                                           "--megabytes is -1",
		"data darkroom --config nowhere --streams 0":                              "--streams is 0",
		"completion tcsh":                                                         `no command "tcsh"`,
	} {
		r := inprocess.Run(t, strings.Fields(line)...)
		if r.Code != cli.ExitUsage || !strings.Contains(r.Stderr, want) || strings.Count(r.Stderr, "\n") != 1 || r.Stdout != "" {
			t.Errorf("haul %s: code %d, %q, %q", line, r.Code, r.Stderr, r.Stdout)
		}
	}
}
