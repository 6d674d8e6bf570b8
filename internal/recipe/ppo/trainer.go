package ppo

import (
	"context"
	"errors"
	"fmt"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/report"
	"haul/internal/run"
	"haul/internal/safetensors"
	"haul/internal/stats"
	"haul/internal/world/grid"
)

// state is the learner's state between two rounds, without its weights.
type state struct {
	Pass   uint64       `json:"pass"`   // number of passes over samples, in all rounds
	Steps  int          `json:"steps"`  // of each environment
	Clock  int          `json:"clock"`  // steps of the current episode
	States []grid.State `json:"cells"`  // state of each environment
	Earned int          `json:"earned"` // rewards of all environments in the current episode
}

// trainer trains a learner on one goal. One update is one round: collect a rollout with the current
// policy, compute advantages, and train on them for several passes.
type trainer struct {
	*run.Setup
	*learner
	cfg  *config.PPO
	goal grid.Goal
	at   state
	view *view

	within  context.Context // cancelled when the current round is abandoned
	abandon context.CancelFunc
	before  snapshot

	// Of the current round.
	returns  int // sum over the finished episodes of all environments
	episodes int
}

func newTrainer(s *run.Setup) (*trainer, error) {
	c := s.Settings.(*config.PPO)
	l, err := newLearner(s.Device, c, s.World.Peer())
	if err != nil {
		return nil, err
	}
	t := &trainer{Setup: s, learner: l, cfg: c, goal: goalOf(c)}
	t.within, t.abandon = context.WithCancel(context.Background())
	return t, nil
}

func (t *trainer) Layout() *kernel.Layout      { return t.net.Layout() }
func (t *trainer) Runner() kernel.Runner       { return t.update }
func (t *trainer) Extra() []safetensors.Tensor { return nil }
func (t *trainer) RateKey() string             { return "source_lr" }
func (t *trainer) Waited() float64             { return 0 }
func (t *trainer) Memory() int64               { return t.update.Memory() + t.table.Memory() }
func (t *trainer) Close() error                { t.abandon(); return t.close() }
func (t *trainer) Sets() []run.Set             { return []run.Set{{Store: t.store, Trained: true}} }
func (t *trainer) Initial() []float32 {
	return model.Initial(t.net.Layout(), keyOf(t.cfg, t.goal))
}

// State returns the state for a checkpoint, copied from the learner.
func (t *trainer) State() any {
	if e := t.batch.env; e != nil {
		t.at.Pass, t.at.Steps, t.at.Clock, t.at.States = t.pass, t.batch.done, e.Clock(), e.States()
	}
	return &t.at
}

// Restore sets the learner's environments to the state of a checkpoint.
func (t *trainer) Restore(_ context.Context, ck *run.Checkpoint, _ bool) error {
	at := t.at
	t.start(t.goal)
	if ck == nil {
		return nil
	}
	t.pass, t.batch.done = at.Pass, at.Steps
	if err := t.batch.env.Place(at.States, at.Clock); err != nil {
		return fmt.Errorf("load checkpoint %s: its state is broken: %w", ck.Path, err)
	}
	return nil
}

// Prepare does nothing.
func (t *trainer) Prepare(context.Context) error { return nil }

// Begin does nothing: the learning rate is constant.
func (t *trainer) Begin() error { return nil }

func (t *trainer) Total() int        { return Recipe{}.Length(t.cfg) }
func (t *trainer) Next(done int) int { return min(t.Total(), done+1) }
func (t *trainer) Place(updates int) string {
	return fmt.Sprintf("after iteration %d of %d", updates, t.Total())
}

// Update runs one round. If ctx is cancelled while the round is abandoned, the round is undone.
func (t *trainer) Update(ctx context.Context) error {
	if err := t.before.keep(t); err != nil {
		return err
	}
	err := t.round(t.within)
	if err != nil && t.within.Err() != nil && ctx.Err() != nil {
		return errors.Join(ctx.Err(), t.before.undo(t))
	}
	return err
}

