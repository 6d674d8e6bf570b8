// Package recurrent trains learners with a recurrent network, whose learning histories in-context
// agents are trained on. The algorithm is proximal policy optimization (Schulman et al. 2017) of an
// actor and a critic that share gated recurrent units (Cho et al. 2014). The units carry over from
// episode to episode, and the network sees its last action and reward (Duan et al. 2016). A learner
// has one task; its history contains all its steps in that task. Learners act in XLand-MiniGrid
// (Pool) or in external environments that another program runs (Live).
//
// The result of a learner depends only on the settings, the world, the task and the seed, not on
// the number of workers or of other learners.
package recurrent

import (
	"context"
	"fmt"

	"haul/internal/world/xland"
)

// Settings configures a learner.
type Settings struct {
	Steps   int     // per environment and task
	Envs    int     // number of environments that step together
	Rollout int     // steps between two updates, and of backpropagation through time
	Hidden  int     // number of recurrent units
	Rate    float64 // learning rate of the optimizer
	Entropy float64 // weight of the policy's entropy in the loss
	Passes  int     // number of passes over a rollout
	Parts   int     // number of minibatches per pass; a minibatch has whole environments

	Discount, Lambda, Clip, Value, MaxNorm float64
}

// Default returns settings that learn most trivial tasks of XLand-MiniGrid, in 10 to 30 seconds of
// a core each.
func Default() Settings {
	return Settings{Steps: 8192, Envs: 48, Rollout: 64, Hidden: 64, Rate: 3e-3, Entropy: 0.01, Passes: 4, Parts: 4,
		Discount: 0.99, Lambda: 0.95, Clip: 0.2, Value: 0.5, MaxNorm: 0.5}
}

// Check returns an error if no learner can run with the settings in XLand-MiniGrid.
func (s *Settings) Check(w xland.World) error {
	if err := s.check(); err != nil {
		return err
	}
	if s.Steps < w.Horizon {
		return fmt.Errorf("%d steps of a history: want %d at least, the longest episode", s.Steps, w.Horizon)
	}
	return nil
}

// check returns an error if the settings are invalid in all environments.
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

// Left returns the number of environments that fill no minibatch. Each pass leaves out different
// ones.
func (s *Settings) Left() int { return s.Envs % s.minibatch() }

// senses are the sizes of the network's inputs and outputs.
type senses struct {
	inputs   int // table rows that a step selects
	rows     int // number of rows of the table
	measured int // number of real-valued inputs
	actions  int
}

// ending is the state of an episode after a step.
type ending uint8

const (
	goesOn ending = iota
	ended         // the episode has terminated
	cut           // a time limit that the network does not see has truncated the episode
)

// environments are several environments of one task, which step together. They store their steps
// and can show them again.
type environments interface {
	// begin resets all environments to the start of a task. key is the key of their random numbers.
	begin(task int64, key uint64) error
	// show writes the network's inputs for the next step of each environment, the last action and
	// its result included: rows of the table, and numbers.
	show(rows []int32, numbers []float32)
	// step applies one action per environment.
	step(ctx context.Context, actions []uint8) error
	// led returns the result of the last step of environment e. counts is false if the step was
	// idle: the environment began an episode and ignored the action.
	led(e int) (reward float32, end ending, counts bool)
	// showLast writes the inputs like show, but for environments whose last step truncated an
	// episode it writes the inputs of an episode that continues.
	showLast(rows []int32, numbers []float32)
	// recall ends the task and returns the number of steps of the longest kept history. Afterwards
	// turn(t) makes show write the inputs that it wrote before step t.
	recall() int
	turn(t int)
	// label stores the final policy's most likely action for step t of environment e, if that step
	// is kept.
	label(e, t int, best uint8)
}
