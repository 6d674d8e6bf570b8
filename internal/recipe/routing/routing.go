// Package routing is the recipe of routing policies: a network that builds vehicle routes, trained
// by policy gradient (REINFORCE) with a baseline, validated against the optimum. GT+RL has a graph
// transformer for its encoder, GAT+RL a graph attention network.
//
// What a reader could break: the validator judges every route that is reported, outside the step
// and by code that the step does not share.
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
	// GAT: with a graph attention network, as GAT+RL; else with a graph transformer, as GT+RL
	GAT bool
}

var about = run.About{
	Name:   config.RecipeGT,
	Trains: "a routing policy",
	Train: `a routing policy by policy gradient, tested against the optimum, or against a search past 12 customers. Without flags the
shipped settings "quick" run: about a minute on two cores.`,
	Eval: `route test instances with a trained policy and report cost per customer (CPC) and the gap, each route against its own
instance's optimum, or against a search past 12 customers. The validator judges every route that counts.
The instances are of the kind the policy was trained on, from a stream that neither trained it nor picked it;
--seed draws others. References are solved once and cached. --plot draws the first instance by policy and reference.
With --instances or --testset the policy routes the instances of a file or of a public test set instead, and is compared with the
costs that the file brings or that --reference gives.`,
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
		{Name: "count", Default: 10000, Usage: "number of instances; of a file or a test set the first so many, all where not said", Check: checkCount},
		{Name: "instances", Default: "", Usage: "route these: " + testset.Formats, Check: checkSet},
		{Name: "reference", Default: "", Usage: "costs to compare with: .npz, .pkl, .csv (column reference or cost), or a number per line"},
		{Name: "testset", Default: "", Usage: "route a public test set: kool, with --customers 10, 20, 50 or 100 (200, 500 and 1000 by its generator), or routefinder, with 50 or 100", Check: checkSet},
		{Name: "variant", Default: "cvrp", Usage: "which of RouteFinder's problems: cvrp, ovrp, vrptw, ...; all: a table of every one that the policy has learned", Check: checkSet},
		{Name: "first", Default: 0, Usage: "of a file or a test set: number of the first instance, from 0", Check: checkSet},
		{Name: "customers", Default: 0, Usage: "customers of the instances that are drawn, or which of the public sets (default: the size that the policy was trained on, of a range the largest)"},
		{Name: "split", Default: testset.Test, Usage: "which of Kool's sets: test or validation", Check: checkSet},
		{Name: "distance", Default: "rounded", Usage: "distances of .vrp files: rounded as CVRPLIB does, or exact", Check: checkSet},
		{Name: "time", Default: "", Usage: "of a set: decode, then sample more routes (by eas: iterate) until this wall time is over, for example 60s", Check: checkSet},
		{Name: "out", Default: "", Usage: "of a set: a folder for costs.csv and the routes of each instance as .sol"},
	},
}

// aboutGAT is about for GAT+RL.
var aboutGAT = func() run.About {
	a := about
	a.Name, a.Trains, a.Config = config.RecipeGAT, "one with a graph attention encoder", config.DefaultGAT
	a.Train = `the same with a graph attention network in place of the graph transformer; its settings are those of model_gat and gat_training.`
	a.Eval = `as GT+RL.`
	a.ShapeKeys = []string{"model_gat.gat_hidden_dim", "model_gat.gat_layers", "model_gat.gat_edge_dim", "model.feedforward_multiplier", "model.pointer_pairs"}
	a.ShapelessKeys = append([]string{"model_gat.gat_negative_slope"}, about.ShapelessKeys...)
	return a
}()

// About presents the recipe.
func (r Recipe) About() *run.About {
	if r.GAT {
		return &aboutGAT
	}
	return &about
}

// Length is the epochs.
func (Recipe) Length(s config.Settings) int { return s.(*config.Config).Training.NumEpochs }

// Lengthen sets the epochs.
func (Recipe) Lengthen(s config.Settings, n int) config.Settings {
	own := *s.(*config.Config)
	own.Training.NumEpochs = n
	return &own
}

// Merge lets the number of epochs change, for whose end the schedules then aim, and how validation
// routes, which no weight depends on.
func (r Recipe) Merge(file, now config.Settings) config.Settings {
	own := *r.Lengthen(file, r.Length(now)).(*config.Config)
	own.Training.ValidationDecode = now.(*config.Config).Training.ValidationDecode
	return &own
}

// Adopt takes over the parts of a step that the run has found, unless others are asked for.
func (Recipe) Adopt(file, now config.Settings) config.Settings {
	own := *now.(*config.Config)
	if own.Training.GradientParts == 0 {
		own.Training.GradientParts = file.(*config.Config).Training.GradientParts
	}
	return &own
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