// round collects a rollout with the current policy, computes advantages and trains on them.
func (t *trainer) round(ctx context.Context) error {
	if err := t.look(); err != nil {
		return err
	}
	if err := t.batch.collect(ctx, t.key, t.cfg.NSteps, nil); err != nil {
		return err
	}
	t.count()
	t.batch.advantages(t.cfg)
	return t.improve(ctx)
}

// Abandon aborts the current round.
func (t *trainer) Abandon() { t.abandon() }

// count sums the returns of the round's finished episodes.
func (t *trainer) count() {
	t.returns, t.episodes = 0, 0
	for i := range t.batch.ends {
		for _, s := range t.batch.samples[i*t.cfg.NStream:][:t.cfg.NStream] {
			t.at.Earned += int(s.reward)
		}
		if t.batch.ends[i] {
			t.returns += t.at.Earned
			t.episodes += t.cfg.NStream
			t.at.Earned = 0
		}
	}
}

// EndInterval evaluates the current policy.
func (t *trainer) EndInterval(_ context.Context, s *run.Interval) (*run.Outcome, error) {
	if err := t.look(); err != nil {
		return nil, err
	}
	room, c := roomOf(t.cfg), t.cfg
	row := &Iteration{Iteration: t.Progress.Updates, Iterations: t.Total(), LR: c.SourceLR, Optimal: room.Optimal(t.goal), Expected: t.batch.policy.expected(room, t.goal),
		Greedy: returnOf(t.batch.policy.walk(room, t.goal, nil), t.goal), Seconds: s.Seconds, Asked: s.Asked,
		StepsPerSecond: float64(s.Updates*round(c)) / s.Seconds, SecondsLeft: s.Seconds / float64(s.Updates) * float64(t.Total()-t.Progress.Updates)}
	if t.episodes > 0 {
		mean := float64(t.returns) / float64(t.episodes)
		row.Return = &mean
	}
	row.Share = stats.ShareOf(row.Expected, row.Optimal)
	if m := &s.Sums; m.Steps > 0 {
		n := float64(m.Steps) * float64(c.BatchSize)
		row.PolicyLoss, row.ValueLoss, row.Entropy, row.Clipped = m.Sums.Of(plan.PPOPolicy)/n, m.Sums.Of(plan.PPOValue)/n, m.Sums.Of(plan.PPOEntropy)/n, m.Sums.Of(plan.PPOClipped)/n
		row.GradNorm = m.GradNorm / float64(m.Steps)
	}
	row.Best = t.Progress.Better(1 - row.Share)
	return &run.Outcome{Records: []report.Record{{Kind: "iteration", At: row.Iteration, Row: row}}, Taken: true, Save: true}, nil
}

// Finish returns the summary of the run.
func (t *trainer) Finish(context.Context) (*report.Ending, error) {
	if err := t.look(); err != nil {
		return nil, err
	}
	room, at, p := roomOf(t.cfg), t.Progress, &t.batch.policy
	sum := &Summary{Iterations: at.Updates, Steps: at.Updates * round(t.cfg), Seconds: at.Elapsed, Goal: t.goal, Optimal: room.Optimal(t.goal), Expected: p.expected(room, t.goal),
		Greedy: returnOf(p.walk(room, t.goal, nil), t.goal), BestIteration: at.BestAt, Dir: t.Dir.Path(), Last: t.Dir.Last(), Best: t.Dir.Best()}
	sum.Share = stats.ShareOf(sum.Expected, sum.Optimal)
	t.view.walks = walks(p, room, t.goal, t.cfg.AlgSeed)
	return t.view.ending(sum), nil
}

// Describe fills in the recipe's part of the run's description.
func (t *trainer) Describe(i *report.Info) {
	t.view = &view{info: i, cfg: t.cfg, goal: t.goal}
	i.View, i.Tables, i.At = t.view, tables(), t.Progress.Updates
	i.Done = report.Plural(int64(t.Progress.Updates), "iteration")
}
