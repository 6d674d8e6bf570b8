// Package routing is the recipe that trains routing policies: networks that build vehicle routes.
// It trains by policy gradient (REINFORCE) with a baseline and validates against optimal or
// searched routes. GT+RL has a graph transformer as encoder, GAT+RL a graph attention network.
//
// The validator checks every reported route, outside the step and without sharing code with it.
package routing

import (
	"context"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/policy"
	"haul/internal/report"
	"haul/internal/run"
	"haul/internal/vrp/testset"
)

// Recipe trains routing policies.
type Recipe struct {
	// Whether the encoder is a graph attention network (GAT+RL) instead of a graph transformer
	// (GT+RL).
	GAT bool
}

var about = run.About{
	Name:   config.RecipeGT,
	Trains: "a routing policy",
	Train: `a routing policy (graph transformer), trained by policy gradient. Without flags the shipped settings "quick" are used, which take
about a minute on two cores. The policy is tested against the exact optimum up to 12 customers, and against a search above that.`,
	Eval: `the policy routes test instances. The report has the cost per customer (CPC) and the gap: how much longer the routes are than
the reference, instance by instance. The reference is the exact optimum up to 12 customers, and a search above that; references
are solved once and cached. A validator checks every route. The instances resemble those of training, but were used neither for
training nor for choosing a checkpoint; --seed draws others. With SET, a public set or a file, those are routed; their references come
from the file or from --reference. --plot draws the first instance, routed by the policy and by the
reference.`,
	Config:        config.DefaultName,
	Unit:          "epoch",
	Length:        "training.num_epochs",
	Seed:          "experiment.random_seed",
	Batch:         keyBatch,
	ShapeKeys:     []string{"model.hidden_dim", "model.num_layers", "model.feedforward_multiplier", "model.pointer_pairs"},
	ShapelessKeys: []string{"model.pointer_distance", "model.start_views"},
	Grows: func(from, to config.Settings) (map[string]int, string) {
		return policy.Grows(from.(*config.Config), to.(*config.Config))
	},
	Rows: func(s config.Settings) int { return s.(*config.Config).Training.BatchSize },
	Use:  run.BestName,
	EvalFlags: []run.Flag{
		{Name: "decode", Default: "greedy", Usage: policy.DecodeUsage,
			Check: func(f run.Flags) error { _, err := policy.ParseDecode(f.String("decode")); return err }},
		{Name: "count", Default: 10000, Usage: "number of instances; of a public set or a file the first ones (default there: all; of a method 1000)", Check: checkCount},
		{Name: "instances", Default: "", Usage: "route the instances of this file: " + testset.Formats, Check: checkSet},
		{Name: "reference", Default: "", Usage: "file of costs to compare with: .npz, .pkl, .csv (column reference or cost), or one number per line"},
		{Name: "testset", Default: "", Usage: "route a public test set: kool (--customers 10, 20, 50 or 100; also 200, 500 and 1000 from its generator) or routefinder (50 or 100)", Check: checkSet},
		{Name: "variant", Default: "cvrp", Usage: "variant of --testset routefinder: cvrp, ovrp, vrptw, ...; all prints a table of every variant that the policy has learned", Check: checkSet},
		{Name: "first", Default: 0, Usage: "index of the first instance of a set, from 0", Check: checkSet},
		{Name: "customers", Default: 0, Usage: "customers per instance, drawn as in training (default: as there; of a range the largest)"},
		{Name: "split", Default: testset.Test, Usage: "which part of --testset kool: test or validation", Check: checkSet},
		{Name: "distance", Default: "rounded", Usage: "distances of .vrp files: rounded to integers as in CVRPLIB, or exact", Check: checkSet},
		{Name: "time", Default: "", Usage: "with SET: sample more routes (eas: iterate) until this wall time is over, for example 60s; of a search, per instance", Check: checkSet},
		{Name: "out", Default: "", Usage: "with SET: folder for costs.csv and a .sol file per instance"},
	},
}

// aboutGAT describes GAT+RL.
var aboutGAT = func() run.About {
	a := about
	a.Name, a.Trains, a.Config = config.RecipeGAT, "one with a graph attention encoder", config.DefaultGAT
	a.Train = `the same with a graph attention network in place of the graph transformer; its settings are those of model_gat and gat_training.`
	a.Eval = `as GT+RL.`
	a.ShapeKeys = []string{"model_gat.gat_hidden_dim", "model_gat.gat_layers", "model_gat.gat_edge_dim", "model.feedforward_multiplier", "model.pointer_pairs"}
	a.ShapelessKeys = append([]string{"model_gat.gat_negative_slope"}, about.ShapelessKeys...)
	return a
}()

// About describes the recipe.
func (r Recipe) About() *run.About {
	if r.GAT {
		return &aboutGAT
	}
	return &about
}

// Length returns the number of epochs.
func (Recipe) Length(s config.Settings) int { return s.(*config.Config).Training.NumEpochs }

// Lengthen returns the settings with n epochs.
func (Recipe) Lengthen(s config.Settings, n int) config.Settings {
	own := *s.(*config.Config)
	own.Training.NumEpochs = n
	return &own
}

// Merge lets a resumed run change the number of epochs, to whose end the schedules then run, and
// the settings of validation, which do not change the weights.
func (r Recipe) Merge(file, now config.Settings) config.Settings {
	own := *r.Lengthen(file, r.Length(now)).(*config.Config)
	own.Training.ValidationDecode = now.(*config.Config).Training.ValidationDecode
	return &own
}

// Adopt keeps the number of parts that the run has found, unless the settings name another.
func (Recipe) Adopt(file, now config.Settings) config.Settings {
	own := *now.(*config.Config)
	if own.Training.GradientParts == 0 {
		own.Training.GradientParts = file.(*config.Config).Training.GradientParts
	}
	return &own
}

// Precision returns "", so that the device chooses.
func (Recipe) Precision(config.Settings) string { return "" }

// Step compiles the training step.
func (Recipe) Step(dev kernel.Device, s config.Settings) (*run.Step, error) {
	return CompileStep(dev, s.(*config.Config))
}

// Open returns a task that needs no data, because instances are drawn.
func (Recipe) Open(config.Settings, run.Flags, *run.Checkpoint) (run.Task, error) { return task{}, nil }

type task struct{}

func (task) Trainer(s *run.Setup) (run.Trainer, error) { return newTrainer(s) }
func (task) Close() error                              { return nil }

// tables returns the tables that a run writes.
func tables(c *config.Config) []report.Table {
	all := []report.Table{{Kind: "epoch", File: historyOf(c), Row: new(Epoch)}}
	if len(ends(c)) > 1 {
		all = append(all, report.Table{Kind: "size", File: sizesName, Row: new(Size)})
	}
	return all
}

// Evaluate routes test instances.
func (Recipe) Evaluate(ctx context.Context, e *run.Evaluation) (run.Result, error) {
	return evaluate(ctx, e)
}
