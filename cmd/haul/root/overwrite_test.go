package root_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
)

// TestPicturesAndPagesAreNotReplacedUnasked: eval --plot and doctor --html keep a file that is
// there, say so before the work, and replace it where --force is given.
func TestPicturesAndPagesAreNotReplacedUnasked(t *testing.T) {
	dir := t.TempDir()
	for name, args := range map[string][]string{
		"routes.svg": {"eval", "--policy", "cvrp20", "--count", "2", "--device", "cpu", "--plot"},
		"page.html":  {"doctor", "../../../docs/examples/trace.json.gz", "--html"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
		inprocess.Refused(t, args, cli.ExitFailed, path+" is there already: give another name, or --force to replace it")
		if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if r := inprocess.Run(t, append(args, "--force")...); r.Code != cli.ExitDone {
			t.Errorf("%v --force: %s", args, r.Stderr)
		}
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "<svg") && !strings.Contains(string(text), "<html") {
			t.Errorf("%s was not replaced: %.40q, %v", name, text, err)
		}
	}
}
