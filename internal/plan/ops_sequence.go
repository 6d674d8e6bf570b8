package plan

import "haul/internal/kernel"

// Embed records the sum of the table rows with the indices in index [B,T,F].
func (p *Plan) Embed(name string, index *kernel.Tensor, tables ...*kernel.Tensor) *kernel.Tensor {
	y := p.Shard(name, index.Shape[0], index.Shape[1], tables[0].Cols())
	p.op(&kernel.Embed{Y: y, Index: index, Tables: tables})
	p.reverse(func() {
		if !p.ready[y] {
			return
		}
		grads := make([]*kernel.Tensor, len(tables))
		for i, t := range tables {
			grads[i] = p.gradWeight(t)
		}
		p.op(&kernel.EmbedGrad{DTables: grads, DY: p.Grad(y), Index: index})
	})
	return y
}

// Rotate records qkv [B,T,(heads+2·kv)·W] with rotary positions in its queries and keys. The last
// field of index [B,T,F] holds the positions, which are below `positions`.
func (p *Plan) Rotate(name string, qkv, index *kernel.Tensor, heads, kv, positions int) *kernel.Tensor {
	y := p.Shard(name, qkv.Shape...)
	p.op(&kernel.Rotate{Y: y, X: qkv, Index: index, Heads: heads, KVHeads: kv, Positions: positions})
	p.reverse(func() {
		if !p.ready[y] {
			return
		}
		dqkv, acc := p.contribute(qkv)
		if acc {
			panic("plan: rotated input used twice")
		}
		p.op(&kernel.Rotate{Y: dqkv, X: p.Grad(y), Index: index, Heads: heads, KVHeads: kv, Positions: positions, Back: true})
	})
	return y
}

// Spread records qkv [B,T,(heads+2·kv)·W] in the form of attention, [B,T,3·heads·W]: every query
// head gets a copy of its group's key and value.
func (p *Plan) Spread(name string, qkv *kernel.Tensor, heads, kv int) *kernel.Tensor {
	y := p.Shard(name, qkv.Shape[0], qkv.Shape[1], 3*heads*(qkv.Shape[2]/(heads+2*kv)))
	y.Compact = qkv.Compact
	p.op(&kernel.Spread{Y: y, X: qkv, Heads: heads, KVHeads: kv})
	p.reverse(func() {
		if !p.ready[y] {
			return
		}
		dqkv, acc := p.contribute(qkv)
		if acc {
			panic("plan: spread input used twice")
		}
		p.op(&kernel.SpreadGrad{DX: dqkv, DY: p.Grad(y), Heads: heads, KVHeads: kv})
	})
	return y
}

// CausalAttention records attention over qkv [B,T,3D], within the sequences whose beginnings are in
// first [B,T].
func (p *Plan) CausalAttention(name string, qkv, first *kernel.Tensor, heads int, drop kernel.Drop) *kernel.Tensor {
	b, t, d := qkv.Shape[0], qkv.Shape[1], qkv.Shape[2]/3
	y := p.Shard(name, b, t, d)
	y.Compact = qkv.Compact
	sum := p.Shard(name+".logsum", b, heads, t)
	p.op(&kernel.CausalAttention{Y: y, LogSum: sum, QKV: qkv, First: first, Heads: heads, Drop: drop})
	p.reverse(func() {
		if !p.ready[y] {
			return
		}
		dqkv, acc := p.contribute(qkv)
		if acc {
			panic("plan: attention input used twice")
		}
		p.op(&kernel.CausalAttentionGrad{DQKV: dqkv, DY: p.Grad(y), Y: y, LogSum: sum, QKV: qkv, First: first, Heads: heads, Drop: drop})
	})
	return y
}

// CacheAttention records one step of attention of qkv [B,1,(heads+2·kv)·W] over the keys and values
// of earlier steps, in caches of `tokens` positions. A row uses its own cache, or that of the
// instance in `of` if `of` is not nil.
func (p *Plan) CacheAttention(name string, qkv, at, of *kernel.Tensor, tokens, heads, kv int) *kernel.Tensor {
	b, w := qkv.Shape[0], qkv.Shape[2]/(heads+2*kv)
	y := p.Shard(name, b, 1, heads*w)
	p.op(&kernel.CacheAttention{Y: y, QKV: qkv, Keys: p.Rows(name+".keys", b, tokens, kv*w), Values: p.Rows(name+".values", b, tokens, kv*w),
		At: at, Of: of, Heads: heads})
	return y
}

