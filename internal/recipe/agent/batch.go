package agent

import (
	"context"
	"math"
	"runtime"

	"haul/internal/model"
	"haul/internal/rng"
	"haul/internal/world"
)

// What a reader could break: agents are independent. What agent i does is a function of the
// seed, of i and of its own context, so neither the other agents nor their number change it. If
// several temperatures are tried at once, agents with the same number draw the same random words
// at each. Nothing here allocates once a batch is made.

// forwarder is the network as agents use it: it reads one token a row and writes the logits of that
// row's actions and token types. The slices are index [rows·fields of a token], at [rows], of
// [rows] and logits [rows·(actions+types)]. of says whose context the row's token is of, and is nil
// where that is always the row's own.
type forwarder interface {
	buffers() (index, at, of []int32, logits []float32)
	forward() error
	inside(loop func() error) error // runs a loop of forwards, and nothing else of the network
}

// evalBatch is an evaluation batch: agents that live through episodes at the same time, each at its
// own pace: reading a pruned context again takes one agent longer than another.
type evalBatch struct {
	game        world.Game
	space       world.Space
	episodes    int
	seed        uint64
	heats       []heat // tried at once: all agents at the first, then all at the second, ...
	group       int    // agents at each
	net         forwarder
	agents      []agent
	live        int // agents with episodes left
	runs        int64
	tokens      int64 // read by all agents
	regions     regionSums
	returns     []float64 // [agent, episode]
	first, last []walk    // the first and the latest episode of each agent
	fields      int       // of a token
	width       int       // of a row of logits
	from        int       // the number of the first agent: others live elsewhere
	idle        []int32   // rows whose agents' lives are over; the rest of the capacity is free

	parts             []part
	work              []chan func(part int) // of the goroutines that move the parts after the first
	done              chan struct{}
	feedPart, actPart func(part int) // methods: naming one anew would allocate at every turn
}

type agent struct {
	context agentContext
	task    world.Task
	env     world.Env
	acting  bool
	row     int // that its latest token was fed to
	steps   int // in its whole life
	episode int // episodes behind it
	clock   int // steps of the episode under way
}

// walk is what an agent observed in an episode: before each action, and after the last.
type walk struct {
	seen []int32 // [steps+1, fields of an observation]; the episode's limit bounds it
	n    int     // steps
}

// regionSums gather the lengths of regions that ended.
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

// merge adds those of others.
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

// newEvalBatch puts `each` agents on every goal; agent i stands on goal i/each.
func newEvalBatch(game world.Game, tasks []world.Task, each, episodes int, rules *contextRules, net forwarder) *evalBatch {
	return newEvalShare(game, tasks, each, episodes, rules, net, 0, len(tasks)*each)
}

// newEvalShare has agents [from, to) of an evaluation batch alone. Past the last goal the first
// follows again, for the next temperature.
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

// number is agent i's among those at its temperature: what it draws is a function of it.
func (c *evalBatch) number(i int) uint64 { return uint64((c.from + i) % c.group) }

// heatOf is agent i's temperatures.
func (c *evalBatch) heatOf(i int) heat { return c.heats[(c.from+i)/c.group] }

// at is the part of the batch that lives at the k-th temperature, of a batch that has all agents.
// Sums over all agents stay those of the whole.
func (c *evalBatch) at(k int) *evalBatch {
	out, from, to := *c, k*c.group, (k+1)*c.group
	out.agents, out.first, out.last = c.agents[from:to], c.first[from:to], c.last[from:to]
	out.returns = c.returns[from*c.episodes : to*c.episodes]
	return &out
}

