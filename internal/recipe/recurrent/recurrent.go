// Package recurrent is a learner with a recurrent network in XLand-MiniGrid: proximal policy
// optimization (Schulman et al. 2017) of an actor and a critic that share gated recurrent units
// (Cho et al. 2014). Units go on from episode to episode, and the network sees its last action and
// what it earned (Duan et al. 2016). A learner has one task, and what it does in its environments
// from its first step to its last are the histories that in-context agents learn from.
//
// What a reader could break: a learner is a function of the settings, the world, its task and the
// seed, whatever the number of workers and of learners beside it.
package recurrent

import (
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

// Default learns trivial tasks in a minute or two on a core.
func Default() Settings {
	return Settings{Steps: 8192, Envs: 48, Rollout: 64, Hidden: 64, Rate: 3e-3, Entropy: 0.01, Passes: 4, Parts: 4,
		Discount: 0.99, Lambda: 0.95, Clip: 0.2, Value: 0.5, MaxNorm: 0.5}
}

// Check refuses what no learner can follow.
func (s *Settings) Check(w xland.World) error {
	switch {
	case s.Steps < s.Rollout || s.Steps > 1<<24:
		return fmt.Errorf("%d steps of a history: want %d, a rollout, to %d", s.Steps, s.Rollout, 1<<24)
	case s.Steps < w.Horizon:
		return fmt.Errorf("%d steps of a history: want %d at least, the longest episode", s.Steps, w.Horizon)
	case s.Envs < 1 || s.Envs > 1<<16:
		return fmt.Errorf("%d environments of a learner: want 1 to %d", s.Envs, 1<<16)
	case s.Rollout < 1 || s.Rollout > 1<<12:
		return fmt.Errorf("%d steps of a rollout: want 1 to %d", s.Rollout, 1<<12)
	case s.Hidden < 1 || s.Hidden > 1<<12:
		return fmt.Errorf("%d hidden units: want 1 to %d", s.Hidden, 1<<12)
	case !(s.Rate > 0 && s.Rate <= 1):
		return fmt.Errorf("a learning rate of %v: want more than 0, at most 1", s.Rate)
	case !(s.Entropy >= 0 && s.Entropy <= 1):
		return fmt.Errorf("an entropy bonus of %v: want 0 to 1", s.Entropy)
	}
	return nil
}
