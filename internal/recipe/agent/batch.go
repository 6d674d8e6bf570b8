package agent

import (
	"context"
	"math"
	"runtime"

	"haul/internal/model"
	"haul/internal/rng"
	"haul/internal/world"
)

// Agents are independent. The actions of agent i depend only on the seed, on i and on its context,
// not on other agents or their number. If several temperatures are tried at once, agents with the
// same number use the same random numbers at each temperature. A batch allocates nothing after it
// is made.

// forwarder is the network as agents use it. It reads one token per row and writes the logits of
// the row's actions and token types. The slices are index [rows·fields of a token], at [rows], of
// [rows] and logits [rows·(actions+types)]. of[r] is the row whose context the token of row r
// belongs to; of is nil if every token belongs to its own row.
type forwarder interface {
	buffers() (index, at, of []int32, logits []float32)
	forward() error
	inside(loop func() error) error // runs a loop of forwards; no other use of the network is allowed inside
}

// evalBatch is an evaluation batch: agents that act at the same time, each at its own pace. Reading
// a pruned context again delays an agent.
type evalBatch struct {
	game         world.Game
	space        world.Space
	episodes     int
	seed         uint64
	temperatures []temperatures // tried at once: all agents at the first, then all at the second, and so on
	group        int            // number of agents per temperature
	net          forwarder
	agents       []agent
	live         int // number of agents that have episodes left
	runs         int64
	tokens       int64 // read by all agents so far
	regions      regionSums
	returns      []float64 // [agent, episode]
	first, last  []walk    // the first and the latest episode of each agent
	fields       int       // per token
	width        int       // per row of logits
	from         int       // number of the first agent, if other ranks run earlier agents
	idle         []int32   // rows whose agents have finished; the rest of the capacity is unused

	parts             []part
	work              []chan func(part int) // to the goroutines of all parts but the first
	done              chan struct{}
	feedPart, actPart func(part int) // method values, stored because evaluating one allocates
}

type agent struct {
	context agentContext
	task    world.Task
	env     world.Env
	acting  bool
	row     int // that its latest token was fed to
	steps   int // in all episodes
	episode int // number of finished episodes
	clock   int // steps of the current episode
}

// walk holds the observations of an episode: before each action, and after the last action.
type walk struct {
	seen []int32 // [steps+1, fields of an observation]; allocated for the longest episode
	n    int     // number of steps
}

// regionSums sums the lengths of finished regions.
type regionSums struct {
	count, forced, sum, squares int64
	shortest, longest           int
}

func (s *regionSums) add(n int, forced bool) {
	if s.count == 0 || n < s.shortest {
		s.shortest = n
	}
	s.longest = max(s.longest, n)
	s.count++
	s.sum += int64(n)
	s.squares += int64(n) * int64(n)
	if forced {
		s.forced++
	}
}

// merge adds the sums of o.
func (s *regionSums) merge(o *regionSums) {
	switch {
	case o.count == 0:
		return
	case s.count == 0:
		s.shortest = o.shortest
	}
	s.shortest, s.longest = min(s.shortest, o.shortest), max(s.longest, o.longest)
	s.count, s.forced, s.sum, s.squares = s.count+o.count, s.forced+o.forced, s.sum+o.sum, s.squares+o.squares
}

// newEvalBatch places `each` agents on every goal; agent i has goal i/each.
func newEvalBatch(game world.Game, tasks []world.Task, each, episodes int, rules *contextRules, net forwarder) *evalBatch {
	return newEvalShare(game, tasks, each, episodes, rules, net, 0, len(tasks)*each)
}

// newEvalShare returns the agents [from, to) of an evaluation batch. After the last goal, the first
// goal follows again for the next temperature.
func newEvalShare(game world.Game, tasks []world.Task, each, episodes int, rules *contextRules, net forwarder, from, to int) *evalBatch {
	space := game.Space()
	c := &evalBatch{game: game, space: space, episodes: episodes, net: net, agents: make([]agent, to-from), from: from, group: len(tasks) * each,
		fields: rules.width + 1, width: space.Actions + model.TokenTypes}
	c.first, c.last = make([]walk, len(c.agents)), make([]walk, len(c.agents))
	seen := (game.Limit() + 1) * len(space.Fields)
	for i := range c.agents {
		task := tasks[(from+i)%c.group/each]
		c.agents[i] = agent{context: newAgentContext(rules), task: task, env: game.NewEnv(task)}
		c.first[i].seen, c.last[i].seen = make([]int32, seen), make([]int32, seen)
	}
	c.returns = make([]float64, len(c.agents)*episodes)
	c.idle = make([]int32, 0, len(c.agents))
	c.feedPart, c.actPart = c.feedAgents, c.actAgents
	c.divide(1)
	return c
}

// number returns agent i's number among the agents at its temperature, which selects its random
// numbers.
func (c *evalBatch) number(i int) uint64 { return uint64((c.from + i) % c.group) }

