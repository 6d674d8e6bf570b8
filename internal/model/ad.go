package model

import (
	"fmt"
	"slices"

	"haul/internal/kernel"
	"haul/internal/plan"
)

// ADConfig holds the sizes of the in-context agent.
type ADConfig struct {
	Width, Heads, Layers int
	KVHeads              int          // heads of keys and values, each shared by a group of Heads; 0: Heads
	Feed                 int          // width of the feed-forward layer
	Positions            int          // length of the longest context: rows of the position table
	Rotary               bool         // rotary positions instead of a table
	Observed             []Vocabulary // fields of an observation, in the order of a token
	Actions              int
	Rewards              int     // number of values of a reward
	Values               bool    // a head of action and state values, besides those of actions and types
	Dropout              float32 // of the attention and feed-forward outputs
	AttentionDropout     float32 // of the attention's probabilities
	DropoutKey           uint64
}

// columns returns the number of columns of queries, keys and values.
func (c *ADConfig) columns() int { return c.Width + 2*c.KVHeads*(c.Width/c.Heads) }

// AD is the in-context agent of Algorithm Distillation (Laskin et al. 2023): a pre-norm causal
// transformer over transitions and markers. A token is the sum of its fields' embeddings. One head
// predicts the next action, another one the type of the next token.
type AD struct {
	cfg          ADConfig
	layout       kernel.Layout
	tables       []int // by field of a token; rotary positions have no table
	layers       []adLayer
	normG, normB int
	headW, headB int
	valW, valB   int // with Values
}

type adLayer struct {
	norm1G, norm1B, qkv, outW, outB        int
	norm2G, norm2B, upW, upB, downW, downB int
}

// adSites is the number of dropouts of a layer: attention, its output, the feed-forward output.
const adSites = 3

// NewAD returns the agent with its parameter layout.
func NewAD(cfg ADConfig) (*AD, error) {
	switch {
	case cfg.Width < 1 || cfg.Heads < 1 || cfg.Layers < 1 || cfg.Feed < 1 || cfg.Positions < 1 || len(cfg.Observed) < 1 || cfg.Actions < 1 || cfg.Rewards < 1:
		return nil, fmt.Errorf("model AD: width %d, heads %d, layers %d, feed-forward %d, positions %d, observed fields %d, actions %d and rewards %d must be at least 1",
			cfg.Width, cfg.Heads, cfg.Layers, cfg.Feed, cfg.Positions, len(cfg.Observed), cfg.Actions, cfg.Rewards)
	case cfg.Width%cfg.Heads != 0:
		return nil, fmt.Errorf("model AD: tf_n_embd %d is not divisible by tf_n_head %d", cfg.Width, cfg.Heads)
	case cfg.KVHeads < 0 || cfg.KVHeads > cfg.Heads || cfg.KVHeads > 0 && cfg.Heads%cfg.KVHeads != 0:
		return nil, fmt.Errorf("model AD: tf_n_head %d is not divisible by tf_n_kv_head %d", cfg.Heads, cfg.KVHeads)
	case cfg.Rotary && cfg.Width/cfg.Heads%2 != 0:
		return nil, fmt.Errorf("model AD: rotary positions turn pairs of a head's columns, and tf_n_embd %d over tf_n_head %d is %d: make it even, or set tf_positions to learned",
			cfg.Width, cfg.Heads, cfg.Width/cfg.Heads)
	case cfg.Layers*adSites > 256:
		return nil, fmt.Errorf("model AD: %d layers; the dropout masks number at most %d", cfg.Layers, 256/adSites)
	}
	if cfg.KVHeads == 0 {
		cfg.KVHeads = cfg.Heads
	}
	m := &AD{cfg: cfg}
	d := cfg.Width
	add := m.layout.Add
	linear := func(name string, in, out int) (w, b int) {
		return add(name+".weight", kernel.InitUniform, in, out, in), add(name+".bias", kernel.InitUniform, in, out)
	}
	norm := func(name string) (g, b int) {
		return add(name+".weight", kernel.InitOne, d, d), add(name+".bias", kernel.InitZero, d, d)
	}
	fields := append(slices.Clone(cfg.Observed), Vocabulary{"action", cfg.Actions}, Vocabulary{"reward", cfg.Rewards}, Vocabulary{"type", TokenTypes})
	if !cfg.Rotary {
		fields = append(fields, Vocabulary{"position", cfg.Positions})
	}
	for _, v := range fields {
		if v.Size < 1 {
			return nil, fmt.Errorf("model AD: field %s has %d values; it must have at least 1", v.Name, v.Size)
		}
		m.tables = append(m.tables, add("embed."+v.Name+".weight", kernel.InitUniform, d, v.Size, d))
	}
	for i := range cfg.Layers {
		var l adLayer
		at := fmt.Sprintf("layers.%d.", i)
		l.norm1G, l.norm1B = norm(at + "norm1")
		l.qkv = add(at+"qkv.weight", kernel.InitUniform, d, cfg.columns(), d)
		l.outW, l.outB = linear(at+"out", d, d)
		l.norm2G, l.norm2B = norm(at + "norm2")
		l.upW, l.upB = linear(at+"up", d, cfg.Feed)
		l.downW, l.downB = linear(at+"down", cfg.Feed, d)
		m.layers = append(m.layers, l)
	}
	m.normG, m.normB = norm("norm")
	m.headW, m.headB = linear("head", d, cfg.Actions+TokenTypes)
	if cfg.Values {
		m.valW, m.valB = linear("values", d, 2*cfg.Actions+1)
	}
	return m, nil
}

