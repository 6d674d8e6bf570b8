package root_test

import (
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
	"haul/cmd/haul/root"
)

// Every verb teaches: it says what it does and shows a command whose verb and flags exist.
func TestHelpTeaches(t *testing.T) {
	root := root.New(&cli.App{})
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Short == "" || !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s: its help has no purpose or no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			words := strings.Fields(line)
			words = words[slices.Index(words, "haul")+1:] // past a launcher and its flags
			found, rest, err := root.Find(words)
			if err != nil || found == root {
				t.Errorf("%s: example %q calls no verb", cmd.CommandPath(), line)
				continue
			}
			for _, w := range rest {
				if name, ok := strings.CutPrefix(w, "--"); ok && found.Flags().Lookup(name) == nil {
					t.Errorf("%s: example %q uses a flag that does not exist", cmd.CommandPath(), strings.TrimSpace(line))
				}
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
	for _, args := range [][]string{nil, {"--help"}, {"help", "solve"}, {"config"}, {"bench", "cost", "--help"}} {
		if r := inprocess.Run(t, args...); r.Code != cli.ExitDone || !strings.Contains(r.Stdout, "Examples:") || r.Stderr != "" {
			t.Errorf("%v: exit %d, %q", args, r.Code, r.Stderr)
		}
	}
}

func TestVersion(t *testing.T) {
	if v := inprocess.Object(t, "version", "--json"); v["go"] != runtime.Version() || v["arch"] != runtime.GOARCH || v["version"] == "" {
		t.Errorf("%v", v)
	}
	if r := inprocess.Run(t, "version"); !strings.HasPrefix(r.Stdout, "haul ") || !strings.Contains(r.Stdout, runtime.GOOS) {
		t.Errorf("%q", r.Stdout)
	}
}

func TestDevices(t *testing.T) {
	v := inprocess.Object(t, "devices", "--json")
	cpu, cuda := v["cpu"].(map[string]any), v["cuda"].(map[string]any)
	if cpu["model"] == "" || cpu["cores"].(float64) != float64(runtime.NumCPU()) {
		t.Errorf("cpu is %v", cpu)
	}
	// Either a driver with its version, or the reason why there is none.
	if cuda["driver"] == true && cuda["cuda_version"] == nil || cuda["driver"] == false && cuda["reason"] == nil {
		t.Errorf("cuda is %v", cuda)
	}
	if r := inprocess.Run(t, "devices"); !strings.Contains(r.Stdout, "cpu") || !strings.Contains(r.Stdout, "cuda") {
		t.Errorf("%q", r.Stdout)
	}
}

// haul version printed a pseudo-version that no list of changes has.
func TestVersionAgreesWithChangelog(t *testing.T) {
	text, err := os.ReadFile("../../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	released := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+) - (\d{4}-\d{2}-\d{2})$`).FindStringSubmatch(string(text))
	if released == nil {
		t.Fatal("CHANGELOG.md names no release as \"## 1.2.3 - 2006-01-02\"")
	}
	if _, err := time.Parse(time.DateOnly, released[2]); err != nil {
		t.Error(err)
	}
	if got := inprocess.Object(t, "version", "--json")["version"]; got != released[1] {
		t.Errorf("haul version is %v, the newest release %s", got, released[1])
	}
	if r := inprocess.Run(t, "version"); !strings.HasPrefix(r.Stdout, "haul "+released[1]) {
		t.Errorf("haul version prints %s", r.Stdout)
	}
}