// CrossEntropy records the loss of classifiers whose logits are next to each other, with columns[i]
// classes each, as the mean over the batch's tokens. With learn it seeds the backward pass.
func (p *Plan) CrossEntropy(name string, logits, labels *kernel.Tensor, columns []int, smoothing float32, learn bool) (sums *kernel.Tensor) {
	return p.WeighedCrossEntropy(name, logits, labels, nil, columns, smoothing, learn)
}

// WeighedCrossEntropy is CrossEntropy with weights weigh [B,T] for the losses of the first
// classifier.
func (p *Plan) WeighedCrossEntropy(name string, logits, labels, weigh *kernel.Tensor, columns []int, smoothing float32, learn bool) (sums *kernel.Tensor) {
	sums = p.Rows(name+".sums", p.B(), 3*len(columns))
	o := &kernel.CrossEntropy{Logits: logits, Labels: labels, Weigh: weigh, Sums: sums, Columns: columns, Smoothing: smoothing,
		Weight: 1 / float32(p.prog.Total()*logits.Shape[1])}
	if learn {
		o.DLogits, _ = p.contribute(logits)
	}
	p.op(o)
	return sums
}

// HeadSums holds the sums of a classifier: its losses, its labels, and its correct predictions.
type HeadSums struct {
	Loss         float64
	Labels, Hits int64
}

// HeadOf returns the sums that TallyHeads has accumulated for a head.
func HeadOf(m kernel.Metrics, head string) HeadSums {
	return HeadSums{m.Sum(head + ".loss"), int64(m.Sum(head + ".labels")), int64(m.Sum(head + ".hits"))}
}

// Put is the inverse of HeadOf.
func (h HeadSums) Put(sums map[string]float64, head string) {
	sums[head+".loss"], sums[head+".labels"], sums[head+".hits"] = h.Loss, float64(h.Labels), float64(h.Hits)
}

// TallyHeads records the accumulation of CrossEntropy's sums, under the heads' names.
func (p *Plan) TallyHeads(sums *kernel.Tensor, heads ...string) {
	o := &kernel.Tally{}
	for g, head := range heads {
		for i, what := range []string{"loss", "labels", "hits"} {
			o.Sums = append(o.Sums, kernel.NewSum(head+"."+what, p.Columns(sums, 3*g+i, 3*g+i+1), nil))
		}
	}
	p.Once(o)
}

// GRU records gated recurrent units over the tokens of x [B,T,3D], with initial units state [B,D].
// If carry is true, state holds the units after the last token when the step is over. No gradient
// flows to state.
func (p *Plan) GRU(name string, x, w, bias, state *kernel.Tensor, carry bool) *kernel.Tensor {
	b, t, d := x.Shape[0], x.Shape[1], w.Shape[1]
	if x.Shape[2] != 3*d || state.Cols() != d {
		panic("plan: gru " + name + ": input " + x.String() + ", weight " + w.String() + ", state " + state.String())
	}
	h, prev, gates := p.Shard(name, b, t, d), p.Shard(name+".prev", b, t, d), p.Shard(name+".gates", b, t, 4*d)
	p.op(&kernel.GRU{H: h, Prev: prev, Gates: gates, X: x, W: w, Bias: bias, State: state, Carry: carry})
	p.reverse(func() {
		if !p.ready[h] {
			return
		}
		dx, acc := p.contribute(x)
		if acc {
			panic("plan: gru input used twice")
		}
		p.op(&kernel.GRUGrad{DX: dx, DH: p.Grad(h), Gates: gates, Prev: prev, W: w})
		if dw := p.gradWeight(w); dw != nil {
			p.op(&kernel.LinearGradW{DW: dw, DBias: p.gradWeight(bias), DY: p.Columns(gates, 0, 3*d), X: prev})
		}
	})
	return h
}

// Wide returns x [B,T·K,D] viewed as [B,T,K·D]: K neighbouring tokens as one.
func (p *Plan) Wide(x *kernel.Tensor, k int) *kernel.Tensor {
	b, t, d := x.Shape[0], x.Shape[1]/k, x.Cols()
	if x.Parent != nil || t*k != x.Shape[1] {
		panic("plan: " + x.String() + " cannot be seen in rows of so many tokens")
	}
	y := &kernel.Tensor{Name: x.Name, Type: x.Type, Space: x.Space, Shape: []int{b, t, k * d}, Stride: k * d, Parent: x, ID: x.ID}
	p.reverse(func() { p.ready[x] = p.ready[x] || p.ready[y] })
	return y
}
