// Package agent is the recipe AD that trains in-context agents: algorithm distillation with
// compressed context. A causal transformer is trained on the learning histories of other agents. It
// then learns unseen goals from its own context, with fixed weights.
//
// Training sequences and the contexts of acting agents follow the same rules (kernel.RegionSpec,
// context.go).
package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/report"
	"haul/internal/run"
	"haul/internal/world/history"
)

// Name is the name of the recipe.
const Name = config.RecipeAD

// HistoryFile is the default path of the learning histories.
const HistoryFile = "data/darkroom.hist"

// Places that hold the learning histories during training.
const (
	DataAuto   = "auto"   // on the device if they fit into its memory
	DataDevice = "device" // the step draws its rows itself, without copies from the host
	DataHost   = "host"   // the loader prepares rows ahead of the step
)

// Recipe trains in-context agents.
type Recipe struct{}

var about = run.About{
	Name:   Name,
	Trains: "an in-context agent",
	Train: `an in-context agent, trained on the learning histories of a file (--history) that haul data makes. It is tested on held-out
goals: by its loss on their histories, and by the returns of the episodes that it plays there.`,
	Eval: `many agents play episodes on held-out goals (--goals). The weights stay fixed: agents learn only inside their contexts. The
report has the return of each episode, beside the return of the learner that made the histories and the optimum. --tune chooses the
temperature on the goals that the run kept for validation (validation_goals); those held out choose nothing. --plot draws the returns, and
in a second picture, NAME-episodes, the walk of a first and of a last episode.`,
	Config:        config.DefaultAD,
	Unit:          "iteration",
	Length:        "train_timesteps",
	Seed:          "seed",
	Batch:         "train_batch_size",
	ShapelessKeys: []string{"tf_n_head"},
	Rows: func(s config.Settings) int {
		c := s.(*config.AD)
		return c.TrainBatchSize * c.GradientAccumulationSteps
	},
	Use:     run.LastName,
	UseBest: func(s config.Settings) bool { return s.(*config.AD).ValidationGoals > 0 },
	Flags: []run.Flag{
		{Name: "history", Default: HistoryFile, Usage: "file of learning histories, made by haul data; a resumed run remembers its own"},
		{Name: "data", Default: DataAuto, Usage: "where histories are kept: device (no copies per step), host (a loader feeds the device), or auto (device if they fit)", Check: checkData},
	},
	EvalFlags: []run.Flag{
		{Name: "history", Default: "", Usage: "file of learning histories that gives the goals, their split and the learners' curves (default: the run's own)"},
		{Name: "goals", Default: "held-out", Usage: "goals to play on: held-out, validation (if the run kept some), train or all", Check: checkGoals},
		{Name: "episodes", Default: 0, Usage: "episodes per agent (default: eval_episodes)", Check: atLeastOne("episodes")},
		{Name: "agents", Default: 0, Usage: "agents per goal (default: eval_agents)", Check: atLeastOne("agents")},
		{Name: "temperature", Default: 0.0, Usage: "sampling temperature of actions; 0 takes the most likely action (default: eval_temperature)", Check: checkTemperature},
		{Name: "search", Default: 0.0, Usage: "sampling temperature while an agent's context holds no reward yet (default: --temperature, without it eval_search)", Check: checkSearch},
		{Name: "tune", Default: "", Usage: "temperatures to try on the validation goals; the best is used. 0.5,0.7:1 tries 0.5, and 0.7 with --search 1 (default: eval_tune)", Check: checkTune},
	},
}

// About describes the recipe.
func (Recipe) About() *run.About { return &about }

// Length returns the number of iterations.
func (Recipe) Length(s config.Settings) int { return s.(*config.AD).TrainTimesteps }

// Lengthen returns the settings with n iterations. The schedule ends with the last one.
func (Recipe) Lengthen(s config.Settings, n int) config.Settings {
	own := *s.(*config.AD)
	own.TrainTimesteps = n
	return &own
}

