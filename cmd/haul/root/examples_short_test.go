package root_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/config"
	"haul/internal/lab"
	"haul/internal/run"
)

// flagOf is a flag's value in an example that was checked; "" where it has none.
func flagOf(cmd *cobra.Command, name string) string {
	if f := cmd.Flags().Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// shortenings make examples quick, by the command's path: they append flags, of which the last
// counts, and make what a run before would have left. What has none runs as it stands.
var shortenings map[string]func(w *workshop, cmd *cobra.Command, args []string) ([]string, error)

func init() { // the rules of runs call each other
	shortenings = map[string]func(w *workshop, cmd *cobra.Command, args []string) ([]string, error){
		"haul train":         shortTrain,
		"haul eval":          shortEval,
		"haul act":           shortAct,
		"haul policies pack": shortPack,
		"haul data darkroom": shortHistories,
		"haul data keydoor":  shortHistories,
		"haul data xland":    shortXLand,
		"haul bench xland":   appended("--rounds", "1", "--envs", "8", "--steps", "4"),
		"haul profile":       shortStep("--steps", "2"),
		"haul bench step":    shortStep("--rounds", "2"),
		"haul bench worlds":  shortWorlds,
		"haul bench cost":    appended("--rounds", "3"),
		"haul bench matmul":  appended("--rounds", "1", "--workers", "1"),
		"haul gen":           appended("--count", "2"),
		"haul solve":         shortSolve,
		"haul check":         withRoutes,
		"haul convert":       withRoutes,
		"haul lab run":       shortLab,
		"haul serve":         appended("--addr", "127.0.0.1:0", "--open=false"),
	}
}

// appended adds a flag, and what goes with it, where the command has it.
func appended(name string, values ...string) func(*workshop, *cobra.Command, []string) ([]string, error) {
	return func(_ *workshop, cmd *cobra.Command, args []string) ([]string, error) {
		if cmd.Flags().Lookup(strings.TrimPrefix(name, "--")) == nil {
			return args, nil
		}
		return append(append(args, name), values...), nil
	}
}

// smallSettings are those of a run that takes a fraction of a second.
func smallSettings(recipe string) (args []string) {
	sets := map[string][]string{
		config.RecipeGT: {"problem.num_customers=5", "training.num_batches_per_epoch=2", "training.batch_size=240", "training.validation_instances=20",
			"training.validation_frequency=1", "model.hidden_dim=16", "model.num_heads=2", "model.num_layers=1", "baseline.starts=0", "baseline.eval_batches=1"},
		config.RecipeAD: {"compress_interval=16", "compress_min=8", "n_transit=40", "tf_n_embd=16", "tf_n_layer=1", "tf_n_head=2", "train_batch_size=8",
			"num_warmup_steps=1", "train_n_stream=4", "train_source_timesteps=240", "test_batch_size=8", "eval_agents=2", "eval_episodes=3", "num_workers=1",
			"validation_goals=2"},
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
	small := smallSettings(recipe)
	if flagOf(cmd, "from") != "" { // the network is that of the weights
		small = slices.DeleteFunc(small, func(s string) bool { return strings.HasPrefix(s, "model.") })
		small = slices.DeleteFunc(small, func(s string) bool { return s == "--set" })
		for i := len(small); i > 0; i-- {
			small = slices.Insert(small, i-1, "--set")
		}
	}
	args = append(append(args, "--device", "cpu"), small...)
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

// shortPack makes the run that is packed.
func shortPack(w *workshop, cmd *cobra.Command, args []string) ([]string, error) {
	return args, w.trained(cmd.Flags().Arg(0))
}

func shortEval(w *workshop, cmd *cobra.Command, args []string) ([]string, error) {
	if flagOf(cmd, "policy") != "" {
		return append(args, "--device", "cpu", "--count", "4"), nil
	}
	path := flagOf(cmd, "checkpoint")
	if path == "" { // a method
		if cmd.Flags().Changed("time") {
			args = append(args, "--time", "50ms")
		}
		return append(args, "--count", "3"), nil
	}
	if err := w.trained(path); err != nil {
		return nil, err
	}
	_, ck, err := cli.CheckpointOf(path)
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

// shortXLand lets few learners live, for a few episodes.
func shortXLand(_ *workshop, cmd *cobra.Command, args []string) ([]string, error) {
	length := []string{"--episodes", "20"}
	switch flagOf(cmd, "learner") {
	case "search":
		length = []string{"--steps", "60"}
	case "ppo":
		length = []string{"--steps", "60", "--envs", "5", "--rollout", "8"}
	}
	return append(append(args, length...), "--learn", "5", "--held", "2", "--horizon", "12", "--force"), nil
}

// shortWorlds takes the set and the seeds of the example and hardly trains.
func shortWorlds(_ *workshop, _ *cobra.Command, args []string) ([]string, error) {
	for _, set := range []string{"tf_n_embd=16", "tf_n_layer=1", "tf_n_head=2", "train_batch_size=8", "num_warmup_steps=1", "test_batch_size=8", "eval_agents=1", "eval_episodes=2",
		"num_workers=1", "validation_goals=2"} {
		args = append(args, "--set", set)
	}
	return append(args, "--device", "cpu", "--iterations", "2", "--context", "24"), nil
}

// shortAct makes the run whose agents act; nothing is on standard input.
func shortAct(w *workshop, cmd *cobra.Command, args []string) ([]string, error) {
	return append(args, "--device", "cpu"), w.trained(flagOf(cmd, "checkpoint"))
}

func shortHistories(_ *workshop, _ *cobra.Command, args []string) ([]string, error) {
	for _, set := range []string{"grid_size=3", "horizon=8", "n_goal=9", "n_steps=40", "n_epochs=1", "batch_size=40"} {
		args = append(args, "--set", set)
	}
	return append(args, "--streams", "4", "--steps", "960", "--force"), nil
}

// shortStep is for verbs that measure a step.
func shortStep(name, value string) func(*workshop, *cobra.Command, []string) ([]string, error) {
	return func(_ *workshop, cmd *cobra.Command, args []string) ([]string, error) {
		recipe, err := recipeOf(cmd)
		args = append(append(args, name, value), smallSettings(recipe)...)
		if recipe == config.RecipeGT {
			args = append(args, "--set", "training.batch_size=24")
		}
		return args, err
	}
}

func shortSolve(w *workshop, cmd *cobra.Command, args []string) ([]string, error) {
	if path := flagOf(cmd, "policy"); strings.ContainsRune(path, '/') {
		if err := w.trained(path); err != nil {
			return nil, err
		}
	}
	chosen := func(name string) bool { return cmd.Flags().Changed(name) }
	if chosen("time") || !slices.ContainsFunc([]string{"iterations", "method", "policy"}, chosen) {
		args = append(args, "--time", "50ms") // a search takes all the time that it is given, or else a second
	}
	return args, nil
}

// withRoutes makes the file of routes that an example reads.
func withRoutes(w *workshop, cmd *cobra.Command, args []string) ([]string, error) {
	path := cmd.Flags().Arg(1)
	if _, err := os.Stat(path); err == nil || path != "x.sol" {
		return args, nil
	}
	w.run(example{where: "what is taken for granted", line: path, words: []string{"solve", cmd.Flags().Arg(0), "--iterations", "20", "--out", path}})
	return args, nil
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

// trained makes a run folder that an example takes for granted: runs/NAME-001 is what haul train
// --config NAME leaves.
func (w *workshop) trained(path string) error {
	if filepath.Ext(path) == ".safetensors" {
		if _, err := os.Stat(path); err == nil {
			return nil // an example before it made it
		}
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
	w.run(example{where: "what is taken for granted", line: path, words: []string{"train", "--model", recipe, "--config", name[1], "--out", path}})
	return nil
}

// histories makes those that are looked for where none are named.
func (w *workshop) histories() error {
	if _, err := os.Stat("data/darkroom.hist"); err == nil {
		return nil
	}
	w.run(example{where: "what is taken for granted", line: "data/darkroom.hist", words: []string{"data", "darkroom"}})
	return nil
}
