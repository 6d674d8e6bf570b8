package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"haul/internal/config"
	"haul/internal/lab"
	"haul/internal/run"
)

// What a reader could break: examples are found, not listed. A line of a fenced block on a page, or of a command's help, that begins with haul is run;
// `haul ...` within a sentence may have placeholders, and only its verb and flags are looked up. An example that is slow gets a rule in
// shortenings.

// example is a command line that a user may copy.
type example struct {
	where string
	line  string
	words []string // after haul
}

var inlineCommand = regexp.MustCompile("`((?:haul|go run ./cmd/haul) [^`]+)`")

// pageExamples are those of a page: of its fenced blocks, and within its sentences.
func pageExamples(path string) (fenced, spoken []example, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	open, joined, number := false, "", 0
	for line := range strings.Lines(string(text)) {
		number++
		where := fmt.Sprintf("%s:%d", filepath.Base(path), number)
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			open, joined = !open, ""
		case open:
			if more, ok := strings.CutSuffix(line, "\\"); ok {
				joined += more
				continue
			}
			fenced = append(fenced, commands(where, joined+line)...)
			joined = ""
		default:
			for _, m := range inlineCommand.FindAllStringSubmatch(line, -1) {
				spoken = append(spoken, commands(where, m[1])...)
			}
		}
	}
	return fenced, spoken, nil
}

// helpExamples are those of a command and all below it, by command.
func helpExamples(cmd *cobra.Command) map[string][]example {
	out := map[string][]example{}
	for line := range strings.Lines(cmd.Example) {
		path := cmd.CommandPath()
		out[path] = append(out[path], commands(path+" --help", strings.TrimSpace(line))...)
	}
	for _, sub := range cmd.Commands() {
		for path, all := range helpExamples(sub) {
			out[path] = all
		}
	}
	return out
}

// commands are the calls of haul in a line of shell.
func commands(where, line string) (out []example) {
	for _, words := range shell(strings.TrimPrefix(line, "$ ")) {
		if slices.ContainsFunc(words, func(w string) bool { return w == "VERB" || w == "..." || w == "…" }) {
			continue // of any verb, or of part of a line
		}
		for len(words) > 0 && regexp.MustCompile(`^[A-Z_]+=`).MatchString(words[0]) {
			words = words[1:]
		}
		switch {
		case len(words) > 3 && slices.Equal(words[:3], []string{"go", "run", "./cmd/haul"}):
			out = append(out, example{where, line, words[3:]})
		case len(words) > 1 && (words[0] == "haul" || words[0] == "./haul"):
			out = append(out, example{where, line, words[1:]})
		}
	}
	return out
}

// shell splits a line into commands and those into words, as far as examples need it: quotes, comments, && and ;. What a pipe or a redirection
// leads to is left out.
func shell(line string) (out [][]string) {
	var words []string
	word, quote, some, silent := "", rune(0), false, false
	end := func() {
		if some && !silent {
			words = append(words, word)
		}
		word, some = "", false
	}
	next := func() {
		end()
		if len(words) > 0 {
			out = append(out, words)
		}
		words, silent = nil, false
	}
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word += string(c)
		case c == '\'' || c == '"':
			quote, some = c, true
		case c == ' ' || c == '\t':
			end()
		case c == '#' && !some:
			next()
			return out
		case c == '|' || c == '>' || c == '<':
			if word == "1" || word == "2" {
				some = false // a descriptor
			}
			end()
			silent = true
		case c == '&' || c == ';':
			next()
		default:
			word, some = word+string(c), true
		}
	}
	next()
	return out
}

// workshop is a folder as a fresh clone's root looks to examples: samples and test data, and room for what they write.
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
const repository = "../.."

// check says what is wrong with an example without running it; with values, flags' values are read too.
func (e *example) check(values bool) (*cobra.Command, error) {
	root := (&app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}).newRoot()
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

