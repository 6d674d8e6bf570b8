// Package routing is the recipe GT+RL: a graph transformer that builds vehicle routes, trained by policy gradient (REINFORCE)
// with a baseline, validated against the optimum.
//
// What a reader could break: the validator judges every route that is reported, outside the step and by code that the step does not share.
package routing

import (
	"context"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/report"
	"haul/internal/run"
)

// Name is the recipe's.
const Name = config.RecipeGT

// Recipe trains routing policies.
type Recipe struct{}

var about = run.About{
	Name:   Name,
	Trains: "a routing policy",
	Train: `a routing policy by policy gradient, tested against the optimum, or against a search past 12 customers. Without flags the
shipped settings "quick" run: about a minute on two cores.`,
	Eval: `route test instances with a trained policy and report cost per customer (CPC) and the gap, each route against its own
instance's optimum, or against a search past 12 customers. The validator judges every route that counts.
The instances are of the kind the policy was trained on, from a stream that neither trained it nor picked it;
--seed draws others. References are solved once and cached. --plot draws the first instance by policy and reference.`,
	Config: config.DefaultName,
	Unit:   "epoch",
	Length: "training.num_epochs",
	Seed:   "experiment.random_seed",
	Use:    run.BestName,
	Judging: []run.Flag{
		{Name: "decode", Default: "greedy", Usage: "greedy, sample:K, pomo (a route from every customer), pomo8 (and under 8 symmetries)"},
		{Name: "count", Default: 10000, Usage: "number of instances"},
	},
}

// About presents the recipe.
func (Recipe) About() *run.About { return &about }

// Length is the epochs.
func (Recipe) Length(s config.Settings) int { return s.(*config.Config).Training.NumEpochs }

// Lengthen sets the epochs.
func (Recipe) Lengthen(s config.Settings, n int) config.Settings {
	own := *s.(*config.Config)
	own.Training.NumEpochs = n
	return &own
}

// Loosen lets the number of epochs change: the schedules then aim for the new end.
func (r Recipe) Loosen(file, now config.Settings) config.Settings {
	return r.Lengthen(file, r.Length(now))
}

// Precision leaves it to the device.
func (Recipe) Precision(config.Settings) string { return "" }

// Step compiles the training step.
func (Recipe) Step(dev kernel.Device, s config.Settings) (*run.Step, error) {
	return CompileStep(dev, s.(*config.Config))
}

// Open has nothing to open: instances are drawn.
func (Recipe) Open(config.Settings, run.Flags, *run.Checkpoint) (run.Task, error) { return task{}, nil }

type task struct{}

func (task) Trainer(s *run.Setup) (run.Trainer, error) { return newTrainer(s) }
func (task) Close() error                              { return nil }

// tables of a run.
func tables() []report.Table {
	return []report.Table{{Kind: "epoch", File: historyName, Row: new(Epoch)}}
}

// Evaluate routes test instances.
func (Recipe) Evaluate(ctx context.Context, e *run.Evaluation) (run.Result, error) {
	return evaluate(ctx, e)
}
