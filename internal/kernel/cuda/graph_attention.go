package cuda

import "haul/internal/kernel"

// graphAttention binds src/attention/graph_attention.cu: a warp per row of scores,
// one row in shared memory.
func (b *binder) graphAttention(o *kernel.GraphAttention) ([]launch, error) {
	instances, n, d := o.Dims()
	if err := dense(o, o.Y, o.P, o.V, o.Score, o.Far, o.PosX, o.PosY); err != nil {
		return nil, err
	}
	l, err := newHeadShape(n, d, o.Heads).rows(b, o, "graph_attention", "graph_attention", instances, n, b.addr(o.Y), b.addr(o.P), b.addr(o.V), b.addr(o.Score), b.addr(o.Far),
		b.addr(o.PosX), b.addr(o.PosY), i32(instances), i32(n), i32(d), i32(o.Heads), i32(o.P.Cols()), o.Leak)
	return []launch{l}, err
}

func (b *binder) graphAttentionGrad(o *kernel.GraphAttentionGrad) ([]launch, error) {
	instances, n, d := o.Dims()
	if err := dense(o, o.DV, o.DScore, o.DFar, o.DY, o.P, o.V, o.Score, o.Far, o.PosX, o.PosY); err != nil {
		return nil, err
	}
	s, mean := newHeadShape(n, d, o.Heads), b.scratch(4*instances*o.Heads*n)
	read := []any{b.addr(o.DY), b.addr(o.P), b.addr(o.V), b.addr(o.Score), b.addr(o.Far), b.addr(o.PosX), b.addr(o.PosY), i32(instances), i32(n), i32(d), i32(o.Heads),
		i32(o.P.Cols()), o.Leak}
	byRows, err := s.rows(b, o, "graph_attention", "graph_attention_rows", instances, n, append([]any{b.addr(o.DScore), b.addr(o.DFar), mean}, read...)...)
	if err != nil {
		return nil, err
	}
	byColumns, err := s.rows(b, o, "graph_attention", "graph_attention_columns", instances, n, append([]any{b.addr(o.DV), b.addr(o.DScore), mean}, read...)...)
	return []launch{byRows, byColumns}, err
}
