package root_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
	"haul/cmd/haul/root"
)

// TestADashIsNoFileName: every flag that names a file or a folder takes - for what is piped, or
// says that it does not.
func TestADashIsNoFileName(t *testing.T) {
	names := regexp.MustCompile(`\b(files?|folder|write|draw)\b|\.(svg|sol|npz|safetensors)\b`)
	// config takes - everywhere; the others speak of files
	notFiles := []string{"config", "distance", "model", "objective", "method", "policy", "to", "with"}
	t.Chdir(t.TempDir())
	seen := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			walk(c)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			known := slices.Contains(cli.FilesOut, f.Name) || slices.Contains(cli.FilesIn, f.Name)
			switch kind := f.Value.Type(); {
			case kind != "string" && kind != "stringArray" || f.Hidden:
				return
			case names.MatchString(f.Usage) && !known && !slices.Contains(notFiles, f.Name):
				t.Errorf("%s --%s: %q seems to name a file and stands in no list of pipes.go", cmd.CommandPath(), f.Name, f.Usage)
				return
			case !known || slices.Contains(cli.Piped[cmd.CommandPath()], f.Name):
				return
			}
			seen++
			args := append(strings.Fields(cmd.CommandPath())[1:], "--"+f.Name, "-")
			for _, word := range strings.Fields(cmd.Use)[1:] {
				if !strings.HasPrefix(word, "[") {
					args = append(args, "x")
				}
			}
			inprocess.Refused(t, args, cli.ExitUsage, "--"+f.Name+" - is standard")
		})
	}
	walk(root.New(&cli.App{Stdout: os.Stdout, Stderr: os.Stderr}))
	if seen < 12 {
		t.Errorf("only %d flags were tried", seen)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
