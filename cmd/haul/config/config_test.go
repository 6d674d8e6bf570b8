package config

import (
	"bytes"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/internal/config"
)

// TestExplainFits: no line is longer than a reader likes or than the screen, but for a word that
// is, and no word is lost.
func TestExplainFits(t *testing.T) {
	for _, columns := range []int{0, 200, 60} {
		var out bytes.Buffer
		a := &app{&cli.App{Stdout: &out, Stderr: &out, Columns: columns}}
		cmd := a.newConfigExplain()
		cmd.SetArgs([]string{})
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		limit := cli.WidestHelp
		if columns == 60 {
			limit = 59
		}
		for line := range strings.Lines(out.String()) {
			if line = strings.TrimRight(line, "\n"); len([]rune(line)) > limit && len(strings.Fields(line)) > 1 {
				t.Errorf("at %d columns a line of %d: %s", columns, len([]rune(line)), line)
			}
		}
		all, err := config.Explain("", "")
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Join(strings.Fields(out.String()), " ")
		for _, e := range all {
			if !strings.Contains(words, strings.Join(strings.Fields(e.About), " ")) {
				t.Errorf("%s is not explained whole", e.Key)
			}
		}
	}
}
