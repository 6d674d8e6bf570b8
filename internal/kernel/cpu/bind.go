package cpu

import (
	"fmt"

	"haul/internal/kernel"
)

// binder turns ops into closures over resolved memory and collects what scratch they need.
type binder struct {
	r         *runner
	scratch   int // floats, the largest need of any op
	words     int // 64-bit words, likewise
	bits      int // 32-bit words of dropout masks, all of them
	drops     map[dropKey]*dropper
	rotations map[int][]float32 // by a head's width
	seen      map[int]bool      // gradient offsets that an earlier op of the shard writes
}

func (b *binder) need(floats, words int) {
	b.scratch = max(b.scratch, floats)
	b.words = max(b.words, words)
}

func (b *binder) bind(op kernel.Op) (func(*worker), error) {
	switch o := op.(type) {
	case *kernel.Linear:
		return b.linear(o), nil
	case *kernel.LinearGradX:
		return b.linearGradX(o), nil
	case *kernel.LinearGradW:
		return b.linearGradW(o), nil
	case *kernel.Norm:
		return b.norm(o), nil
	case *kernel.NormGrad:
		return b.normGrad(o), nil
	case *kernel.GLU:
		return b.glu(o), nil
	case *kernel.GLUGrad:
		return b.gluGrad(o), nil
	case *kernel.Dropout:
		return b.dropout(o), nil
	case *kernel.MeanNodes:
		return b.meanNodes(o), nil
	case *kernel.MeanNodesGrad:
		return b.meanNodesGrad(o), nil
	case *kernel.Attention:
		return b.attention(o), nil
	case *kernel.AttentionGrad:
		return b.attentionGrad(o), nil
	case *kernel.Generate:
		return b.generate(o), nil
	case *kernel.Rollout:
		return b.rollout(o), nil
	case *kernel.RolloutGrad:
		return b.rolloutGrad(o), nil
	case *kernel.Advantage:
		return b.advantage(o), nil
	case *kernel.Regions:
		return b.regions(o)
	case *kernel.Embed:
		return b.embed(o), nil
	case *kernel.EmbedGrad:
		return b.embedGrad(o), nil
	case *kernel.GraphAttention:
		return b.graphAttention(o), nil
	case *kernel.GraphAttentionGrad:
		return b.graphAttentionGrad(o), nil
	case *kernel.Rotate:
		return b.rotate(o), nil
	case *kernel.Spread:
		return b.spread(o), nil
	case *kernel.SpreadGrad:
		return b.spreadGrad(o), nil
	case *kernel.CausalAttention:
		return b.causalAttention(o), nil
	case *kernel.CausalAttentionGrad:
		return b.causalAttentionGrad(o), nil
	case *kernel.CacheAttention:
		if o.Of != nil {
			return nil, fmt.Errorf("%s: instances of different shards cannot share a cache", op.Kind())
		}
		return b.cacheAttention(o), nil
	case *kernel.CrossEntropy:
		return b.crossEntropy(o), nil
	case *kernel.ImplicitQ:
		return b.implicitQ(o), nil
	case *kernel.GRU:
		return b.gru(o), nil
	case *kernel.GRUGrad:
		return b.gruGrad(o), nil
	case *kernel.PPO:
		return b.ppo(o), nil
	}
	return nil, fmt.Errorf("the CPU has no op %s", op.Kind())
}

// grad resolves a gradient that the op sums into. The first op of the first shard of a lane writes
// it; add tells whether to add instead.
type gradRef struct {
	ref
	again bool // an earlier op of the same shard has written it
}

func (b *binder) grad(t *kernel.Tensor) gradRef {
	if t == nil {
		return gradRef{}
	}
	g := gradRef{newRef(b.r, t), b.seen[t.Offset]}
	b.seen[t.Offset] = true
	return g
}

func (g *gradRef) add(w *worker) bool { return g.again || !w.fresh }

// start returns the gradient's memory, cleared when nothing has been summed into it.
func (g *gradRef) start(w *worker) []float32 {
	d := g.of(w)
	if !g.add(w) {
		clear(d)
	}
	return d
}

// covered checks that every parameter's gradient is written, since lanes are never cleared.
func (b *binder) covered() error {
	for _, p := range b.r.prog.Layout.Params {
		if !b.seen[p.Offset] {
			return fmt.Errorf("no op writes the gradient of %s", p.Name)
		}
	}
	return nil
}
