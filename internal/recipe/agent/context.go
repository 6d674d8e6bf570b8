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
	capacity   int // tokens that a context ever holds
	compressed bool
	longest    int // transitions after which a region ends by force
	keep       int // without compression: the transitions that stay when the context is full
}

// newContextRules takes the settings of an agent in a room with that horizon. Without compression a
// full context gives up one episode, its oldest, and the rest is read again. So it never holds
// fewer than n_transit - horizon transitions, and reads each of them about n_transit/horizon times.
func newContextRules(c *config.AD, horizon int) (contextRules, error) {
	r := contextRules{capacity: c.NTransit, compressed: c.UseCompressedContext, longest: c.CompressInterval, keep: max(0, c.NTransit-horizon)}
	if r.compressed {
		// <compress> region </compress> <compress> region: the next </compress> prunes
		r.capacity = 2*r.longest + 3
	}
	return r, checkTokens(c)
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

// token is what the network is fed, its position apart.
type token struct{ x, y, action, reward, kind int32 }

func marker(kind int32) token { return token{-1, -1, -1, -1, kind} }

// agentContext is one agent's memory. Its tokens lie in a buffer of fixed size.
type agentContext struct {
	rules  *contextRules
	tokens []token // capacity is the rules'; never grown
	fed    int     // tokens that the network has read: the next goes to this position
	open   int     // place of the current region's <compress>
	prunes int
}

func newAgentContext(r *contextRules) agentContext {
	c := agentContext{rules: r, tokens: make([]token, 0, r.capacity)}
	c.reset()
	return c
}

// reset forgets everything.
func (c *agentContext) reset() {
	c.tokens, c.fed, c.open, c.prunes = c.tokens[:0], 0, 0, 0
	if c.rules.compressed {
		c.push(marker(model.TypeStart))
	}
}

func (c *agentContext) push(t token) {
	if len(c.tokens) == cap(c.tokens) {
		panic("train: a context outgrew its rules")
	}
	c.tokens = append(c.tokens, t)
}

// observe adds the transition that the agent acts on next.
func (c *agentContext) observe(t token) {
	if !c.rules.compressed && len(c.tokens) == c.rules.capacity {
		c.restart(c.rules.capacity - c.rules.keep)
		c.prunes++
	}
	c.push(t)
}

// region is the number of transitions in the current region.
func (c *agentContext) region() int { return len(c.tokens) - c.open - 1 }

// end closes the current region and opens the next. When it was the second, the older one goes.
func (c *agentContext) end() {
	if c.open > 0 {
		c.restart(c.open)
		c.prunes++
	}
	c.push(marker(model.TypeEnd))
	c.open = len(c.tokens)
	c.push(marker(model.TypeStart))
}

// restart drops the oldest n tokens; those that stay get positions from 0 on and are read again.
func (c *agentContext) restart(n int) {
	left := copy(c.tokens, c.tokens[n:])
	c.tokens, c.fed = c.tokens[:left], 0
}

// next writes the fields of the token to be read next and returns its position. acting says that it
// is the one to act on.
func (c *agentContext) next(fields []int32) (at int32, acting bool) {
	t := c.tokens[c.fed]
	fields[model.FieldX], fields[model.FieldY] = t.x, t.y
	fields[model.FieldAction], fields[model.FieldReward] = t.action, t.reward
	fields[model.FieldType], fields[model.FieldPosition] = t.kind, int32(c.fed)
	at = int32(c.fed)
	c.fed++
	return at, c.fed == len(c.tokens)
}
