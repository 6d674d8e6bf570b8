package root_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
	"haul/cmd/haul/root"
)

// TestHelpFitsNarrowScreens: at 80 and at 60 columns no line of any verb's help is broken by the
// screen, and examples can still be copied.
func TestHelpFitsNarrowScreens(t *testing.T) {
	joined := func(s string) string {
		return strings.Join(strings.Fields(strings.ReplaceAll(s, "\\\n", " ")), " ")
	}
	for _, columns := range []int{200, 80, 60} {
		var out strings.Builder
		a := &cli.App{Stdout: &out, Stderr: &out, Columns: columns}
		root := root.New(a)
		root.SetOut(&out)
		var walk func(cmd *cobra.Command)
		walk = func(cmd *cobra.Command) {
			out.Reset()
			cmd.InitDefaultHelpFlag()
			if err := cmd.Help(); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(out.String()) {
				if line = strings.TrimRight(line, "\n"); len([]rune(line)) > columns {
					t.Errorf("%s at %d columns: a line of %d: %s", cmd.CommandPath(), columns, len([]rune(line)), line)
				}
			}
			if got, want := joined(out.String()), joined(cmd.Example); !strings.Contains(got, want) {
				t.Errorf("%s at %d columns: %q does not show the examples %q", cmd.CommandPath(), columns, got, want)
			}
			for _, sub := range cmd.Commands() {
				walk(sub)
			}
		}
		walk(root)
	}
}

// TestHelpFitsAScreen: no line of any verb's help is longer than 100 characters.
func TestHelpFitsAScreen(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		for line := range strings.Lines(inprocess.Run(t, args...).Stdout) {
			if line = strings.TrimRight(line, "\n"); len([]rune(line)) > cli.WidestHelp {
				t.Errorf("%s: a line of %d: %s", cmd.CommandPath(), len([]rune(line)), line)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root.New(&cli.App{}))
}
