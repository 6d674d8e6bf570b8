// Package recurrent is a learner with a recurrent network: proximal policy optimization (Schulman
// et al. 2017) of an actor and a critic that share gated recurrent units (Cho et al. 2014). Units
// go on from episode to episode, and the network sees its last action and what it earned (Duan et
// al. 2016). A learner has one task, and what it does in its environments from its first step to
// its last are the histories that in-context agents learn from. It lives in XLand-MiniGrid (Pool),
// or in environments that another program runs (Live).
//
// What a reader could break: a learner is a function of the settings, the world, its task and the
// seed, whatever the number of workers and of learners beside it.
package recurrent

import (
	"context"
	"fmt"

	"haul/internal/world/xland"
)

// Settings are a learner's.
type Settings struct {
	Steps   int     // of each environment, from the first to the last
	Envs    int     // environments that a learner acts in at once
	Rollout int     // steps between two updates, and how far learning reaches back
	Hidden  int     // units
	Rate    float64 // of the optimizer
	Entropy float64 // what the policy's entropy counts in the loss
	Passes  int     // over a rollout
	Parts   int     // minibatches of a pass, of whole environments

	Discount, Lambda, Clip, Value, MaxNorm float64
}

// Default learns most trivial tasks of XLand-MiniGrid, each in 10 to 30 seconds of a core.
func Default() Settings {
	return Settings{Steps: 8192, Envs: 48, Rollout: 64, Hidden: 64, Rate: 3e-3, Entropy: 0.01, Passes: 4, Parts: 4,
		Discount: 0.99, Lambda: 0.95, Clip: 0.2, Value: 0.5, MaxNorm: 0.5}
}

// Check refuses what no learner can follow in XLand-MiniGrid.
func (s *Settings) Check(w xland.World) error {
	if err := s.check(); err != nil {
		return err
	}
	if s.Steps < w.Horizon {
		return fmt.Errorf("%d steps of a history: want %d at least, the longest episode", s.Steps, w.Horizon)
	}
	return nil
}

// check refuses what no learner can follow anywhere.
func (s *Settings) check() error {
	switch {
	case s.Rollout < 1 || s.Rollout > 1<<12:
		return fmt.Errorf("%d steps of a rollout: want 1 to %d", s.Rollout, 1<<12)
	case s.Steps < s.Rollout || s.Steps > 1<<24:
		return fmt.Errorf("%d steps of a history: want %d (a rollout) to %d", s.Steps, s.Rollout, 1<<24)
	case s.Envs < 1 || s.Envs > 1<<16:
		return fmt.Errorf("%d environments of a learner: want 1 to %d", s.Envs, 1<<16)
	case s.Hidden < 1 || s.Hidden > 1<<12:
		return fmt.Errorf("%d hidden units: want 1 to %d", s.Hidden, 1<<12)
	case !(s.Rate > 0 && s.Rate <= 1):
		return fmt.Errorf("a learning rate of %v: want more than 0, at most 1", s.Rate)
	case !(s.Entropy >= 0 && s.Entropy <= 1):
		return fmt.Errorf("an entropy bonus of %v: want 0 to 1", s.Entropy)
	case !(s.Discount >= 0 && s.Discount < 1):
		return fmt.Errorf("a discount of %v: want 0 or more, less than 1", s.Discount)
	}
	return nil
}

// Left is how many environments a pass leaves out, others each time: those that fill no minibatch.
func (s *Settings) Left() int { return s.Envs % s.minibatch() }

// senses are what a learner's network is made for.
type senses struct {
	inputs   int // rows of the table that a step shows
	rows     int // of the table
	measured int // numbers beside them
	actions  int
}

// ending says whether an episode is over.
type ending uint8

const (
	goesOn ending = iota
	ended         // nothing follows
	cut           // more would follow, but a limit that the network does not see came first
)

// environments are where a learner lives: several of one task, which step together. They keep what
// happens in them, and can show it once more.
type environments interface {
	// begin puts all of them at the start of a task, whose random numbers have this key.
	begin(task int64, key uint64) error
	// show writes what each of them shows to the next step: rows of the table and numbers, its last
	// action and what that led to among them.
	show(rows []int32, numbers []float32)
	// step acts in all of them.
	step(ctx context.Context, actions []uint8) error
	// led is what the last step of environment e led to. counts is false where the step was none: the
	// environment began an episode, whatever the action.
	led(e int) (reward float32, end ending, counts bool)
	// showLast is show of environments whose last step cut an episode, as if it had gone on.
	showLast(rows []int32, numbers []float32)
	// recall ends the lives, and says how many steps the longest has that is kept. From then on show
	// shows what show showed before step t, which was turned to last.
	recall() int
	turn(t int)
	// label gives step t of environment e, where it is kept, the action that is held best.
	label(e, t int, best uint8)
}
