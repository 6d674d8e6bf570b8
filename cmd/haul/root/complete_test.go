package root_test

import (
	"slices"
	"strings"
	"testing"

	"haul/cmd/haul/clitest/inprocess"
	"haul/internal/policy"
)

// TestWordsAreOffered: what a shell asks for after Tab, and that each word offered is one that the
// verb takes.
func TestWordsAreOffered(t *testing.T) {
	offered := func(args ...string) (list []string, files bool) {
		t.Helper()
		r := inprocess.Run(t, append([]string{"__complete"}, args...)...)
		if r.Code != 0 {
			t.Fatalf("%v: exit %d, %s", args, r.Code, r.Stderr)
		}
		lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
		for _, line := range lines[:len(lines)-1] {
			word, _, _ := strings.Cut(line, "\t")
			list = append(list, word)
		}
		return list, lines[len(lines)-1] == ":0"
	}
	for _, c := range []struct {
		args  []string
		word  string
		files bool
	}{
		{[]string{"train", "--config", ""}, "cvrp100", true},
		{[]string{"train", "--from", ""}, "cvrp50", true},
		{[]string{"bench", "step", "--config", ""}, "ad_dr", true},
		{[]string{"solve", "a.vrp", "--policy", ""}, "cvrp20", false},
		{[]string{"policies", ""}, "cvrp20", false},
		{[]string{"policies", ""}, "pack", false},
		{[]string{"eval", "--model", ""}, "GT+RL", false},
		{[]string{"profile", "--precision", ""}, "bf16", false},
		{[]string{"solve", "--method", ""}, "savings", false},
		{[]string{"train", "--set", ""}, "training.batch_size=", false},
		{[]string{"data", "darkroom", "--set", ""}, "gamma=", false},
	} {
		if list, files := offered(c.args...); !slices.Contains(list, c.word) || files != c.files {
			t.Errorf("%v: %v, files %v", c.args, list, files)
		}
	}
	decoders, _ := offered("eval", "--decode", "")
	for _, d := range decoders {
		if _, err := policy.ParseDecode(d); err != nil {
			t.Error(err)
		}
	}
	methods, _ := offered("solve", "--method", "")
	for _, m := range methods {
		if r := inprocess.Run(t, "eval", "grid:4", "--capacity", "20", "--count", "2", "--method", m); r.Code != 0 {
			t.Errorf("--method %s: %s", m, r.Stderr)
		}
	}
	settings, _ := offered("config", "show", "--config", "")
	for _, name := range settings {
		if r := inprocess.Run(t, "config", "show", "--config", name); r.Code != 0 {
			t.Errorf("--config %s: %s", name, r.Stderr)
		}
	}
}
