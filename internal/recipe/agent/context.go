package agent

import (
	"fmt"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
)

// What a reader could break: a context is built as kernel.RegionSpec builds training sequences: it
// begins with <compress> or with a transition, positions count from its first token, and its last
// token is the transition that the agent has still to act on.

// contextRules say how a context grows and what goes when it is full.
type contextRules struct {
	observed   int  // fields of a token that tell of observations
	both       bool // half of these are of the observation before the last action
	width      int  // words of a token without its position
	capacity   int  // tokens that a context ever holds
	compressed bool
	longest    int // transitions after which a region ends by force
	keep       int // without compression: the transitions that stay when the context is full
}

// newContextRules takes the settings of an agent that observes so many fields, in episodes of at
// most horizon steps. Without compression a full context gives up one episode, its oldest, and the
// rest is read again. So it never holds fewer than n_transit - horizon transitions, and reads each
// of them about n_transit/horizon times.
func newContextRules(c *config.AD, observed, horizon int) (contextRules, error) {
	if c.LastObservation {
		observed *= 2
	}
	r := contextRules{observed: observed, both: c.LastObservation, width: model.TokenFields(observed) - 1, capacity: c.NTransit, compressed: c.UseCompressedContext, longest: c.CompressInterval, keep: max(0, c.NTransit-horizon)}
	if r.compressed {
		// <compress> region </compress> <compress> region: the next </compress> prunes
		r.capacity = 2*r.longest + 3
	}
	return r, checkTokens(c)
}

// own is the fields of an observation.
func (r *contextRules) own() int {
	if r.both {
		return r.observed / 2
	}
	return r.observed
}

// checkTokens refuses sequences that are longer than the position table, or than attention's
// dropout has random numbers for.
func checkTokens(c *config.AD) error {
	n := c.Tokens()
	if drop := (kernel.Drop{Rate: float32(c.AttnDropout)}); drop.Rate > 0 && !drop.Numbered(c.NHead*n, n) {
		return fmt.Errorf("a context of %d tokens with %d heads has more attention weights than dropout can tell apart: shorten it, or set tf_attn_dropout to 0", n, c.NHead)
	}
	if n > c.NTransit {
		return fmt.Errorf("a context of %d tokens is longer than the position table: raise n_transit from %d, or lower compress_interval", n, c.NTransit)
	}
	return nil
}

// agentContext is one agent's memory. Its tokens lie in a buffer of fixed size: what the network is
// fed, the position apart.
type agentContext struct {
	rules  *contextRules
	words  []int32 // of the tokens, rules.width each; capacity is the rules', never grown
	fed    int     // tokens that the network has read: the next goes to this position
	open   int     // place of the current region's <compress>
	prunes int
	paid   int // tokens that tell of a reward above the lowest
	latest int // place of the last transition; below 0: none
	seen   []int32
}

func newAgentContext(r *contextRules) agentContext {
	c := agentContext{rules: r, words: make([]int32, 0, r.capacity*r.width), seen: make([]int32, r.own())}
	c.reset()
	return c
}

// reset forgets everything.
func (c *agentContext) reset() {
	c.words, c.fed, c.open, c.prunes, c.paid, c.latest = c.words[:0], 0, 0, 0, 0, -1
	if c.rules.compressed {
		c.mark(model.TypeStart)
	}
}

// tokens is how many there are.
func (c *agentContext) tokens() int { return len(c.words) / c.rules.width }

// push adds a token of nothing but its type, and returns its fields.
func (c *agentContext) push(kind int32) []int32 {
	if len(c.words) == cap(c.words) {
		panic("agent: a context outgrew its rules")
	}
	n := len(c.words)
	c.words = c.words[:n+c.rules.width]
	token := c.words[n:]
	for i := range token {
		token[i] = -1
	}
	token[c.rules.observed+model.AfterType] = kind
	return token
}

func (c *agentContext) mark(kind int32) { c.push(kind) }

// observe adds the transition that the agent acts on next, with its last action and reward, and
// returns where the observation is to be written.
func (c *agentContext) observe(action, reward int) []int32 {
	if c.latest >= 0 { // before it goes, or is written over
		copy(c.seen, c.words[c.latest*c.rules.width:])
	}
	if !c.rules.compressed && c.tokens() == c.rules.capacity {
		c.restart(c.rules.capacity - c.rules.keep)
		c.prunes++
	}
	token, n := c.push(model.TypeTransition), c.rules.observed
	c.latest = c.tokens() - 1
	if action >= 0 && n > c.rules.own() {
		copy(token[c.rules.own():n], c.seen)
	}
	token[n+model.AfterAction], token[n+model.AfterReward] = int32(action), int32(reward)
	if reward > 0 {
		c.paid++
	}
	return token[:c.rules.own()]
}

// region is the number of transitions in the current region.
func (c *agentContext) region() int { return c.tokens() - c.open - 1 }

// end closes the current region and opens the next. When it was the second, the older one goes.
func (c *agentContext) end() {
	if c.open > 0 {
		c.restart(c.open)
		c.prunes++
	}
	c.mark(model.TypeEnd)
	c.open = c.tokens()
	c.mark(model.TypeStart)
}

// restart drops the oldest n tokens; those that stay get positions from 0 on and are read again.
func (c *agentContext) restart(n int) {
	for i := range n {
		if c.words[i*c.rules.width+c.rules.observed+model.AfterReward] > 0 {
			c.paid--
		}
	}
	c.latest -= n
	left := copy(c.words, c.words[n*c.rules.width:])
	c.words, c.fed = c.words[:left], 0
}

// next writes the fields of the token to be read next and returns its position. acting says that it
// is the one to act on.
func (c *agentContext) next(fields []int32) (at int32, acting bool) {
	at, width := int32(c.fed), c.rules.width
	copy(fields, c.words[c.fed*width:][:width])
	fields[width] = at
	c.fed++
	return at, c.fed == c.tokens()
}