// run runs an example, shortened, after what it takes for granted.
func (w *workshop) run(e example) {
	w.t.Helper()
	cmd, err := e.check(true)
	if err != nil {
		w.t.Errorf("%s: %s: %v", e.where, e.line, err)
		return
	}
	if d := cmd.Flags().Lookup("device"); d != nil && strings.HasPrefix(d.Value.String(), "cuda") {
		return // needs a card
	}
	args := slices.Clone(e.words)
	if rule, ok := shortenings[cmd.CommandPath()]; ok {
		if args, err = rule(w, cmd, args); err != nil {
			w.t.Errorf("%s: %s: %v", e.where, e.line, err)
			return
		}
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	var stdout, stderr bytes.Buffer
	if code := execute(ctx, args, &stdout, &stderr); code != exitDone {
		w.t.Errorf("%s: %s\nas haul %s: exit %d, %s", e.where, e.line, strings.Join(args, " "), code, stderr.String())
	}
}

// flagOf is a flag's value in an example that was checked; "" where it has none.
func flagOf(cmd *cobra.Command, name string) string {
	if f := cmd.Flags().Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// shortenings make examples quick, by the command's path: they append flags, of which the last counts, and make what a run before would have
// left. What has none runs as it stands.
var shortenings map[string]func(w *workshop, cmd *cobra.Command, args []string) ([]string, error)

func init() { // the rules of runs call each other
	shortenings = map[string]func(w *workshop, cmd *cobra.Command, args []string) ([]string, error){
		"haul train":         shortTrain,
		"haul eval":          shortEval,
		"haul data darkroom": shortHistories,
		"haul profile":       shortStep("--steps", "2"),
		"haul bench step":    shortStep("--rounds", "2"),
		"haul bench cost":    appended("--rounds", "3"),
		"haul bench matmul":  appended("--rounds", "1"),
		"haul gen":           appended("--count", "2"),
		"haul solve":         shortSolve,
		"haul lab run":       shortLab,
	}
}

// appended adds a flag, where the command has it.
func appended(name, value string) func(*workshop, *cobra.Command, []string) ([]string, error) {
	return func(_ *workshop, cmd *cobra.Command, args []string) ([]string, error) {
		if cmd.Flags().Lookup(strings.TrimPrefix(name, "--")) == nil {
			return args, nil
		}
		return append(args, name, value), nil
	}
}

// smallSettings are those of a run that takes a fraction of a second.
func smallSettings(recipe string) (args []string) {
	sets := map[string][]string{
		config.RecipeGT: {"problem.num_customers=5", "training.num_batches_per_epoch=2", "training.batch_size=8", "training.validation_instances=20",
			"training.validation_frequency=1", "model.hidden_dim=16", "model.num_heads=2", "model.num_layers=1", "baseline.starts=0", "baseline.eval_batches=1"},
		config.RecipeAD: {"compress_interval=16", "compress_min=8", "n_transit=40", "tf_n_embd=16", "tf_n_layer=1", "tf_n_head=2", "train_batch_size=8",
			"num_warmup_steps=1", "train_n_stream=4", "train_source_timesteps=240", "test_batch_size=8", "eval_agents=2", "eval_episodes=3", "num_workers=1"},
		config.RecipePPO: {"grid_size=3", "goal=0", "horizon=8", "n_stream=4", "n_steps=40", "n_epochs=1", "batch_size=40"},
	}
	for _, set := range sets[recipe] {
		args = append(args, "--set", set)
	}
	return args
}

// recipeOf is whose settings an example names.
func recipeOf(cmd *cobra.Command) (string, error) {
	if m := flagOf(cmd, "model"); m != "" {
		return m, nil
	}
	return config.Recipe(flagOf(cmd, "config"))
}

func shortTrain(w *workshop, cmd *cobra.Command, args []string) ([]string, error) {
	if dir := flagOf(cmd, "resume"); dir != "" {
		return append(args, "--device", "cpu", "--epochs", "2"), w.trained(dir)
	}
	recipe, err := recipeOf(cmd)
	if err != nil {
		return nil, err
	}
	args = append(append(args, "--device", "cpu"), smallSettings(recipe)...)
	switch recipe {
	case config.RecipeGT:
		return append(args, "--epochs", "1"), nil
	case config.RecipeAD:
		args = append(args, "--iterations", "2")
		if !cmd.Flags().Changed("history") {
			return args, w.histories()
		}
		return args, nil
	}
	return append(args, "--iterations", "1"), nil
}

func shortEval(w *workshop, cmd *cobra.Command, args []string) ([]string, error) {
	path := flagOf(cmd, "checkpoint")
	if err := w.trained(path); err != nil {
		return nil, err
	}
	_, ck, err := checkpointOf(path)
	if err != nil {
		return nil, err
	}
	args = append(args, "--device", "cpu")
	switch ck.Settings.Recipe() {
	case config.RecipeGT:
		return append(args, "--count", "10"), nil
	case config.RecipeAD:
		return append(args, "--episodes", "2", "--agents", "2"), nil
	}
	return args, nil
}

func shortHistories(_ *workshop, _ *cobra.Command, args []string) ([]string, error) {
	for _, set := range []string{"grid_size=3", "horizon=8", "n_steps=40", "n_epochs=1"} {
		args = append(args, "--set", set)
	}
	return append(args, "--streams", "4", "--steps", "960", "--force"), nil
}

// shortStep is for verbs that measure a step.
func shortStep(name, value string) func(*workshop, *cobra.Command, []string) ([]string, error) {
	return func(_ *workshop, cmd *cobra.Command, args []string) ([]string, error) {
		recipe, err := recipeOf(cmd)
		return append(append(args, name, value), smallSettings(recipe)...), err
	}
}

func shortSolve(w *workshop, cmd *cobra.Command, args []string) ([]string, error) {
	if path := flagOf(cmd, "checkpoint"); path != "" {
		if err := w.trained(path); err != nil {
			return nil, err
		}
	}
	if len(cmd.Flags().Args()) > 0 {
		return args, nil
	}
	return append(args, "--count", "3"), nil
}

// shortLab runs an experiment that only computes: the one that is named takes its time on purpose.
func shortLab(_ *workshop, cmd *cobra.Command, args []string) ([]string, error) {
	name := cmd.Flags().Arg(0)
	if name != "all" {
		if _, err := lab.Find(name); err != nil {
			return nil, err
		}
	}
	args[slices.Index(args, name)] = "arithmetic-001"
	return args, nil
}

var numberedRun = regexp.MustCompile(`^(.+)-\d{3}$`)

// trained makes a run folder that an example takes for granted: runs/NAME-001 is what haul train --config NAME leaves.
func (w *workshop) trained(path string) error {
	if filepath.Ext(path) == ".safetensors" {
		path = filepath.Dir(path)
	}
	if _, err := os.Stat(filepath.Join(path, run.LastName)); err == nil {
		return nil
	}
	name := numberedRun.FindStringSubmatch(filepath.Base(path))
	if name == nil || !slices.Contains(config.Names(""), name[1]) {
		return fmt.Errorf("nothing makes %s: an example before it must, or it must be called as a run of shipped settings is", path)
	}
	recipe, err := config.Recipe(name[1])
	if err != nil {
		return err
	}
	w.t.Logf("making %s", path)
	w.run(example{"what is taken for granted", path, []string{"train", "--model", recipe, "--config", name[1], "--out", path}})
	return nil
}

// histories makes those that are looked for where none are named.
func (w *workshop) histories() error {
	if _, err := os.Stat("data/darkroom.hist"); err == nil {
		return nil
	}
	w.run(example{"what is taken for granted", "data/darkroom.hist", []string{"data", "darkroom"}})
	return nil
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
	all := helpExamples((&app{}).newRoot())
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

func TestShellOfExamples(t *testing.T) {
	for line, want := range map[string]string{
		`haul train --set a=b   # words`:                   "train|--set|a=b",
		`$ go run ./cmd/haul solve 'a b.vrp' --out "x"`:    "solve|a b.vrp|--out|x",
		`haul solve --json 2>/dev/null`:                    "solve|--json",
		`haul version --json | jq .go`:                     "version|--json",
		`OUT=1 haul gen --count 2 && haul solve x.vrp; ls`: "gen|--count|2 / solve|x.vrp",
		`ls haul`:  "",
		`# haul x`: "",
	} {
		var got []string
		for _, e := range commands("here", line) {
			got = append(got, strings.Join(e.words, "|"))
		}
		if joined := strings.Join(got, " / "); joined != want {
			t.Errorf("%s: %q, want %q", line, joined, want)
		}
	}
}
