package root_test

import (
	"bytes"
	"context"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/root"
)

// fullDisk refuses every write for one reason.
type fullDisk struct{ why error }

func (f fullDisk) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: f.why}
}

// Help ended with 0 on a full disk, and to a script that was all there is to it.
func TestResultsThatCannotBeWrittenAreAFailure(t *testing.T) {
	lines := [][]string{{}, {"help"}, {"help", "train"}, {"config"}, {"bench"}, {"completion", "bash"}, {"--version"}, {"version"}, {"version", "--json"},
		{"policies"}, {"policies", "cvrp20"}, {"policies", "--json"}, {"config", "show"}, {"config", "show", "--json"}, {"config", "explain", "problem"},
		{"config", "check", "../../../docs/examples/my.yaml"}, {"lab", "list"}, {"devices"}, {"eval", "grid:4", "--count", "2"}}
	all := root.New(&cli.App{})
	lines = append(lines, []string{"--help"})
	for _, verb := range all.Commands() {
		lines = append(lines, []string{verb.Name(), "--help"})
		for _, sub := range verb.Commands() {
			lines = append(lines, []string{verb.Name(), sub.Name(), "--help"})
		}
	}
	for _, args := range lines {
		var words bytes.Buffer
		code := root.Execute(context.Background(), args, fullDisk{syscall.ENOSPC}, &words)
		if said := words.String(); code != cli.ExitFailed || said != "haul: write /dev/stdout: no space left on device\n" {
			t.Errorf("haul %s: exit %d, %q", strings.Join(args, " "), code, said)
		}
		words.Reset()
		// A reader that has left knows: silence, and the code of the signal that ends other programs.
		code = root.Execute(context.Background(), args, fullDisk{syscall.EPIPE}, &words)
		if code != 128+int(syscall.SIGPIPE) || words.Len() > 0 {
			t.Errorf("haul %s | true: exit %d, %q", strings.Join(args, " "), code, words.String())
		}
	}
}