// temperaturesOf returns agent i's temperatures.
func (c *evalBatch) temperaturesOf(i int) temperatures { return c.temperatures[(c.from+i)/c.group] }

// at returns the agents at the k-th temperature of a complete batch. Sums over all agents stay
// those of the complete batch.
func (c *evalBatch) at(k int) *evalBatch {
	out, from, to := *c, k*c.group, (k+1)*c.group
	out.agents, out.first, out.last = c.agents[from:to], c.first[from:to], c.last[from:to]
	out.returns = c.returns[from*c.episodes : to*c.episodes]
	return &out
}

// reset sets every agent to the start of its first episode.
func (c *evalBatch) reset(seed uint64, at ...temperatures) {
	c.seed, c.temperatures = seed, append(c.temperatures[:0], at...)
	c.live, c.runs, c.tokens, c.regions = len(c.agents), 0, 0, regionSums{}
	clear(c.returns)
	for i := range c.agents {
		a := &c.agents[i]
		a.context.reset()
		if e, chance := a.env.(world.Seeded); chance {
			e.Seed(seed, c.number(i))
		} else {
			a.env.Reset()
		}
		a.steps, a.episode, a.clock, a.acting = 0, 0, 0, false
		a.env.Observe(a.context.observe(-1, -1))
	}
}

// run lets every agent finish its episodes. progress receives the number of steps that the slowest
// agent has done, of all its steps. It may be nil.
func (c *evalBatch) run(ctx context.Context, progress func(done, of int)) error {
	defer c.hands(c.worth())()
	return c.net.inside(func() error { return c.toTheEnd(ctx, progress) })
}

func (c *evalBatch) toTheEnd(ctx context.Context, progress func(done, of int)) error {
	for c.live > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.turn(); err != nil {
			return err
		}
		if progress != nil {
			progress(c.slowest(), c.life())
		}
	}
	return nil
}

// life returns the maximum number of steps per agent.
func (c *evalBatch) life() int { return c.episodes * c.game.Limit() }

// slowest returns the steps of the slowest agent. It counts finished episodes at their maximum
// length.
func (c *evalBatch) slowest() int {
	n := c.life()
	for i := range c.agents {
		a := &c.agents[i]
		n = min(n, a.episode*c.game.Limit()+a.clock)
	}
	return n
}

// lived returns the number of steps of all agents.
func (c *evalBatch) lived() (n int) {
	for i := range c.agents {
		n += c.agents[i].steps
	}
	return n
}

// turn feeds every agent its next token. An agent that has read all its tokens then acts. If a row
// may read a token of another context, the rows of finished agents help agents that read a pruned
// context again. The logits of a token do not depend on its row.
func (c *evalBatch) turn() error {
	index, at, of, _ := c.net.buffers()
	c.each(c.feedPart)
	behind := 0
	for i := range c.parts {
		behind += c.parts[i].behind
		c.parts[i].behind = 0
	}
	if of != nil && behind > 0 && c.live < len(c.agents) {
		c.help(behind, index, at, of)
	}
	if err := c.net.forward(); err != nil {
		return err
	}
	c.runs++
	c.each(c.actPart)
	for i := range c.parts {
		p := &c.parts[i]
		c.tokens += p.tokens
		c.live -= p.ended
		c.regions.merge(&p.regions)
		p.tokens, p.ended, p.regions = 0, 0, regionSums{}
	}
	return nil
}

// feedAgents feeds the agents of a part their next tokens.
func (c *evalBatch) feedAgents(part int) {
	index, at, of, _ := c.net.buffers()
	p := &c.parts[part]
	for i := p.from; i < p.to; i++ {
		a := &c.agents[i]
		if of != nil {
			of[i] = int32(i)
		}
		if a.episode == c.episodes {
			// a token without content at position 0 of an unused context
			fields := index[i*c.fields:][:c.fields]
			for f := range fields {
				fields[f] = -1
			}
			at[i], a.acting = 0, false
			continue
		}
		if c.feed(a, i, index, at, p); !a.acting {
			p.behind++
		}
	}
}

// actAgents picks the next action of each agent in the part that has read all its tokens.
func (c *evalBatch) actAgents(part int) {
	_, _, _, logits := c.net.buffers()
	p := &c.parts[part]
	for i := p.from; i < p.to; i++ {
		if a := &c.agents[i]; a.acting {
			c.act(i, logits[a.row*c.width:][:c.width], p)
		}
	}
}

// feed writes an agent's next token into a row.
func (c *evalBatch) feed(a *agent, row int, index, at []int32, p *part) {
	at[row], a.acting = a.context.next(index[row*c.fields:][:c.fields])
	a.row = row
	p.tokens++
}

// part is the agents that one goroutine handles, and their contribution to the sums of a turn.
type part struct {
	from, to      int
	behind, ended int
	tokens        int64
	regions       regionSums
	_             [64]byte // keeps parts in separate cache lines
}

