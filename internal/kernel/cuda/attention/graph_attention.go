package attention

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// graphAttention binds src/graph_attention.cu: a warp per row of scores,
// one row in shared memory.
func graphAttention(b *bind.Binder, o *kernel.GraphAttention) ([]bind.Launch, error) {
	instances, n, d := o.Dims()
	if err := bind.Dense(o, o.Y, o.P, o.V, o.Score, o.Far, o.PosX, o.PosY); err != nil {
		return nil, err
	}
	l, err := NewHeadShape(n, d, o.Heads).rows(b, o, "graph_attention", "graph_attention", instances, n, b.Addr(o.Y), b.Addr(o.P), b.Addr(o.V), b.Addr(o.Score), b.Addr(o.Far),
		b.Addr(o.PosX), b.Addr(o.PosY), bind.I32(instances), bind.I32(n), bind.I32(d), bind.I32(o.Heads), bind.I32(o.P.Cols()), o.Leak)
	return []bind.Launch{l}, err
}

func graphAttentionGrad(b *bind.Binder, o *kernel.GraphAttentionGrad) ([]bind.Launch, error) {
	instances, n, d := o.Dims()
	if err := bind.Dense(o, o.DV, o.DScore, o.DFar, o.DY, o.P, o.V, o.Score, o.Far, o.PosX, o.PosY); err != nil {
		return nil, err
	}
	s, mean := NewHeadShape(n, d, o.Heads), b.Scratch(4*instances*o.Heads*n)
	read := []any{b.Addr(o.DY), b.Addr(o.P), b.Addr(o.V), b.Addr(o.Score), b.Addr(o.Far), b.Addr(o.PosX), b.Addr(o.PosY), bind.I32(instances), bind.I32(n), bind.I32(d), bind.I32(o.Heads),
		bind.I32(o.P.Cols()), o.Leak}
	byRows, err := s.rows(b, o, "graph_attention", "graph_attention_rows", instances, n, append([]any{b.Addr(o.DScore), b.Addr(o.DFar), mean}, read...)...)
	if err != nil {
		return nil, err
	}
	byColumns, err := s.rows(b, o, "graph_attention", "graph_attention_columns", instances, n, append([]any{b.Addr(o.DV), b.Addr(o.DScore), mean}, read...)...)
	return []bind.Launch{byRows, byColumns}, err
}
