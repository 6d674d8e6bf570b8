package root_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest"
	"haul/cmd/haul/clitest/inprocess"
	"haul/cmd/haul/root"
)

// What a reader could break: examples are found, not listed. A line of a fenced block on a page, or
// of a command's help, that begins with haul is run; `haul ...` within a sentence may have
// placeholders, and only its verb and flags are looked up. An example that is slow gets a rule in
// shortenings.

// workshop is a folder as a fresh clone's root looks to examples: samples and test data, and room
// for what they write.
type workshop struct {
	t    *testing.T
	root string // of the repository
}

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	root, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "docs", "examples"), os.DirFS(filepath.Join(root, "docs", "examples"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"internal", "configs"} { // read, never written
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	return &workshop{t, root}
}

// repository is its root, seen from here.
const repository = "../../.."

// check says what is wrong with an example without running it; with values, flags' values are read
// too.
func (e *example) check(values bool) (*cobra.Command, error) {
	root := root.New(&cli.App{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}})
	root.InitDefaultHelpCmd()
	cmd, rest, err := root.Find(e.words)
	if err != nil || cmd == root && !strings.HasPrefix(e.words[0], "-") {
		return nil, fmt.Errorf("calls no verb")
	}
	cmd.InitDefaultHelpFlag()
	if values {
		if err := cmd.ParseFlags(rest); err != nil {
			return nil, err
		}
		return cmd, cmd.ValidateArgs(cmd.Flags().Args())
	}
	for _, w := range rest {
		name, ok := strings.CutPrefix(w, "--")
		name, _, _ = strings.Cut(name, "=")
		if ok && name != "" && cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil {
			return nil, fmt.Errorf("%s has no flag --%s", cmd.CommandPath(), name)
		}
	}
	return cmd, nil
}

// measured are the lines that leave nothing behind and have been run.
var measured = map[string]bool{}

// run runs an example, shortened, after what it takes for granted.
func (w *workshop) run(e example) {
	w.t.Helper()
	if e.file != "" {
		if err := os.WriteFile(e.file, []byte(e.text), 0o644); err != nil {
			w.t.Error(err)
		}
		return
	}
	cmd, err := e.check(true)
	if err != nil {
		w.t.Errorf("%s: %s: %v", e.where, e.line, err)
		return
	}
	prepare := cmd.Flags().Lookup("prepare")
	if d := cmd.Flags().Lookup("device"); d != nil && strings.HasPrefix(d.Value.String(), "cuda") || prepare != nil && prepare.Changed {
		return // needs a card
	}
	if cmd.Flags().Changed("rendezvous") || slices.Contains(e.words, "--rendezvous") {
		return // needs a second machine
	}
	args := slices.Clone(e.words)
	if rule, ok := shortenings[cmd.CommandPath()]; ok {
		if args, err = rule(w, cmd, args); err != nil {
			w.t.Errorf("%s: %s: %v", e.where, e.line, err)
			return
		}
	}
	// What only measures, or only serves, is the same on any page.
	if p, line := cmd.CommandPath(), strings.Join(args, " "); p == "haul serve" || strings.HasPrefix(p, "haul bench ") && !strings.Contains(line, ".svg") {
		if measured[line] {
			return
		}
		measured[line] = true
	}
	limit := clitest.Patience
	if p := cmd.CommandPath(); p == "haul serve" || p == "haul doctor watch" { // which end when they are told to
		limit = 200 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), limit)
	defer cancel()
	var stdout, stderr bytes.Buffer
	start := root.Execute
	// a program that starts itself again: here that must be the program, not its tests
	if slices.Contains(args, "--processes") {
		start = inprocess.RunApart
	}
	code := start(ctx, args, &stdout, &stderr)
	if code == cli.ExitFailed && strings.HasPrefix(stderr.String(), "haul: no MPI library ") && os.Getenv("HAUL_RANKS") == "" {
		return // needs a library that a machine with Go alone lacks; .ci/run ranks has it
	}
	if code == cli.ExitUnserved && strings.Contains(e.line, fmt.Sprintf("exit code %d", cli.ExitUnserved)) {
		return // as the example says
	}
	if code != cli.ExitDone {
		w.t.Errorf("%s: %s\nas haul %s: exit %d, %s", e.where, e.line, strings.Join(args, " "), code, stderr.String())
	}
}

// wholeOnly leaves a test out of the race detector's pass, which takes minutes over examples, and
// over one run after another: the verbs' other tests run the same goroutines there.
func wholeOnly(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs without -short")
	}
}

// docPages are those that a user reads.
func docPages(t *testing.T) []string {
	t.Helper()
	out := []string{filepath.Join(repository, "README.md"), filepath.Join(repository, "CONTRIBUTING.md")}
	for _, pattern := range []string{"docs/*.md", "docs/decisions/*.md", "docs/examples/*.md"} {
		more, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil || len(more) == 0 {
			t.Fatalf("no pages %s: %v", pattern, err)
		}
		out = append(out, more...)
	}
	return out
}

// Examples named files that no clone has and folders that nothing makes.
func TestExamplesOfPagesRun(t *testing.T) {
	wholeOnly(t)
	ran := 0
	for _, path := range docPages(t) {
		fenced, spoken, err := pageExamples(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range spoken {
			if _, err := e.check(false); err != nil {
				t.Errorf("%s: `%s`: %v", e.where, e.line, err)
			}
		}
		if ran += len(fenced); len(fenced) == 0 {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			w := newWorkshop(t)
			for _, e := range fenced {
				w.run(e)
			}
		})
	}
	if ran < 8 {
		t.Errorf("only %d examples were found on the pages", ran)
	}
}

func TestExamplesOfHelpRun(t *testing.T) {
	wholeOnly(t)
	all := helpExamples(root.New(&cli.App{}))
	for path, examples := range all {
		t.Run(path, func(t *testing.T) {
			w := newWorkshop(t)
			for _, e := range examples {
				w.run(e)
			}
		})
	}
	if len(all) < 15 {
		t.Errorf("only %d commands have examples", len(all))
	}
}
