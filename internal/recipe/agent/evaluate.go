package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"haul/internal/comm"
	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/run"
	"haul/internal/stats"
	"haul/internal/world"
	"haul/internal/world/history"
)

// EvalOptions configures the goals, episodes and temperatures of an evaluation.
type EvalOptions struct {
	History     history.History // provides the goals, their split and the learners' curves
	Goals       []int           // indices into the history's goals; nil: the held-out goals
	Agents      int             // per goal; 0: eval_agents
	Episodes    int             // 0: eval_episodes
	Temperature *float64        // nil: eval_temperature; 0: the most likely action
	Search      *float64        // while a context holds no reward; nil: eval_search, or Temperature if that is set
	Seed        *uint64         // nil: seed
	Progress    func(done, of int)
	Flags       bool           // advice names the flags of haul eval instead of settings
	World       *comm.World    // ranks that divide the agents; nil: this process runs all
	tries       []temperatures // temperatures to evaluate at once, instead of Temperature and Search
}

// temperatures returns the temperatures that the options ask for.
func (o *EvalOptions) temperatures(c *config.AD) temperatures {
	h := temperatures{c.EvalTemperature, c.EvalSearch}
	if o.Temperature != nil {
		h = temperatures{use: *o.Temperature}
	}
	if o.Search != nil {
		h.search = *o.Search
	} else if h.search == 0 {
		h.search = h.use
	}
	return h
}

// name returns the name of what a user changes: the setting of a run, or the flag of haul eval.
func (o *EvalOptions) name(flag string) string {
	if o.Flags {
		return "--" + flag
	}
	return "eval_" + flag
}

// Evaluation is the result of agents that learn in context. Agents on the same goal are not
// independent. Standard errors over all goals therefore use one value per goal, the mean of its
// agents. They are 0 for a single goal.
type Evaluation struct {
	Iteration int     `json:"iteration" csv:"iteration"`                                // number of updates of the weights
	First     float64 `json:"first" csv:"first_episode" tb:"test/return_first_episode"` // mean return of the first episode
	Last      float64 `json:"last" csv:"last_ten_episodes" tb:"test/return_last_ten"`   // mean over the last ten episodes, or over all if there are fewer
	LastSE    float64 `json:"last_se" csv:"last_ten_se"`
	Optimal   float64 `json:"optimal" csv:"optimal"`                                              // mean over the goals
	Share     float64 `json:"share_of_optimum" csv:"share_of_optimum" tb:"test/share_of_optimum"` // Last/Optimal
	ShareSE   float64 `json:"share_of_optimum_se" csv:"share_of_optimum_se"`
	Final     float64 `json:"final"` // mean return of the last episode
	FinalSE   float64 `json:"final_se"`
	// NAUC is the area under the curve of returns, divided by the area of an expert that gets the
	// optimum in every episode. It is a mean over the goals with a positive optimum.
	NAUC     float64 `json:"nauc"`
	NAUCSE   float64 `json:"nauc_se"`
	Episodes int     `json:"episodes" csv:"episodes"`
	Prunes   int64   `json:"prunes" csv:"prunes"`
	Regions  Regions `json:"regions"`
	Seconds  float64 `json:"seconds" csv:"seconds"`

	Agents      int     `json:"agents_per_goal"`
	Env         string  `json:"env"`
	Size        int     `json:"size,omitempty"` // side of a square world
	Horizon     int     `json:"horizon"`
	Temperature float64 `json:"temperature"`
	Search      float64 `json:"search_temperature"` // while a context holds no reward
	Seed        uint64  `json:"seed"`
	Tuned       []Trial `json:"tuned,omitempty"` // results at the temperatures tried on the validation goals

	Goals   []GoalResult `json:"goals"`
	HeldOut bool         `json:"held_out"` // whether training left these goals out
	Return  []float64    `json:"return"`   // by episode: mean over all agents
	SE      []float64    `json:"return_se"`
	SEOver  string       `json:"se_over"` // the sample of standard errors: "goals"
	// Source is the learners' mean return by episode on the same goals, for the length of the
	// histories. It is a mean over the learners that reached the episode.
	Source  []float64 `json:"source"`
	Context int       `json:"context_tokens"` // largest number of tokens in a context

	Runs           int64   `json:"runs"` // number of forward passes, each for all agents at once
	Tokens         int64   `json:"tokens"`
	StepsPerSecond float64 `json:"steps_per_second"` // of all environments together
	Memory         int64   `json:"memory_bytes"`

	// FirstEpisode and LastEpisode belong to the agent with the median share of the optimum at the
	// end.
	// in the end.
	FirstEpisode Episode `json:"first_episode"`
	LastEpisode  Episode `json:"last_episode"`

	Game world.Game `json:"-"` // the game that was played
}