// Layout returns the layout of the parameters.
func (m *AD) Layout() *kernel.Layout { return &m.layout }

// Config returns the sizes, with KVHeads set.
func (m *AD) Config() ADConfig { return m.cfg }

// Fields returns the number of 32-bit words of a token.
func (m *AD) Fields() int { return TokenFields(len(m.cfg.Observed)) }

// Columns returns the number of logits of the two heads: actions, token types.
func (m *AD) Columns() []int { return []int{m.cfg.Actions, TokenTypes} }

// The names of the heads: the next action, and the type of the next token.
const (
	HeadAction = "action"
	HeadType   = "type"
)

// Heads returns the names of the classifiers, in the order of Columns.
func (m *AD) Heads() []string { return []string{HeadAction, HeadType} }

// Sequences holds the tensors of a training batch: I32 [B,T,Fields], [B,T,2], [B,T], as
// kernel.Regions writes them.
type Sequences struct {
	Index, Labels, First *kernel.Tensor
}

// Encode records the network over whole rows of tokens and returns the heads' logits
// [B,T,Actions+TokenTypes]. train turns dropout on.
func (m *AD) Encode(p *plan.Plan, in Sequences, train bool) *kernel.Tensor {
	return m.logits(p, m.encode(p, in, train))
}

// EncodeValues is Encode for a model with values. It also returns them, [B,T,2·Actions+1]: two for
// each action, and one for the state.
func (m *AD) EncodeValues(p *plan.Plan, in Sequences, train bool) (logits, values *kernel.Tensor) {
	h := m.encode(p, in, train)
	return m.logits(p, h), p.Linear("values", h, p.Weight(0, m.valW), p.Weight(0, m.valB), nil)
}

func (m *AD) logits(p *plan.Plan, h *kernel.Tensor) *kernel.Tensor {
	return p.Linear("head", h, p.Weight(0, m.headW), p.Weight(0, m.headB), nil)
}

