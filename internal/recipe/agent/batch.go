package agent

import (
	"context"
	"math"

	"haul/internal/model"
	"haul/internal/rng"
	"haul/internal/world"
)

// What a reader could break: agents are independent. What agent i does is a function of the seed,
// of i and of what its own context holds, so neither the others nor their number change it. Nothing
// here allocates once a batch is made.

// forwarder is the network as agents use it: it reads one token a row and writes the logits of that
// row's actions and token types. The slices are index [rows·TokenFields], at [rows] and logits
// [rows·(actions+types)].
type forwarder interface {
	buffers() (index, at []int32, logits []float32)
	forward() error
}

// evalBatch is an evaluation batch: agents that live through episodes at the same time, each at its
// own pace: reading a pruned context again takes one agent longer than another.
type evalBatch struct {
	room        world.Room
	episodes    int
	seed        uint64
	temperature float64
	net         forwarder
	agents      []agent
	live        int // agents with episodes left
	runs        int64
	tokens      int64 // read by all agents
	regions     regionSums
	returns     []int32      // [agent, episode]
	first, last []world.Step // the first and the latest episode of each agent
	width       int          // of a row of logits
	from        int          // the number of the first agent: others live elsewhere
}

type agent struct {
	context agentContext
	goal    world.Goal
	rule    world.Rule  // the goal's
	state   world.State // of which the agent sees the cell
	acting  bool
	steps   int // in its whole life
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

// newEvalBatch puts `each` agents on every goal; agent i stands on goal i/each.
func newEvalBatch(room world.Room, goals []world.Goal, each, episodes int, rules *contextRules, net forwarder) *evalBatch {
	return newEvalShare(room, goals, each, episodes, rules, net, 0, len(goals)*each)
}

// newEvalShare has agents [from, to) of an evaluation batch alone.
func newEvalShare(room world.Room, goals []world.Goal, each, episodes int, rules *contextRules, net forwarder, from, to int) *evalBatch {
	c := &evalBatch{room: room, episodes: episodes, net: net, agents: make([]agent, to-from), width: world.NumActions + model.TokenTypes, from: from}
	for i := range c.agents {
		goal := goals[(from+i)/each]
		c.agents[i] = agent{context: newAgentContext(rules), goal: goal, rule: goal.Rule()}
	}
	c.returns = make([]int32, len(c.agents)*episodes)
	c.first, c.last = make([]world.Step, len(c.agents)*room.Horizon), make([]world.Step, len(c.agents)*room.Horizon)
	return c
}

// reset puts every agent at the beginning of its life.
func (c *evalBatch) reset(seed uint64, temperature float64) {
	c.seed, c.temperature = seed, temperature
	c.live, c.runs, c.tokens, c.regions = len(c.agents), 0, 0, regionSums{}
	clear(c.returns)
	for i := range c.agents {
		a := &c.agents[i]
		a.context.reset()
		a.state, a.steps, a.acting = world.StateOf(c.room.Start(), 0), 0, false
		a.context.observe(observation(a.state.Cell(), -1, -1))
	}
}

func observation(c world.Cell, action, reward int32) token {
	return token{int32(c.X()), int32(c.Y()), action, reward, model.TypeTransition}
}

// run lets every agent live to its end. progress, which may be nil, hears how many steps the
// slowest agent has done.
func (c *evalBatch) run(ctx context.Context, progress func(done, of int)) error {
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

// life is the number of steps of an agent.
func (c *evalBatch) life() int { return c.episodes * c.room.Horizon }

func (c *evalBatch) slowest() int {
	n := c.life()
	for i := range c.agents {
		n = min(n, c.agents[i].steps)
	}
	return n
}

// turn feeds every agent its next token and lets those act that have read all.
func (c *evalBatch) turn() error {
	index, at, logits := c.net.buffers()
	for i := range c.agents {
		a := &c.agents[i]
		fields := index[i*model.TokenFields:][:model.TokenFields]
		// idle: a token of nothing, over the first position of a context that nobody reads
		if a.steps == c.life() {
			for f := range fields {
				fields[f] = -1
			}
			at[i], a.acting = 0, false
			continue
		}
		at[i], a.acting = a.context.next(fields)
		c.tokens++
	}
	if err := c.net.forward(); err != nil {
		return err
	}
	c.runs++
	for i := range c.agents {
		if c.agents[i].acting {
			c.act(i, logits[i*c.width:][:c.width])
		}
	}
	return nil
}

// act takes one step in agent i's room. The words of its draw: 0 the action, 1 whether the region
// ends.
func (c *evalBatch) act(i int, logits []float32) {
	a := &c.agents[i]
	w := rng.At(c.seed, uint64(c.from+i), uint32(a.steps), rng.Agent)
	actions, types := logits[:world.NumActions], logits[world.NumActions:]
	action := uint8(choose(actions, c.temperature, w[0]))
	was := a.state.Cell()
	var reward uint8
	a.state, reward = a.rule.Enter(a.state, c.room.Move(was, action))
	episode, clock := a.steps/c.room.Horizon, a.steps%c.room.Horizon
	c.returns[i*c.episodes+episode] += int32(reward)
	step := world.MakeStep(was, action, reward)
	if episode == 0 {
		c.first[i*c.room.Horizon+clock] = step
	}
	c.last[i*c.room.Horizon+clock] = step // the final episode's is written last
	if a.steps++; a.steps == c.life() {
		c.live--
		return
	}
	if clock == c.room.Horizon-1 {
		a.state = world.StateOf(c.room.Start(), 0)
	}
	if x := &a.context; x.rules.compressed {
		forced := x.region() >= x.rules.longest
		ends := [2]float32{types[model.TypeTransition], types[model.TypeEnd]}
		if forced || choose(ends[:], c.temperature, w[1]) == 1 {
			c.regions.add(x.region(), forced)
			x.end()
		}
	}
	a.context.observe(observation(a.state.Cell(), int32(action), int32(reward)))
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
	weight := func(v float32) float64 { return math.Exp(float64(v-logits[best]) / temperature) }
	sum := 0.0
	for _, v := range logits {
		sum += weight(v)
	}
	left := float64(rng.Float(word)) * sum
	for k, v := range logits {
		if left -= weight(v); left < 0 {
			return k
		}
	}
	return best // rounding used the sum up
}
