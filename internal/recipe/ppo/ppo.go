// Package ppo is the recipe PPO, proximal policy optimization on one goal of a dark room: an actor
// and a critic that share two layers, recorded once and replayed. The same learner, on every goal
// at once, makes the learning histories that the in-context agent is trained on (MakeHistories).
//
// What a reader could break: a run of one goal and that goal's part of the histories are the same
// learner, step for step. What either draws, the other draws.
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

// Name is the recipe's.
const Name = config.RecipePPO

// Recipe trains learners of one goal.
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

// About presents the recipe.
func (Recipe) About() *run.About { return &about }

// round is the steps that are gathered between two rounds of learning, in all environments.
func round(c *config.PPO) int { return c.NSteps * c.NStream }

// Length is the rounds of acting and learning. Steps that are left over teach nothing and are not
// taken here.
func (Recipe) Length(s config.Settings) int {
	c := s.(*config.PPO)
	return c.TotalSourceTimesteps / round(c)
}

// Lengthen sets the steps to those of n rounds.
func (Recipe) Lengthen(s config.Settings, n int) config.Settings {
	own := *s.(*config.PPO)
	own.TotalSourceTimesteps = n * round(&own)
	return &own
}

// Merge lets the number of steps change, and what only histories depend on.
func (Recipe) Merge(file, now config.Settings) config.Settings {
	a, b := *file.(*config.PPO), now.(*config.PPO)
	a.TotalSourceTimesteps, a.NProcess = b.TotalSourceTimesteps, b.NProcess
	a.EnvSplitSeed, a.TrainEnvRatio = b.EnvSplitSeed, b.TrainEnvRatio
	return &a
}

// Precision leaves it to the device.
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

// goalOf is what pays in a run of its own.
func goalOf(c *config.PPO) grid.Goal { return roomOf(c).Goals()[c.Goal] }

// roomOf is the room of the settings, which know its kinds by the same names.
func roomOf(c *config.PPO) grid.Room {
	kind, err := grid.KindOf(c.Env)
	if err != nil {
		panic("ppo: " + err.Error())
	}
	return grid.Room{Size: c.GridSize, Horizon: c.Horizon, Kind: kind}
}

// Open has nothing to open.
func (Recipe) Open(config.Settings, run.Flags, *run.Checkpoint) (run.Task, error) { return task{}, nil }

type task struct{}

func (task) Trainer(s *run.Setup) (run.Trainer, error) { return newTrainer(s) }
func (task) Close() error                              { return nil }

func tables() []report.Table {
	return []report.Table{{Kind: "iteration", File: "csv/history_ppo.csv", Row: new(Iteration)}}
}

// Evaluate works out what a checkpoint's policy earns.
func (Recipe) Evaluate(ctx context.Context, e *run.Evaluation) (run.Result, error) {
	return evaluate(ctx, e)
}
