package agent

import (
	"fmt"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
)

// A context is a prefix of a training sequence of kernel.RegionSpec. It begins with <compress> or
// with a transition, positions count from its first token, and its last token is the transition
// that the agent acts on next.

// contextRules configure how a context grows, and what is removed when it is full.
type contextRules struct {
	observed   int  // number of a token's fields that describe observations
	both       bool // the first half of these describes the observation before the last action
	width      int  // words per token, without the position
	capacity   int  // largest number of tokens in a context
	compressed bool
	longest    int // transitions after which a region must end
	keep       int // without compression: the number of transitions that stay when the context is full
}

// newContextRules returns the rules of an agent with the given number of observation fields, in
// episodes of at most horizon steps. Without compression a full context drops its oldest episode
// and the rest is read again. So it holds at least n_transit - horizon transitions and reads each
// of them about n_transit/horizon times.
func newContextRules(c *config.AD, observed, horizon int) (contextRules, error) {
	if c.LastObservation {
		observed *= 2
	}
	r := contextRules{observed: observed, both: c.LastObservation, width: model.TokenFields(observed) - 1, capacity: c.NTransit, compressed: c.UseCompressedContext, longest: c.CompressInterval, keep: max(0, c.NTransit-horizon)}
	if r.compressed {
		// <compress> region </compress> <compress> region: the next </compress> prunes.
		r.capacity = 2*r.longest + 3
	}
	return r, checkTokens(c)
}

// own returns the number of fields of one observation.
func (r *contextRules) own() int {
	if r.both {
		return r.observed / 2
	}
	return r.observed
}

// checkTokens refuses sequences that are longer than the position table, or longer than the random
// numbers of attention's dropout allow.
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

// agentContext is the memory of an agent: the tokens that the network reads, without positions, in
// a buffer of fixed size.
type agentContext struct {
	rules  *contextRules
	words  []int32 // rules.width words per token; its capacity never grows
	fed    int     // number of tokens that the network has read, and the position of the next one
	open   int     // index of the current region's <compress>
	prunes int
	paid   int // number of tokens that hold a reward above the lowest
	latest int // index of the last transition; negative: none
	seen   []int32
}

func newAgentContext(r *contextRules) agentContext {
	c := agentContext{rules: r, words: make([]int32, 0, r.capacity*r.width), seen: make([]int32, r.own())}
	c.reset()
	return c
}

// reset removes all tokens.
func (c *agentContext) reset() {
	c.words, c.fed, c.open, c.prunes, c.paid, c.latest = c.words[:0], 0, 0, 0, 0, -1
	if c.rules.compressed {
		c.mark(model.TypeStart)
	}
}

// tokens returns the number of tokens.
func (c *agentContext) tokens() int { return len(c.words) / c.rules.width }

// push appends a token that has only a type, and returns its fields.
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

// observe appends the transition that the agent acts on next, with its last action and reward. It
// returns the fields that the caller fills with the observation.
func (c *agentContext) observe(action, reward int) []int32 {
	if c.latest >= 0 { // before it is dropped or overwritten
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

// region returns the number of transitions in the current region.
func (c *agentContext) region() int { return c.tokens() - c.open - 1 }

// end closes the current region and opens the next one. It drops the previous region, if the
// context contains one.
func (c *agentContext) end() {
	if c.open > 0 {
		c.restart(c.open)
		c.prunes++
	}
	c.mark(model.TypeEnd)
	c.open = c.tokens()
	c.mark(model.TypeStart)
}

// restart drops the oldest n tokens. The others get positions from 0 on and are read again.
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

// next writes the fields of the token to read next and returns its position. acting reports whether
// the agent acts after this token.
func (c *agentContext) next(fields []int32) (at int32, acting bool) {
	at, width := int32(c.fed), c.rules.width
	copy(fields, c.words[c.fed*width:][:width])
	fields[width] = at
	c.fed++
	return at, c.fed == c.tokens()
}