// reset puts every agent at the beginning of its life.
func (c *evalBatch) reset(seed uint64, at ...heat) {
	c.seed, c.heats = seed, append(c.heats[:0], at...)
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

// run lets every agent live to its end. progress, which may be nil, hears how many steps the
// slowest agent has done.
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

// life is the most steps of an agent.
func (c *evalBatch) life() int { return c.episodes * c.game.Limit() }

// slowest is how far the slowest agent is, had every episode behind it taken its limit.
func (c *evalBatch) slowest() int {
	n := c.life()
	for i := range c.agents {
		a := &c.agents[i]
		n = min(n, a.episode*c.game.Limit()+a.clock)
	}
	return n
}

// lived is the steps of all agents.
func (c *evalBatch) lived() (n int) {
	for i := range c.agents {
		n += c.agents[i].steps
	}
	return n
}

// turn feeds every agent its next token and lets those act that have read all. Where a row may
// carry a token of another's context, the rows of lives that are over help those that read a pruned
// context again: a token's digits do not depend on its row.
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

// feedAgents gives the agents of a part their next tokens.
func (c *evalBatch) feedAgents(part int) {
	index, at, of, _ := c.net.buffers()
	p := &c.parts[part]
	for i := p.from; i < p.to; i++ {
		a := &c.agents[i]
		if of != nil {
			of[i] = int32(i)
		}
		if a.episode == c.episodes {
			// a token of nothing, over the first position of a context that nobody reads
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

// actAgents lets those of a part act that have read all.
func (c *evalBatch) actAgents(part int) {
	_, _, _, logits := c.net.buffers()
	p := &c.parts[part]
	for i := p.from; i < p.to; i++ {
		if a := &c.agents[i]; a.acting {
			c.act(i, logits[a.row*c.width:][:c.width], p)
		}
	}
}

// feed puts an agent's next token into a row.
func (c *evalBatch) feed(a *agent, row int, index, at []int32, p *part) {
	at[row], a.acting = a.context.next(index[row*c.fields:][:c.fields])
	a.row = row
	p.tokens++
}

// part is agents that one goroutine moves, and what they add to the sums of a turn.
type part struct {
	from, to      int
	behind, ended int
	tokens        int64
	regions       regionSums
	_             [64]byte // apart from the next one's
}

// divide cuts the agents into parts.
func (c *evalBatch) divide(n int) {
	c.parts = make([]part, n)
	for k := range c.parts {
		c.parts[k].from, c.parts[k].to = k*len(c.agents)/n, (k+1)*len(c.agents)/n
	}
}

// partWords is the words of tokens that are worth a goroutine of their own, and mostParts bounds
// them: several evaluations may share a machine.
const (
	partWords = 1 << 13
	mostParts = 4
)

// worth is how many parts pay.
func (c *evalBatch) worth() int {
	return max(1, min(len(c.agents)*c.fields/partWords, mostParts, runtime.GOMAXPROCS(0), len(c.agents)))
}

// hands starts a goroutine for each of so many parts but the first, until stop.
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

// each does something for every part, and waits for all.
func (c *evalBatch) each(do func(part int)) {
	for _, work := range c.work {
		work <- do
	}
	do(0)
	for range c.work {
		<-c.done
	}
}

// help deals the idle rows to the agents that are behind, as many to each.
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

// act takes one step of agent i. The words of its draw: 0 the action, 1 whether the region
// ends.
func (c *evalBatch) act(i int, logits []float32, p *part) {
	a := &c.agents[i]
	w := rng.At(c.seed, c.number(i), uint32(a.steps), rng.Agent)
	actions, types := logits[:c.space.Actions], logits[c.space.Actions:]
	temperature := c.heatOf(i).of(&a.context)
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

// see keeps what agent i observes, of its first episode and of the latest: the final one's is
// written last.
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

// heat is the temperatures of an agent: while a reward above the lowest is in its context, and
// while it still searches for one.
type heat struct{ use, search float64 }

func (h heat) of(c *agentContext) float64 {
	if c.paid > 0 {
		return h.use
	}
	return h.search
}

// choose draws from the softmax of logits/temperature by one word; at temperature 0 it takes the
// largest, the lowest on ties.
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
	return best // rounding used the sum up
}