// encode records the network up to the input of its heads.
func (m *AD) encode(p *plan.Plan, in Sequences, train bool) *kernel.Tensor {
	tokens := in.Index.Shape[1]
	drop := func(layer, site int, rate float32) kernel.Drop {
		if !train {
			return kernel.Drop{}
		}
		return kernel.Drop{Rate: rate, Site: layer*adSites + site, Nodes: tokens, Seed: m.cfg.DropoutKey}
	}
	return m.record(p, in.Index, drop, func(name string, layer int, qkv *kernel.Tensor) *kernel.Tensor {
		if m.cfg.KVHeads < m.cfg.Heads {
			qkv = p.Spread(fmt.Sprintf("layers.%d.spread", layer), qkv, m.cfg.Heads, m.cfg.KVHeads)
		}
		return p.CausalAttention(name, qkv, in.First, m.cfg.Heads, drop(layer, 0, m.cfg.AttentionDropout))
	})
}

// Step records the network over one token per row, index [B,1,Fields]. Caches of `tokens` positions
// hold the past. at [B,1] is the token's position in the cache. of [B,1] is the instance whose
// cache the row uses; nil: its own.
func (m *AD) Step(p *plan.Plan, index, at, of *kernel.Tensor, tokens int) *kernel.Tensor {
	drop := func(int, int, float32) kernel.Drop { return kernel.Drop{} }
	return m.logits(p, m.record(p, index, drop, func(name string, _ int, qkv *kernel.Tensor) *kernel.Tensor {
		return p.CacheAttention(name, qkv, at, of, tokens, m.cfg.Heads, m.cfg.KVHeads)
	}))
}

// record records the network up to its heads; attend records the attention. The residual stream is
// fp32; inputs of matrix products may be bf16.
func (m *AD) record(p *plan.Plan, index *kernel.Tensor, drop func(layer, site int, rate float32) kernel.Drop,
	attend func(name string, layer int, qkv *kernel.Tensor) *kernel.Tensor) *kernel.Tensor {
	w := func(i int) *kernel.Tensor { return p.Weight(0, i) }
	tables := make([]*kernel.Tensor, len(m.tables))
	for f, t := range m.tables {
		tables[f] = w(t)
	}
	x := p.Embed("embed", index, tables...)
	for i, l := range m.layers {
		at := func(s string) string { return fmt.Sprintf("layers.%d.%s", i, s) }
		h := plan.Compact(p.Norm(at("norm1"), x, w(l.norm1G), w(l.norm1B)))
		qkv := plan.Compact(p.Linear(at("qkv"), h, w(l.qkv), nil, nil))
		if m.cfg.Rotary {
			qkv = plan.Compact(p.Rotate(at("rotate"), qkv, index, m.cfg.Heads, m.cfg.KVHeads, m.cfg.Positions))
		}
		y := plan.Compact(attend(at("attention"), i, qkv))
		x = p.LinearDrop(at("out"), y, w(l.outW), w(l.outB), x, drop(i, 1, m.cfg.Dropout))
		h = plan.Compact(p.Norm(at("norm2"), x, w(l.norm2G), w(l.norm2B)))
		u := p.LinearGELU(at("up"), h, w(l.upW), w(l.upB))
		x = p.LinearDrop(at("down"), u, w(l.downW), w(l.downB), x, drop(i, 2, m.cfg.Dropout))
	}
	return plan.Compact(p.Norm("norm", x, w(m.normG), w(m.normB)))
}

// FLOPs returns the operations of a forward pass over a row with one sequence of t tokens, by
// formula (a multiply-add is two). Attention counts the pairs that the causal mask leaves.
func (m *AD) FLOPs(t int) int64 {
	d, f, n := int64(m.cfg.Width), int64(m.cfg.Feed), int64(t)
	layer := 2*d*int64(m.cfg.columns()) + 2*d*d + 4*d*f
	heads := m.cfg.Actions + TokenTypes
	if m.cfg.Values {
		heads += 2*m.cfg.Actions + 1
	}
	return n*(int64(m.cfg.Layers)*layer+2*d*int64(heads)) + int64(m.cfg.Layers)*4*d*n*(n+1)/2
}