// GoalResult is the result on one goal.
type GoalResult struct {
	Goal    world.Task `json:"goal"`
	Optimal float64    `json:"optimal"`
	Return  []float64  `json:"return"`    // by episode: mean over its agents
	SE      []float64  `json:"return_se"` // over its agents
	Source  []float64  `json:"source"`    // its learner's curve
	Last    float64    `json:"last"`
	Share   float64    `json:"share_of_optimum"`
}

// Regions summarises the lengths of finished regions, in transitions.
type Regions struct {
	Ended    int64   `json:"ended"`
	Forced   int64   `json:"forced"` // ended at compress_interval instead of by the agent
	Mean     float64 `json:"mean_length" csv:"mean_region"`
	SD       float64 `json:"sd_length"`
	Shortest int     `json:"shortest"`
	Longest  int     `json:"longest"`
}

// Episode is the trajectory of one episode.
type Episode struct {
	Goal world.Task `json:"goal"`
	// Cells holds the observations before each action and after the last one. In a square world
	// they are the column and the row from the top, in other worlds all fields.
	Cells  [][]int32 `json:"cells"`
	Return float64   `json:"return"`
}

// lastEpisodes is the number of last episodes that a result is a mean over.
const lastEpisodes = 10

// evaluator is a compiled evaluation, which can run again after the weights have changed.
type evaluator struct {
	o            EvalOptions
	goals        []int
	heldOut      bool
	agents       int
	seed         uint64
	temperatures []temperatures // one evaluation per entry, run together
	net          *network
	batch        *evalBatch
	world        *comm.World // nil if this process runs all agents
	all          *evalBatch  // all agents together, if ranks divide them
}

func newEvaluator(dev kernel.Device, c *config.AD, m *model.AD, store kernel.Store, game world.Game, learned []string, o EvalOptions) (*evaluator, error) {
	if o.History == nil {
		return nil, errors.New("evaluate in context: no learning histories to take goals and learners from")
	}
	if err := history.Matches(o.History, game); err != nil {
		return nil, err
	}
	e := &evaluator{o: o, goals: o.Goals, heldOut: learned != nil || o.Goals == nil, agents: o.Agents, seed: c.Seed, temperatures: o.tries}
	if len(e.temperatures) == 0 {
		e.temperatures = []temperatures{o.temperatures(c)}
	}
	if e.goals == nil {
		_, e.goals = o.History.Split()
	}
	if e.agents == 0 {
		e.agents = c.EvalAgents
	}
	if o.Episodes == 0 {
		o.Episodes = c.EvalEpisodes
	}
	if o.Seed != nil {
		e.seed = *o.Seed
	}
	coldest := math.Inf(1)
	for _, h := range e.temperatures {
		coldest = min(coldest, h.use, h.search) // keeps NaN
	}
	if len(e.goals) == 0 || e.agents < 1 || o.Episodes < 1 || !(coldest >= 0) {
		return nil, fmt.Errorf("evaluate in context: %d goals, %d agents on each, %d episodes and temperature %g: want at least one of each and no temperature below 0",
			len(e.goals), e.agents, o.Episodes, coldest)
	}
	goals, all := make([]world.Task, len(e.goals)), o.History.Tasks()
	for i, g := range e.goals {
		if g < 0 || g >= len(all) {
			return nil, fmt.Errorf("evaluate in context: no goal %d, the histories have %d", g, len(all))
		}
		goals[i] = all[g]
		if slices.Contains(learned, nameOf(goals[i])) {
			e.heldOut = false
		}
	}
	if o.Goals == nil && !e.heldOut {
		return nil, errors.New("evaluate in context: these histories hold out goals that the agent has learned from: give it those that it was trained with, or ask for all goals (--goals all)")
	}
	rules, err := newContextRules(c, len(game.Space().Fields), game.Limit())
	if err != nil {
		return nil, err
	}
	// in bytes, as a float because the flags may exceed any int
	returns := 8 * float64(len(e.temperatures)) * float64(len(goals)) * float64(e.agents) * float64(o.Episodes)
	if err := run.FitsHost(o.name("episodes"), "the host", "keeping the return of every episode", o.Episodes, int64(min(returns, 1<<62))); err != nil {
		return nil, err
	}
	from, to := 0, len(e.temperatures)*len(goals)*e.agents
	if o.World != nil && to >= o.World.Ranks() {
		e.world = o.World
		from, to = o.World.Cut(to)
		e.all = newEvalShare(game, goals, e.agents, o.Episodes, &rules, nil, 0, len(e.temperatures)*len(goals)*e.agents)
	}
	if e.net, err = newNetwork(dev, m, store, to-from, e.agents, rules.capacity, o.name("agents")); err != nil {
		return nil, err
	}
	e.batch = newEvalShare(game, goals, e.agents, o.Episodes, &rules, e.net, from, to)
	return e, nil
}

