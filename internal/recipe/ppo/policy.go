package ppo

import (
	"context"
	"fmt"
	"io"
	"math"

	"haul/internal/config"
	"haul/internal/draw"
	"haul/internal/report"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/stats"
	"haul/internal/world/grid"
)

// expected returns the exact mean return of an episode, from the probabilities of all positions at
// each step.
func (p *policyTable) expected(room grid.Room, goal grid.Goal) float64 {
	var at, next [grid.NumStates]float64
	at[grid.StateOf(room.Start(), 0)] = 1
	sum, rule := 0.0, goal.Rule()
	for range room.Horizon {
		clear(next[:])
		for _, state := range room.States() {
			if at[state] == 0 {
				continue
			}
			for a, lp := range p.logProb[state] {
				to, reward := rule.Enter(state, room.Move(state.Cell(), uint8(a)))
				mass := at[state] * math.Exp(float64(lp))
				next[to] += mass
				sum += mass * float64(reward)
			}
		}
		at = next
	}
	return sum
}

// walk returns the states of one episode, from the start state on. draw returns a number in [0, 1)
// for each step, by which the action is sampled. If draw is nil, the most likely action is taken.
func (p *policyTable) walk(room grid.Room, goal grid.Goal, draw func(step int) float32) []grid.State {
	out, rule := []grid.State{grid.StateOf(room.Start(), 0)}, goal.Rule()
	for i := range room.Horizon {
		state := out[i]
		best := 0
		for a, lp := range p.logProb[state] {
			if lp > p.logProb[state][best] {
				best = a
			}
		}
		action := uint8(best)
		if draw != nil {
			action = p.draw(state, draw(i))
		}
		to, _ := rule.Enter(state, room.Move(state.Cell(), action))
		out = append(out, to)
	}
	return out
}

// returnOf returns the return of an episode's states.
func returnOf(walk []grid.State, goal grid.Goal) float64 {
	n, rule := 0, goal.Rule()
	for i, s := range walk[1:] {
		_, reward := rule.Enter(walk[i], s.Cell())
		n += int(reward)
	}
	return float64(n)
}

// walks returns two episodes for a picture: one of the most likely actions, one of sampled actions.
func walks(p *policyTable, room grid.Room, goal grid.Goal, seed uint64) []draw.Walk {
	shown := func(caption string, states []grid.State) draw.Walk {
		w := draw.Walk{Caption: fmt.Sprintf("%s · return %g of %g", caption, returnOf(states, goal), room.Optimal(goal)), Goal: goal.Cell().XY()}
		if goal.Keyed() {
			key := goal.Key().XY()
			w.Key = &key
		}
		for _, s := range states {
			w.Cells = append(w.Cells, s.Cell().XY())
		}
		return w
	}
	sampled := func(step int) float32 { return rng.Float(rng.At(seed, 0, uint32(step), rng.Agent)[0]) }
	return []draw.Walk{shown("most likely actions", p.walk(room, goal, nil)), shown("sampled", p.walk(room, goal, sampled))}
}

// judged is the result of evaluating a policy.
type judged struct {
	Iteration int       `json:"iteration"`
	Goal      grid.Goal `json:"goal"`
	Env       grid.Kind `json:"env"`
	Size      int       `json:"size"`
	Horizon   int       `json:"horizon"`
	Optimal   float64   `json:"optimal"`
	Expected  float64   `json:"expected_return"` // exact, from the policy's probabilities
	Share     float64   `json:"share_of_optimum"`
	Greedy    float64   `json:"greedy_return"` // return of the most likely actions

	path, device, name string
	walks              []draw.Walk
}

// evaluate computes the returns of a checkpoint's policy.
func evaluate(_ context.Context, e *run.Evaluation) (*judged, error) {
	dev, err := e.Device()
	if err != nil {
		return nil, err
	}
	ck, err := run.Load(e.Path, Name)
	if err != nil {
		return nil, err
	}
	c := ck.Settings.(*config.PPO)
	l, err := newLearner(dev, c, nil)
	if err != nil {
		return nil, err
	}
	defer l.close()
	w, err := ck.Weights(l.net.Layout(), "")
	if err != nil {
		return nil, err
	}
	if err := l.store.WriteWeights(w); err != nil {
		return nil, err
	}
	if err := l.look(); err != nil {
		return nil, err
	}
	room, goal, p, seed := roomOf(c), goalOf(c), &l.batch.policy, c.AlgSeed
	if e.Seed != nil {
		seed = *e.Seed
	}
	r := &judged{Iteration: ck.Progress.Updates, Goal: goal, Env: room.Kind, Size: room.Size, Horizon: room.Horizon, Optimal: room.Optimal(goal), Expected: p.expected(room, goal),
		Greedy: returnOf(p.walk(room, goal, nil), goal), path: e.Path, device: dev.Name(), name: c.Name, walks: walks(p, room, goal, seed)}
	r.Share = stats.ShareOf(r.Expected, r.Optimal)
	return r, nil
}

// Object returns the result for JSON output.
func (r *judged) Object() any { return r }

// Text writes the result for people.
func (r *judged) Text(w io.Writer, bold func(string) string) error {
	_, err := fmt.Fprintf(w, "%s\nreturn  %.3f of %.3f per episode, worked out exactly: %.2f %% of the optimum\ngreedy  %g by the most likely actions\ngoal    %v of a %d×%d room, episodes of %d steps, after %s\n",
		bold(r.path+", "+r.device), r.Expected, r.Optimal, 100*r.Share, r.Greedy, r.Goal, r.Size, r.Size, r.Horizon, report.Plural(int64(r.Iteration), "iteration"))
	return err
}

// Pictures returns one drawing with two episodes.
func (r *judged) Pictures() []run.Drawing {
	return []run.Drawing{{Draw: func(w io.Writer, f draw.Format) error { return draw.Rooms(w, f, r.name, r.Size, r.walks...) }}}
}
