// Package attention launches the attention of encoders and of causal transformers, and that of a
// token over caches of earlier ones.
package attention

import (
	"embed"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// PTX are the family's kernels, a module per file, as scripts/ptx makes them from src. They stay
// compressed until a program needs one.
//
//go:embed ptx/*.ptx.zst
var PTX embed.FS

// Bind returns the launches of an op of this family. It reports false for an op of another.
func Bind(b *bind.Binder, op kernel.Op) (launches []bind.Launch, known bool, err error) {
	known = true
	if b.AnyCompact(op) {
		switch o := op.(type) {
		case *kernel.CausalAttention:
			launches, err = Bf16Causal(b, o, nil)
		case *kernel.CausalAttentionGrad:
			launches, err = Bf16CausalGrad(b, o, nil)
		case *kernel.CacheAttention:
			launches, err = cached(b, o)
		default:
			known = false
		}
		return launches, known, err
	}
	switch o := op.(type) {
	case *kernel.Attention:
		launches, err = attention(b, o)
	case *kernel.AttentionGrad:
		launches, err = attentionGrad(b, o)
	case *kernel.GraphAttention:
		launches, err = graphAttention(b, o)
	case *kernel.GraphAttentionGrad:
		launches, err = graphAttentionGrad(b, o)
	case *kernel.CausalAttention:
		launches, err = causal(b, o)
	case *kernel.CausalAttentionGrad:
		launches, err = causalGrad(b, o)
	case *kernel.CacheAttention:
		launches, err = cached(b, o)
	default:
		known = false
	}
	return launches, known, err
}