func (e *evaluator) close() error { return e.net.runner.Close() }

// run runs all agents from the start and returns the result at the first temperature.
func (e *evaluator) run(ctx context.Context) (*Evaluation, error) {
	all, err := e.runAll(ctx)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// runAll runs all agents and returns the result at each temperature. Region lengths, runs, tokens
// and seconds are totals over all temperatures.
func (e *evaluator) runAll(ctx context.Context) (all []*Evaluation, err error) {
	began := time.Now()
	e.batch.reset(e.seed, e.temperatures...)
	err = e.batch.run(e.world.Soon(ctx), e.o.Progress)
	if err != nil && !e.world.Asked() {
		return nil, err
	}
	batch := e.batch
	if e.world != nil {
		if err := e.gather(err != nil); err != nil {
			return nil, err
		}
		batch = e.all
	} else if err != nil {
		return nil, err
	}
	seconds := time.Since(began).Seconds()
	for k, h := range e.temperatures {
		out := batch.at(k).results(e.o.History, e.goals, e.agents)
		out.HeldOut = e.heldOut
		out.Seed, out.Temperature, out.Search, out.Memory = e.seed, h.use, h.search, e.net.runner.Memory()
		out.Seconds = seconds
		out.StepsPerSecond = float64(batch.lived()) / out.Seconds
		all = append(all, out)
	}
	return all, nil
}

// results summarises the agents' episodes.
func (c *evalBatch) results(h history.History, goals []int, each int) *Evaluation {
	out := &Evaluation{Agents: each, Episodes: c.episodes, Env: c.game.Name(), Horizon: c.game.Limit(), Runs: c.runs, Tokens: c.tokens, Game: c.game}
	if m, ok := c.game.(world.Map); ok {
		out.Size = m.Side()
	}
	tasks := h.Tasks()
	out.SEOver = "goals"
	last := min(lastEpisodes, c.episodes)
	ends := make([]float64, len(c.agents))
	var lived []float64 // returns of the learners that reached this episode
	for g, index := range goals {
		goal := GoalResult{Goal: tasks[index], Optimal: c.game.Best(tasks[index]), Source: h.Curve(index)}
		goal.Return, goal.SE = c.curve(g*each, each)
		goal.Last, _ = stats.MeanSE(goal.Return[c.episodes-last:])
		goal.Share = stats.ShareOf(goal.Last, goal.Optimal)
		out.Goals = append(out.Goals, goal)
		for i, v := range goal.Source {
			if i == len(out.Source) {
				out.Source, lived = append(out.Source, 0), append(lived, 0)
			}
			lived[i]++
			out.Source[i] += (v - out.Source[i]) / lived[i]
		}
		for i := g * each; i < (g+1)*each; i++ {
			sum := 0.0
			for _, v := range c.returns[(i+1)*c.episodes-last : (i+1)*c.episodes] {
				sum += v
			}
			ends[i] = sum / float64(last)
		}
	}
	out.overGoals()
	for i := range c.agents {
		out.Prunes += int64(c.agents[i].context.prunes)
	}
	out.Context = c.agents[0].context.rules.capacity
	if s := &c.regions; s.count > 0 {
		mean := float64(s.sum) / float64(s.count)
		out.Regions = Regions{Ended: s.count, Forced: s.forced, Mean: mean, SD: math.Sqrt(max(0, float64(s.squares)/float64(s.count)-mean*mean)),
			Shortest: s.shortest, Longest: s.longest}
	}
	typical := c.median(ends)
	out.FirstEpisode, out.LastEpisode = c.episode(c.first, typical, 0), c.episode(c.last, typical, c.episodes-1)
	return out
}

// overGoals combines the goals. The share is the ratio of two means over the same goals. Its
// standard error is computed from each goal's return minus the share times its optimum, so that the
// different optima of near and distant goals do not count as noise.
func (e *Evaluation) overGoals() {
	e.Return, e.SE = make([]float64, e.Episodes), make([]float64, e.Episodes)
	at := make([]float64, len(e.Goals))
	over := func(figure func(g *GoalResult) float64) (mean, se float64) {
		for i := range e.Goals {
			at[i] = figure(&e.Goals[i])
		}
		return stats.MeanSE(at)
	}
	for i := range e.Return {
		e.Return[i], e.SE[i] = over(func(g *GoalResult) float64 { return g.Return[i] })
	}
	e.First = e.Return[0]
	e.Final, e.FinalSE = e.Return[e.Episodes-1], e.SE[e.Episodes-1]
	var areas []float64
	for i := range e.Goals {
		if g := &e.Goals[i]; g.Optimal > 0 {
			area, _ := stats.MeanSE(g.Return)
			areas = append(areas, area/g.Optimal)
		}
	}
	if len(areas) > 0 {
		e.NAUC, e.NAUCSE = stats.MeanSE(areas)
	}
	e.Optimal, _ = over(func(g *GoalResult) float64 { return g.Optimal })
	e.Last, e.LastSE = over(func(g *GoalResult) float64 { return g.Last })
	e.Share = stats.ShareOf(e.Last, e.Optimal)
	_, beyond := over(func(g *GoalResult) float64 { return g.Last - e.Share*g.Optimal })
	e.ShareSE = stats.ShareOf(beyond, e.Optimal)
}

// curve returns the mean return by episode over n agents, starting with agent `first`.
func (c *evalBatch) curve(first, n int) (mean, se []float64) {
	mean, se = make([]float64, c.episodes), make([]float64, c.episodes)
	at := make([]float64, n)
	for e := range mean {
		for i := range at {
			at[i] = c.returns[(first+i)*c.episodes+e]
		}
		mean[e], se[e] = stats.MeanSE(at)
	}
	return mean, se
}

// median returns the agent with the median share of the optimum, given the agents' final returns.
func (c *evalBatch) median(ends []float64) int {
	order := make([]int, len(ends))
	share := make([]float64, len(ends))
	for i := range order {
		order[i], share[i] = i, stats.ShareOf(ends[i], c.game.Best(c.agents[i].task))
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(share[a], share[b]) })
	return order[len(order)/2]
}

// episode returns agent i's trajectory in kept, whose number is `which`.
func (c *evalBatch) episode(kept []walk, i, which int) Episode {
	n := len(c.space.Fields)
	if _, square := c.game.(world.Map); square {
		n = 2
	}
	out := Episode{Goal: c.agents[i].task, Return: c.returns[i*c.episodes+which]}
	for t := range kept[i].n + 1 {
		out.Cells = append(out.Cells, slices.Clone(kept[i].seen[t*len(c.space.Fields):][:n]))
	}
	return out
}

// nameOf returns a task's unique name in its world. Checkpoints store it.
func nameOf(t world.Task) string {
	text, err := t.MarshalJSON()
	if err != nil {
		panic("agent: a task without JSON: " + err.Error())
	}
	return string(text)
}
