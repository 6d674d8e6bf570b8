package xland

import "haul/internal/rng"

// Guided is a task that an agent plays while an expert policy labels its steps (as in DAgger): a
// searcher receives the same views and rewards and returns its action. Observe and Take alternate.
type Guided struct {
	env          *Env
	searcher     *searcher
	seed, number uint64
	words        uint32
	now          Step
	steps        []Step
}

// Guide begins a task. Its steps are appended to dst.
func (w World) Guide(dst []Step, id ID, seed, number uint64) *Guided {
	e := w.NewEnv(id).(*Env)
	e.Seed(seed, number)
	g := &Guided{env: e, searcher: newSearcher(e.State), seed: seed, number: number, steps: dst}
	g.searcher.begin()
	return g
}

// Observe writes the view and computes the searcher's action.
func (g *Guided) Observe(observed []float64) {
	g.now = Step{Best: g.searcher.act(rng.At(g.seed, g.number, g.words, rng.Learner)[1])}
	g.words++
	view(g.now.Seen[:], g.env.State)
	for i := range observed {
		observed[i] = float64(g.now.Seen[i])
	}
}

// Take applies an action. If it ends an episode, the next one begins.
func (g *Guided) Take(action int) (reward float64, over bool) {
	index, over := g.env.Step(action)
	g.now.Action, g.now.Reward, g.now.Ends = uint8(action), uint8(index), over
	g.steps = append(g.steps, g.now)
	g.searcher.heed(uint8(action), index > 0)
	if over {
		g.env.Reset()
		g.searcher.begin()
	} else {
		g.searcher.look()
	}
	return g.env.shared.rewards[index], over
}

// Steps returns the steps of all finished episodes.
func (g *Guided) Steps() []Step { return g.steps }
