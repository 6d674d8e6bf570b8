// Package ppo is the recipe that trains a learner on one goal of a dark room by proximal policy
// optimization (PPO). The learner is an actor and a critic that share two layers. MakeHistories
// trains such a learner on every goal to make the learning histories for the in-context agent.
//
// A run on one goal takes the same steps, with the same random numbers, as the learner of that goal
// in MakeHistories.
package ppo

import (
	"context"
	"errors"
	"fmt"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/report"
	"haul/internal/run"
	"haul/internal/world/grid"
)

// Name is the name of the recipe.
const Name = config.RecipePPO

// Recipe trains a learner on one goal.
type Recipe struct{}

var about = run.About{
	Name:   Name,
	Trains: "a learner of one goal",
	Train: `an actor and a critic, trained by proximal policy optimization (PPO) on one goal of Dark Room or Dark Key-to-Door. Learners like this
one make the histories that in-context agents are trained on. The setting goal chooses the goal; an iteration is one round of acting
and learning.`,
	Eval: `the expected return per episode, computed exactly from the policy's probabilities in every cell, and the return of its most
likely actions. --plot draws a walk by the most likely actions beside a sampled one.`,
	Config: config.DefaultPPO,
	Unit:   "iteration",
	Length: "total_source_timesteps (of all environments together)",
	Seed:   "alg_seed",
	Rows:   func(s config.Settings) int { return round(s.(*config.PPO)) },
	Use:    run.LastName,
}

// About describes the recipe.
func (Recipe) About() *run.About { return &about }

// round returns the number of steps between two updates, over all environments.
func round(c *config.PPO) int { return c.NSteps * c.NStream }

// Length returns the number of whole rounds in the configured steps. The steps that are left over
// are not taken.
func (Recipe) Length(s config.Settings) int {
	c := s.(*config.PPO)
	return c.TotalSourceTimesteps / round(c)
}

// Lengthen returns the settings with the number of steps of n rounds.
func (Recipe) Lengthen(s config.Settings, n int) config.Settings {
	own := *s.(*config.PPO)
	own.TotalSourceTimesteps = n * round(&own)
	return &own
}

// Merge lets a resumed run change the number of steps, and the settings that only histories use.
func (Recipe) Merge(file, now config.Settings) config.Settings {
	a, b := *file.(*config.PPO), now.(*config.PPO)
	a.TotalSourceTimesteps, a.NProcess = b.TotalSourceTimesteps, b.NProcess
	a.EnvSplitSeed, a.TrainEnvRatio = b.EnvSplitSeed, b.TrainEnvRatio
	return &a
}

// Precision returns "", so that the device chooses.
func (Recipe) Precision(config.Settings) string { return "" }

// Step compiles one update on a minibatch of zeros.
func (Recipe) Step(dev kernel.Device, s config.Settings) (*run.Step, error) {
	c := s.(*config.PPO)
	l, err := newLearner(dev, c, nil)
	if err != nil {
		return nil, err
	}
	if err := l.begin(goalOf(c)); err != nil {
		return nil, errors.Join(err, l.close())
	}
	rows := int64(c.BatchSize)
	return &run.Step{Runner: l.update, Stores: []kernel.Store{l.store}, Program: l.program, RateKey: "source_lr", Rows: "samples",
		Shape: fmt.Sprintf("%d samples per step", rows), Facts: map[string]any{"samples": rows},
		Work: func(m kernel.Metrics) int64 { return m.Steps * rows * l.flops() }}, l.table.Close()
}

// goalOf returns the goal that the settings choose for a run.
func goalOf(c *config.PPO) grid.Goal { return roomOf(c).Goals()[c.Goal] }

// roomOf returns the room of the settings. Package grid knows all kinds of the settings by name.
func roomOf(c *config.PPO) grid.Room {
	kind, err := grid.KindOf(c.Env)
	if err != nil {
		panic("ppo: " + err.Error())
	}
	return grid.Room{Size: c.GridSize, Horizon: c.Horizon, Kind: kind}
}

// Open returns a task that needs no data.
func (Recipe) Open(config.Settings, run.Flags, *run.Checkpoint) (run.Task, error) { return task{}, nil }

type task struct{}

func (task) Trainer(s *run.Setup) (run.Trainer, error) { return newTrainer(s) }
func (task) Close() error                              { return nil }

func tables() []report.Table {
	return []report.Table{{Kind: "iteration", File: "csv/history_ppo.csv", Row: new(Iteration)}}
}

// Evaluate computes the returns of a checkpoint's policy.
func (Recipe) Evaluate(ctx context.Context, e *run.Evaluation) (run.Result, error) {
	return evaluate(ctx, e)
}