// Merge lets a resumed run change settings that no weight depends on, and the number of iterations,
// to whose end the schedule then runs.
func (Recipe) Merge(file, now config.Settings) config.Settings {
	a, b := *file.(*config.AD), now.(*config.AD)
	a.TrainTimesteps = b.TrainTimesteps
	a.NumWorkers, a.Prefetch = b.NumWorkers, b.Prefetch
	a.SummaryInterval, a.EvalInterval, a.GenInterval, a.CkptInterval = b.SummaryInterval, b.EvalInterval, b.GenInterval, b.CkptInterval
	a.TestBatchSize = b.TestBatchSize
	a.EvalEpisodes, a.EvalAgents, a.EvalTemperature = b.EvalEpisodes, b.EvalAgents, b.EvalTemperature
	a.EvalSearch, a.EvalTune = b.EvalSearch, b.EvalTune
	return &a
}

// Precision returns bf16 for mixed precision, otherwise fp32.
func (Recipe) Precision(s config.Settings) string {
	if s.(*config.AD).MixedPrecision == config.PrecisionFull {
		return "fp32"
	}
	return "bf16"
}

// Step compiles the training step on random transitions instead of learning histories.
func (Recipe) Step(dev kernel.Device, s config.Settings) (*run.Step, error) {
	return CompileStep(dev, s.(*config.AD), nil)
}

// Open opens the learning histories.
func (Recipe) Open(s config.Settings, f run.Flags, last *run.Checkpoint) (run.Task, error) {
	if err := checkData(f); err != nil {
		return nil, err
	}
	var at state
	if last != nil {
		if err := last.State(&at); err != nil {
			return nil, err
		}
	}
	h, path, err := at.history(f, s.(*config.AD))
	if err != nil {
		return nil, err
	}
	if err := Check(h, s.(*config.AD)); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return &Task{History: h, Data: f.String("data"), Path: path}, nil
}

// history opens the learning histories that the flags name, or whose path the run stores, or at the
// default path. The returned path is absolute.
func (at *state) history(f run.Flags, c *config.AD) (history.History, string, error) {
	path, remembered := f.String("history"), false
	switch {
	case f.Changed("history"):
	case at.Path != "":
		path, remembered = at.Path, true
	default:
		path = HistoryFile
	}
	h, err := history.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && remembered:
		err = fmt.Errorf("the learning histories of this run are gone from %s: say with --history where they are (checksum %s)", path, at.Histories)
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("no learning histories at %s: make them with haul data %s --out %s", path, makerOf(c), path)
	}
	if err != nil {
		return nil, "", err
	}
	if whole, err := filepath.Abs(path); err == nil { // otherwise the path stays relative
		path = whole
	}
	return h, path, nil
}

// makerOf returns the command line of haul data that makes histories for these settings.
func makerOf(c *config.AD) string {
	switch c.Name {
	case "ad_xland":
		return "xland --learner search"
	case "ad_tabular":
		return "tabular DR9-70-5"
	case "ad_any":
		return "import FILE"
	case "ad_keydoor":
		return "keydoor"
	}
	return "darkroom"
}

// Task is a run with open histories.
type Task struct {
	History history.History
	Data    string // one of the Data constants; "" is DataAuto
	Path    string // absolute path of the histories; checkpoints store it
}

// Trainer compiles the run.
func (t *Task) Trainer(s *run.Setup) (run.Trainer, error) { return newTrainer(s, t) }

// Close closes the histories.
func (t *Task) Close() error { return t.History.Close() }

// tables returns the tables that a run writes.
func tables() []report.Table {
	return []report.Table{
		{Kind: "train", File: "csv/history_ad.csv", Row: new(Report)},
		{Kind: "test", File: "csv/test_ad.csv", Row: new(Test)},
		{Kind: "in_context", File: "csv/in_context_ad.csv", Row: new(Evaluation)},
	}
}

// Evaluate runs agents that learn goals in their contexts.
func (Recipe) Evaluate(ctx context.Context, e *run.Evaluation) (run.Result, error) {
	return evaluate(ctx, e)
}
