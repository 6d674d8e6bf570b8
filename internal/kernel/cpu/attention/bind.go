// Package attention binds ops of one family to a CPU's workers: attention over nodes, over the
// past, and by a graph's edges.
package attention

import (
	"fmt"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/run"
)

// Bind returns what a worker does for an op of this family, over its shard; known is false for an
// op of another family.
func Bind(b *run.Binder, op kernel.Op) (do func(*run.Worker), known bool, err error) {
	switch o := op.(type) {
	case *kernel.Attention:
		do = attention(b, o)
	case *kernel.AttentionGrad:
		do = attentionGrad(b, o)
	case *kernel.GraphAttention:
		do = graphAttention(b, o)
	case *kernel.GraphAttentionGrad:
		do = graphAttentionGrad(b, o)
	case *kernel.CausalAttention:
		do = causalAttention(b, o)
	case *kernel.CausalAttentionGrad:
		do = causalAttentionGrad(b, o)
	case *kernel.CacheAttention:
		if o.Of != nil {
			return nil, true, fmt.Errorf("%s: instances of different shards cannot share a cache", op.Kind())
		}
		do = cacheAttention(b, o)
	default:
		return nil, false, nil
	}
	return do, true, err
}
