package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestSolutionsThroughPipes: `--out -` left a file named "-". What one command writes there the
// next one reads.
func TestSolutionsThroughPipes(t *testing.T) {
	square := write(t, "square.vrp", squareVRP)
	t.Chdir(t.TempDir())
	solved := haul(t, "solve", square, "--out", "-")
	if solved.code != exitDone || !strings.HasPrefix(solved.stdout, "Route #1: ") || !strings.HasSuffix(solved.stdout, "\nCost 68\n") {
		t.Fatalf("exit %d, %q", solved.code, solved.stdout)
	}
	if !strings.Contains(solved.stderr, "cost    68\n") || strings.Contains(solved.stderr, "written") {
		t.Errorf("it says %q", solved.stderr)
	}
	onStandardInput(t, solved.stdout, func() {
		if r := object(t, "solve", square, "--check", "-", "--json"); r["valid"] != true || r["cost"] != 68.0 {
			t.Errorf("%v", r)
		}
	})
	onStandardInput(t, "Route #1: 1\nCost 20\n", func() {
		refused(t, []string{"solve", square, "--check", "-"}, exitFailed, "haul: standard input is not a solution of "+square)
	})
	onStandardInput(t, solved.stdout, func() {
		if r := haul(t, "solve", square, "--start", "-", "--iterations", "5", "--out", "-"); r.code != exitDone || r.stdout != solved.stdout {
			t.Errorf("exit %d, %q, %q", r.code, r.stdout, r.stderr)
		}
	})
	one := haul(t, "gen", "--customers", "3", "--out", "-")
	if one.code != exitDone || one.stderr != "" {
		t.Fatalf("exit %d, %q", one.code, one.stderr)
	}
	onStandardInput(t, one.stdout, func() {
		if r := object(t, "solve", "-", "--json"); r["customers"] != 3.0 {
			t.Errorf("%v", r)
		}
	})
	onStandardInput(t, "training:\n  batch_size: 77\n", func() {
		if r := haul(t, "config", "show", "--config", "-"); r.code != exitDone || !strings.Contains(r.stdout, "batch_size: 77\n") {
			t.Errorf("exit %d, %q", r.code, r.stderr)
		}
	})
	onStandardInput(t, "training:\n  bach_size: 77\n", func() { refused(t, []string{"config", "check", "-"}, exitFailed, "stdin:2: unknown key") })
	onStandardInput(t, "", func() { refused(t, []string{"config", "check", "-"}, exitFailed, "config stdin: no settings in it") })

	refused(t, []string{"solve", square, "--out", "-", "--json"}, exitUsage, "--json")
	refused(t, []string{"solve", "-", "--check", "-"}, exitUsage, "both come from standard input")
	refused(t, []string{"gen", "--count", "2", "--out", "-"}, exitUsage, "one .vrp")
	refused(t, []string{"doctor", "x", "--html", "-", "--json"}, exitUsage, "--json")
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestAPageThroughAPipe: the doctor's page alone is on standard output.
func TestAPageThroughAPipe(t *testing.T) {
	r := haul(t, "doctor", "../../docs/examples/trace.json.gz", "--html", "-")
	if r.code != exitDone || !strings.HasPrefix(r.stdout, "<!") || strings.Count(r.stdout, "<html") != 1 || !strings.Contains(r.stderr, "What holds this run back") {
		t.Errorf("exit %d, %.60q, %.60q", r.code, r.stdout, r.stderr)
	}
	if _, err := os.Stat("-"); err == nil {
		t.Error("a file named -")
	}
}

// TestADashIsNoFileName: every flag that names a file or a folder takes - for what is piped, or
// says that it does not.
func TestADashIsNoFileName(t *testing.T) {
	names := regexp.MustCompile(`\b(files?|folder|write|draw)\b|\.(svg|sol|npz|safetensors)\b`)
	// config takes - everywhere; the others speak of files
	notFiles := []string{"config", "distance", "model", "objective"}
	t.Chdir(t.TempDir())
	seen := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			walk(c)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			known := slices.Contains(filesOut, f.Name) || slices.Contains(filesIn, f.Name)
			switch kind := f.Value.Type(); {
			case kind != "string" && kind != "stringArray":
				return
			case names.MatchString(f.Usage) && !known && !slices.Contains(notFiles, f.Name):
				t.Errorf("%s --%s: %q seems to name a file and stands in no list of pipes.go", cmd.CommandPath(), f.Name, f.Usage)
				return
			case !known || slices.Contains(piped[cmd.CommandPath()], f.Name):
				return
			}
			seen++
			args := append(strings.Fields(cmd.CommandPath())[1:], "--"+f.Name, "-")
			if strings.Contains(cmd.Use, " ") && !strings.Contains(cmd.Use, "[") {
				args = append(args, "x")
			}
			refused(t, args, exitUsage, "--"+f.Name+" - is standard")
		})
	}
	walk((&app{stdout: os.Stdout, stderr: os.Stderr}).newRoot())
	if seen < 12 {
		t.Errorf("only %d flags were tried", seen)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
