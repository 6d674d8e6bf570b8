package solve_test

import (
	"os"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest"
	"haul/cmd/haul/clitest/inprocess"
)

// TestSolutionsThroughPipes: `--out -` left a file named "-". What one command writes there the
// next one reads.
func TestSolutionsThroughPipes(t *testing.T) {
	square := clitest.Write(t, "square.vrp", clitest.SquareVRP)
	t.Chdir(t.TempDir())
	solved := inprocess.Run(t, "solve", square, "--out", "-")
	if solved.Code != cli.ExitDone || !strings.HasPrefix(solved.Stdout, "Route #1: ") || !strings.HasSuffix(solved.Stdout, "\nCost 68\n") {
		t.Fatalf("exit %d, %q", solved.Code, solved.Stdout)
	}
	if !strings.Contains(solved.Stderr, "cost    68\n") || strings.Contains(solved.Stderr, "written") {
		t.Errorf("it says %q", solved.Stderr)
	}
	clitest.OnStandardInput(t, solved.Stdout, func() {
		if r := inprocess.Object(t, "check", square, "-", "--json"); r["valid"] != true || r["cost"] != 68.0 {
			t.Errorf("%v", r)
		}
	})
	clitest.OnStandardInput(t, "Route #1: 1\nCost 20\n", func() {
		inprocess.Refused(t, []string{"check", square, "-"}, cli.ExitFailed, "haul: standard input is not a solution of "+square)
	})
	clitest.OnStandardInput(t, solved.Stdout, func() {
		if r := inprocess.Run(t, "solve", square, "--start", "-", "--iterations", "5", "--out", "-"); r.Code != cli.ExitDone || r.Stdout != solved.Stdout {
			t.Errorf("exit %d, %q, %q", r.Code, r.Stdout, r.Stderr)
		}
	})
	one := inprocess.Run(t, "gen", "grid:3", "--out", "-")
	if one.Code != cli.ExitDone || one.Stderr != "" {
		t.Fatalf("exit %d, %q", one.Code, one.Stderr)
	}
	clitest.OnStandardInput(t, one.Stdout, func() {
		if r := inprocess.Object(t, "solve", "-", "--json"); r["customers"] != 3.0 {
			t.Errorf("%v", r)
		}
	})
	clitest.OnStandardInput(t, "training:\n  batch_size: 77\n", func() {
		if r := inprocess.Run(t, "config", "show", "--config", "-"); r.Code != cli.ExitDone || !strings.Contains(r.Stdout, "batch_size: 77\n") {
			t.Errorf("exit %d, %q", r.Code, r.Stderr)
		}
	})
	clitest.OnStandardInput(t, "training:\n  bach_size: 77\n", func() { inprocess.Refused(t, []string{"config", "check", "-"}, cli.ExitFailed, "stdin:2: unknown key") })
	clitest.OnStandardInput(t, "", func() {
		inprocess.Refused(t, []string{"config", "check", "-"}, cli.ExitFailed, "config stdin: no settings in it")
	})

	inprocess.Refused(t, []string{"solve", square, "--out", "-", "--json"}, cli.ExitUsage, "--json")
	inprocess.Refused(t, []string{"check", "-", "-"}, cli.ExitUsage, "both come from standard input")
	inprocess.Refused(t, []string{"gen", "grid:10", "--count", "2", "--out", "-"}, cli.ExitUsage, "one .vrp")
	inprocess.Refused(t, []string{"doctor", "x", "--html", "-", "--json"}, cli.ExitUsage, "--json")
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