// divide partitions the agents into n parts.
func (c *evalBatch) divide(n int) {
	c.parts = make([]part, n)
	for k := range c.parts {
		c.parts[k].from, c.parts[k].to = k*len(c.agents)/n, (k+1)*len(c.agents)/n
	}
}

// partWords is the number of token words that justify another goroutine. mostParts limits the
// goroutines, because several evaluations may share a machine.
const (
	partWords = 1 << 13
	mostParts = 4
)

// worth returns the number of parts that is worth its goroutines.
func (c *evalBatch) worth() int {
	return max(1, min(len(c.agents)*c.fields/partWords, mostParts, runtime.GOMAXPROCS(0), len(c.agents)))
}

// hands starts a goroutine for each part but the first. stop ends them.
func (c *evalBatch) hands(parts int) (stop func()) {
	c.divide(parts)
	c.done = make(chan struct{}, len(c.parts))
	for k := 1; k < len(c.parts); k++ {
		work := make(chan func(int), 1)
		c.work = append(c.work, work)
		go func() {
			for do := range work {
				do(k)
				c.done <- struct{}{}
			}
		}()
	}
	return func() {
		for _, work := range c.work {
			close(work)
		}
		c.work = nil
		c.divide(1)
	}
}

// each calls do for every part and waits for all calls.
func (c *evalBatch) each(do func(part int)) {
	for _, work := range c.work {
		work <- do
	}
	do(0)
	for range c.work {
		<-c.done
	}
}

// help assigns the idle rows to the agents that have unread tokens, in equal numbers.
func (c *evalBatch) help(behind int, index, at, of []int32) {
	c.idle = c.idle[:0]
	for i := range c.agents {
		if c.agents[i].episode == c.episodes {
			c.idle = append(c.idle, int32(i))
		}
	}
	idle := c.idle
	for i := range c.agents {
		if len(idle) == 0 || behind == 0 {
			return
		}
		a := &c.agents[i]
		if a.acting || a.episode == c.episodes {
			continue
		}
		for each := (len(idle) + behind - 1) / behind; each > 0 && !a.acting; each-- {
			row := int(idle[0])
			idle = idle[1:]
			of[row] = int32(i)
			c.feed(a, row, index, at, &c.parts[0])
		}
		behind--
	}
}

// act takes one step of agent i. Of its random words, word 0 selects the action and word 1 decides
// whether the region ends.
func (c *evalBatch) act(i int, logits []float32, p *part) {
	a := &c.agents[i]
	w := rng.At(c.seed, c.number(i), uint32(a.steps), rng.Agent)
	actions, types := logits[:c.space.Actions], logits[c.space.Actions:]
	temperature := c.temperaturesOf(i).of(&a.context)
	action := choose(actions, temperature, w[0])
	c.see(a, i)
	reward, finished := a.env.Step(action)
	c.returns[i*c.episodes+a.episode] += c.space.Rewards[reward]
	a.steps++
	a.clock++
	if finished {
		c.see(a, i)
		if a.episode++; a.episode == c.episodes {
			p.ended++
			return
		}
		a.env.Reset()
		a.clock = 0
	}
	if x := &a.context; x.rules.compressed {
		forced := x.region() >= x.rules.longest
		ends := [2]float32{types[model.TypeTransition], types[model.TypeEnd]}
		if forced || choose(ends[:], temperature, w[1]) == 1 {
			p.regions.add(x.region(), forced)
			x.end()
		}
	}
	a.env.Observe(a.context.observe(action, reward))
}

// see records agent i's observation in its first and in its latest episode.
func (c *evalBatch) see(a *agent, i int) {
	for _, w := range [...]*walk{&c.first[i], &c.last[i]} {
		if w == &c.first[i] && a.episode > 0 {
			continue
		}
		n := len(c.space.Fields)
		w.n = a.clock
		a.env.Observe(w.seen[a.clock*n:][:n])
	}
}

// temperatures holds the temperatures of an agent: use applies while its context holds a reward
// above the lowest one, search applies before that.
type temperatures struct{ use, search float64 }

func (h temperatures) of(c *agentContext) float64 {
	if c.paid > 0 {
		return h.use
	}
	return h.search
}

// choose samples from the softmax of logits/temperature with one random word. At temperature 0 it
// returns the largest logit, the first among equals.
func choose(logits []float32, temperature float64, word uint32) int {
	best := 0
	for k, v := range logits {
		if v > logits[best] {
			best = k
		}
	}
	if temperature == 0 {
		return best
	}
	var weights [world.MaxActions]float64
	sum := 0.0
	for k, v := range logits {
		weights[k] = math.Exp(float64(v-logits[best]) / temperature)
		sum += weights[k]
	}
	left := float64(rng.Float(word)) * sum
	for k := range logits {
		if left -= weights[k]; left < 0 {
			return k
		}
	}
	return best // rounding made the sum too small
}
