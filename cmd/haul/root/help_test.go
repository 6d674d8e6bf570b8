package root_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest"
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
			if n := strings.Count(out.String(), "--help  "); n > 1 {
				t.Errorf("%s: %d lines on --help", cmd.CommandPath(), n)
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

// TestHelpOfSolveFitsAScreen: haul solve has one job, and its help is one screen.
func TestHelpOfSolveFitsAScreen(t *testing.T) {
	const lines, flags = 50, 24
	help := inprocess.Run(t, "solve", "--help").Stdout
	if n := strings.Count(help, "\n"); n > lines {
		t.Errorf("%d lines, at most %d", n, lines)
	}
	named := regexp.MustCompile(`(?m)^ +(-h, )?--[a-z]`).FindAllString(help, -1)
	if len(named) > flags || len(named) < 10 {
		t.Errorf("%d flags, at most %d", len(named), flags)
	}
}

// TestOldFormsRun: what has another name says what to type, and does it.
func TestOldFormsRun(t *testing.T) {
	square, sol := clitest.Write(t, "square.vrp", clitest.SquareVRP), clitest.Write(t, "x.sol", clitest.SquareSOL)
	stops, vans := clitest.Write(t, "stops.csv", "id,x,y,demand\n0,0,0,0\n1,3,4,3\n"), clitest.Write(t, "vans.csv", "id,capacity\nvan,40\n")
	out := filepath.Join(t.TempDir(), "set")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for old, now := range map[string]string{
		"solve " + square + " --check " + sol + " --json":                                       "check " + square + " " + sol + " --json",
		"solve " + stops + " --fleet=" + vans:                                                   "solve " + stops + " --with fleet=" + vans,
		"solve " + square + " --distance exact --limit windows=20":                              "solve " + square + " --set distance=exact --set windows=20",
		"solve --customers 4 --capacity 20 --count 2":                                           "eval grid:4 --capacity 20 --count 2",
		"solve --testset kool --customers 10 --count 1 --time-per-instance 5ms --method search": "eval kool:10 --count 1 --time 5ms --method search",
		"solve --testset routefinder --variant vrptw --customers 50 --count 1 --iterations 5":   "eval routefinder:vrptw/50 --count 1 --iterations 5",
		"gen --distribution uniform --customers 4 --out " + out:                                 "gen uniform:4 --out " + out,
		"gen --single-tour --customers 5 --out " + out:                                          "gen tsp-grid:5 --out " + out,
		"gen --testset kool --customers 10 --split validation --count 1 --out " + out:           "gen kool:10/validation --count 1 --out " + out,
	} {
		r := inprocess.Run(t, strings.Fields(old)...)
		if note, _, _ := strings.Cut(r.Stderr, "\n"); r.Code != cli.ExitDone || note != "from the next release on, type: haul "+now {
			t.Errorf("haul %s: exit %d, %q", old, r.Code, r.Stderr)
		}
		if args, again := root.Moved(strings.Fields(now)); again {
			t.Errorf("haul %s is an old form itself: %v", now, args)
		}
	}
}
