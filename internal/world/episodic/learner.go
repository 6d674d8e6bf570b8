package episodic

import (
	"fmt"
	"slices"

	"haul/internal/rng"
	"haul/internal/world/grid"
)

// Learner is the algorithm that makes histories.
type Learner string

// The learners.
const (
	// QLearning is tabular Q-learning: at every step Q(s,a) moves by Rate towards r + γ·max
	// Q(s',·). The action is random with probability ε, otherwise greedy with random ties. ε falls
	// linearly from First to Final over the fraction Falls of the episodes.
	QLearning Learner = "q"
	// Noise does not learn: it is an expert whose actions are replaced by random ones with a
	// probability ε that falls in the same way (AD-ε, Zisman et al. 2024).
	Noise Learner = "noise"
)

// Schedule holds a history's length and the constants of its learner.
type Schedule struct {
	Learner  Learner `json:"learner"`
	Episodes int     `json:"episodes"`
	Discount float64 `json:"discount"`
	Rate     float64 `json:"rate"`
	First    float64 `json:"epsilon_first"`
	Final    float64 `json:"epsilon_final"`
	Falls    float64 `json:"epsilon_falls"`
}

// Published returns the schedule of the published histories: 200 episodes, discount 0.9, ε falling
// linearly. The paper does not state the rate and the ends of ε. The rate matters little here. With
// ε at 0 in the last tenth of the episodes, histories have the stated sizes.
func Published() Schedule {
	return Schedule{Learner: QLearning, Episodes: 200, Discount: 0.9, Rate: 0.9, First: 1, Final: 0, Falls: 0.9}
}

// Check returns an error if the values are out of range.
func (s Schedule) Check() error {
	switch {
	case s.Learner != QLearning && s.Learner != Noise:
		return fmt.Errorf("unknown learner %q: use %s or %s", s.Learner, QLearning, Noise)
	case s.Episodes < 1 || s.Episodes > 1<<20:
		return fmt.Errorf("%d episodes of a history: want 1 to %d", s.Episodes, 1<<20)
	case !(s.Discount >= 0 && s.Discount < 1):
		return fmt.Errorf("a discount of %v: want 0 or more, below 1", s.Discount)
	case !(s.Rate > 0 && s.Rate <= 1):
		return fmt.Errorf("a learning rate of %v: want more than 0, at most 1", s.Rate)
	case !(s.First >= 0 && s.First <= 1 && s.Final >= 0 && s.Final <= 1):
		return fmt.Errorf("exploration from %v to %v: want both in 0 to 1", s.First, s.Final)
	case !(s.Falls > 0 && s.Falls <= 1):
		return fmt.Errorf("exploration that falls over %v of the episodes: want more than 0, at most 1", s.Falls)
	}
	return nil
}

// Step is one transition of a history. Best is the optimal action there according to the
// transitions of the whole history. Among equally good actions, and if no reward is known to be
// reachable, it is the action that was taken.
type Step struct {
	X, Y, Action, Reward, Best uint8
	Ends                       bool
}

// History appends the steps of a learner on a goal to dst. They depend only on room, goal,
// schedule, seed and number.
func (r Room) History(dst []Step, g Goal, s Schedule, seed, number uint64) []Step {
	e := r.NewEnv(g).(*Env)
	e.Seed(seed, number)
	var q [][grid.NumActions]float64
	if s.Learner == QLearning {
		q = make([][grid.NumActions]float64, 2*r.Size*r.Size)
	}
	known := newPlan(r)
	begun := len(dst)
	draw := uint32(0)
	for episode := range s.Episodes {
		if episode > 0 {
			e.Reset()
		}
		epsilon := s.First + (s.Final-s.First)*min(1, float64(episode)/(s.Falls*float64(s.Episodes)))
		for ends := false; !ends; {
			w := rng.At(seed, number, draw, rng.Learner)
			draw++
			state, x, y, held := e.state(), e.x, e.y, e.holds
			var action int
			switch {
			case float64(rng.Float(w[0])) < epsilon:
				action = int(rng.Below(w[1], grid.NumActions))
			case q != nil:
				action = greedy(&q[state], w[2])
			default:
				action = e.Expert()
			}
			var reward int
			reward, ends = e.Step(action)
			done := held && reward > 0 // the task is done; a time limit does not end the values
			if q != nil {
				next := s.Discount * slices.Max(q[e.state()][:])
				if done {
					next = 0
				}
				q[state][action] += s.Rate * (float64(reward) + next - q[state][action])
			}
			known.learn(state, action, reward, e.state(), done)
			dst = append(dst, Step{X: uint8(x), Y: uint8(y), Action: uint8(action), Reward: uint8(reward), Ends: ends})
		}
	}
	known.label(dst[begun:], g, r)
	return dst
}

// greedy returns an action of the highest value, chosen at random among equals.
func greedy(q *[grid.NumActions]float64, word uint32) int {
	most, equal := slices.Max(q[:]), uint32(0)
	for _, v := range q {
		if v == most {
			equal++
		}
	}
	pick := rng.Below(word, equal)
	for a, v := range q {
		if v == most {
			if pick == 0 {
				return a
			}
			pick--
		}
	}
	return 0
}
