package reference

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"haul/internal/kernel"
)

// live is how many instances of the current shard belong to the batch.
func (r *Runner[F]) live() int { return min(r.prog.Shard, r.prog.Batch-r.shard*r.prog.Shard) }

// index is the global index of the shard's instance b.
func (r *Runner[F]) index(b int) uint64 {
	return r.state.Instances + uint64(r.shard*r.prog.Shard+b)
}

// vector is t's live elements, dense; nil for nil.
func (r *Runner[F]) vector(t *kernel.Tensor) []F {
	if t == nil {
		return nil
	}
	switch t.Space {
	case kernel.Weight:
		return r.sets[t.Set].w[t.Offset:][:t.Len()]
	case kernel.Grad:
		return r.grad[t.Offset:][:t.Len()]
	default:
		return r.rows(t)[:t.Len()/r.prog.Shard*r.live()]
	}
}

// rows is the memory of t from its first element in this shard on.
func (r *Runner[F]) rows(t *kernel.Tensor) []F {
	root := t.Root()
	at := 0
	if t.Parent != nil {
		at = t.Offset
	}
	if root.Space == kernel.Batch {
		at += r.shard * root.Len()
	}
	return r.floats[root][at:]
}

// matrix is t's live rows; the zero Matrix for nil.
func (r *Runner[F]) matrix(t *kernel.Tensor) Matrix[F] {
	switch {
	case t == nil:
		return Matrix[F]{}
	case t.Space == kernel.Weight || t.Space == kernel.Grad || len(t.Shape) == 1:
		v := r.vector(t)
		cols := t.Cols()
		if len(t.Shape) == 1 {
			cols = len(v)
		}
		return Matrix[F]{v, len(v) / cols, cols, cols}
	default:
		return Matrix[F]{r.rows(t), t.Rows() / r.prog.Shard * r.live(), t.Cols(), t.Stride}
	}
}

// instance is the rows of t that belong to live instance b.
func (r *Runner[F]) instance(t *kernel.Tensor, b int) Matrix[F] {
	n := t.Rows() / r.prog.Shard
	return r.matrix(t).Slice(b*n, (b+1)*n)
}

// of is instance b's part of a dense tensor.
func (r *Runner[F]) of(t *kernel.Tensor, b int) []F { return r.following(t, b, 1) }

// following is of for so many instances from b on.
func (r *Runner[F]) following(t *kernel.Tensor, b, count int) []F {
	n := t.Len() / r.prog.Shard
	return r.vector(t)[b*n:][:count*n]
}

// intsOf is of for integers.
func (r *Runner[F]) intsOf(t *kernel.Tensor, b int) []int32 {
	n := t.Len() / r.prog.Shard
	at := b * n
	if t.Space == kernel.Batch {
		at += r.shard * t.Len()
	}
	return r.ints[t][at:][:n]
}

func (r *Runner[F]) decoder(d *kernel.Decoder, b int) *Decoder[F] {
	out := &Decoder[F]{Proj: r.instance(d.Proj, b), Pointer: r.instance(d.Pointer, b), Graph: r.instance(d.Graph, b).Row(0),
		Context: r.vector(d.Context), PosX: r.of(d.PosX, b), PosY: r.of(d.PosY, b), Rules: d.Rules, Nodes: r.intsOf(d.Nodes, b),
		Heads: d.Heads, Near: F(d.Near), Temperature: F(r.control.Temperature)}
	if d.Pair != nil {
		out.Pair, out.PairContext = r.instance(d.Pair, b), r.vector(d.PairContext)
	}
	return out
}

// actions is instance b's actions, a slice a start.
func (r *Runner[F]) actions(t *kernel.Tensor, b int) [][]int32 {
	flat, steps := r.intsOf(t, b), t.Cols()
	out := make([][]int32, t.Shape[1])
	for s := range out {
		out[s] = flat[s*steps:][:steps]
	}
	return out
}

func (r *Runner[F]) perShard(op kernel.Op) error {
	switch o := op.(type) {
	case *kernel.Linear:
		Linear(r.matrix(o.Y), r.matrix(o.Pre), r.operand(o.X), r.operand(o.W), r.vector(o.Bias), r.matrix(o.Residual), o.Drop, r.index(0))
	case *kernel.LinearGradX:
		LinearGradX(r.matrix(o.DX), r.operand(o.DY), r.operand(o.W), r.matrix(o.Pre), o.Accumulate)
	case *kernel.LinearGradW:
		LinearGradW(r.matrix(o.DW), r.operand(o.DY), r.operand(o.X))
		LinearGradBias(r.vector(o.DBias), r.matrix(o.DY))
	case *kernel.Norm:
		Norm(r.matrix(o.Y), r.vector(o.Mean), r.vector(o.Rstd), r.matrix(o.X), r.vector(o.Gamma), r.vector(o.Beta), kernel.NormEps)
	case *kernel.NormGrad:
		NormGrad(r.matrix(o.DX), r.vector(o.DGamma), r.vector(o.DBeta), r.matrix(o.DY), r.matrix(o.X), r.vector(o.Mean),
			r.vector(o.Rstd), r.vector(o.Gamma), o.Accumulate)
	case *kernel.GLU:
		GLU(r.matrix(o.Y), r.matrix(o.G))
	case *kernel.GLUGrad:
		GLUGrad(r.matrix(o.DG), r.matrix(o.DY), r.matrix(o.G))
	case *kernel.Dropout:
		Dropout(r.matrix(o.Y), r.matrix(o.X), r.matrix(o.Residual), o.Drop, r.index(0))
	case *kernel.MeanNodes:
		MeanNodes(r.matrix(o.Y), r.matrix(o.X))
	case *kernel.MeanNodesGrad:
		MeanNodesGrad(r.matrix(o.DX), r.matrix(o.DY), o.Accumulate)
	default:
		for b := range r.live() {
			if err := r.perInstance(op, b); err != nil {
				return err
			}
		}
	}
	r.keep(op)
	return nil
}

func (r *Runner[F]) perInstance(op kernel.Op, b int) error {
	index := r.index(b)
	switch o := op.(type) {
	case *kernel.Attention:
		Attention(r.instance(o.Y, b), r.instance(o.P, b), r.instance(o.QKV, b), r.of(o.PosX, b), r.of(o.PosY, b), r.vector(o.Slope))
	case *kernel.AttentionGrad:
		AttentionGrad(r.instance(o.DQKV, b), r.vector(o.DSlope), r.instance(o.DY, b), r.instance(o.P, b), r.instance(o.QKV, b),
			r.of(o.PosX, b), r.of(o.PosY, b))
	case *kernel.Generate:
		Generate(r.of(o.PosX, b), r.of(o.PosY, b), r.intsOf(o.Nodes, b), o, index)
		Features(r.instance(o.Feature, b), r.of(o.PosX, b), r.of(o.PosY, b), r.intsOf(o.Nodes, b), o.Set, F(o.Capacity))
	case *kernel.Rollout:
		Rollout(Routes[F]{r.actions(o.Actions, b), r.intsOf(o.Steps, b), r.of(o.Length, b), r.of(o.LogProb, b), r.of(o.Entropy, b)},
			r.decoder(&o.Decoder, b), o, index)
	case *kernel.RolloutGrad:
		RolloutGrad(r.decoderGrad(o, b), r.decoder(&o.Decoder, b), r.actions(o.Actions, b), r.intsOf(o.Steps, b), r.of(o.Adv, b),
			o, F(r.control.Coefficients[o.Bonus]))
	case *kernel.Advantage:
		base, adv := r.of(o.Base, b), r.of(o.Adv, b)
		from := b - b%o.Rows()
		var logProb []F
		if o.LogProb != nil {
			logProb = r.following(o.LogProb, from, o.Rows())
		}
		length := r.following(o.Length, from, o.Rows())
		base[0] = Advantage(adv, length, logProb, (b-from)*len(adv), base[0], o, r.scalar(o.Mean), r.scalar(o.Count))
	default:
		return r.ofSequence(op, b)
	}
	return nil
}

// ofSequence interprets the ops over tokens for instance b.
func (r *Runner[F]) ofSequence(op kernel.Op, b int) error {
	switch o := op.(type) {
	case *kernel.Embed:
		Embed(r.instance(o.Y, b), r.intsOf(o.Index, b), r.matrices(o.Tables))
	case *kernel.EmbedGrad:
		EmbedGrad(r.matrices(o.DTables), r.instance(o.DY, b), r.intsOf(o.Index, b))
	case *kernel.GraphAttention:
		GraphAttention(r.instance(o.Y, b), r.instance(o.P, b), r.instance(o.V, b), r.instance(o.Score, b), r.instance(o.Far, b),
			r.of(o.PosX, b), r.of(o.PosY, b), F(o.Leak))
	case *kernel.GraphAttentionGrad:
		GraphAttentionGrad(r.instance(o.DV, b), r.instance(o.DScore, b), r.instance(o.DFar, b), r.instance(o.DY, b), r.instance(o.P, b),
			r.instance(o.V, b), r.instance(o.Score, b), r.instance(o.Far, b), r.of(o.PosX, b), r.of(o.PosY, b), F(o.Leak))
	case *kernel.Rotate:
		Rotate(r.instance(o.Y, b), r.instance(o.X, b), r.intsOf(o.Index, b), o)
	case *kernel.Spread:
		Spread(r.instance(o.Y, b), r.instance(o.X, b), o.Heads, o.KVHeads)
	case *kernel.SpreadGrad:
		SpreadGrad(r.instance(o.DX, b), r.instance(o.DY, b), o.Heads, o.KVHeads)
	case *kernel.CausalAttention:
		CausalAttention(r.instance(o.Y, b), r.instance(o.LogSum, b), r.instance(o.QKV, b), r.intsOf(o.First, b), o.Drop, r.index(b))
	case *kernel.CausalAttentionGrad:
		CausalAttentionGrad(r.instance(o.DQKV, b), r.instance(o.DY, b), r.instance(o.LogSum, b), r.instance(o.QKV, b), r.intsOf(o.First, b),
			o.Drop, r.index(b))
	case *kernel.CacheAttention:
		if o.Of != nil {
			return fmt.Errorf("reference: op %s with shared caches is unknown", op.Kind())
		}
		CacheAttention(r.of(o.Y, b), r.of(o.QKV, b), r.instance(o.Keys, b), r.instance(o.Values, b), int(r.intsOf(o.At, b)[0]), o.Heads)
	case *kernel.CrossEntropy:
		var dlogits Matrix[F]
		if o.DLogits != nil {
			dlogits = r.instance(o.DLogits, b)
		}
		var weigh []F
		if o.Weigh != nil {
			weigh = r.of(o.Weigh, b)
		}
		CrossEntropy(dlogits, r.instance(o.Logits, b), r.intsOf(o.Labels, b), weigh, r.of(o.Sums, b), o)
	case *kernel.ImplicitQ:
		ImplicitQ(r.instance(o.DValues, b), r.instance(o.Values, b), r.intsOf(o.Labels, b), r.intsOf(o.Index, b), r.intsOf(o.First, b),
			r.of(o.Weigh, b), r.of(o.Sums, b), o)
	case *kernel.Regions:
		Row(&o.RegionSpec, r.intsOf(o.Index, b), r.intsOf(o.Labels, b), r.intsOf(o.First, b), r.ints[o.Records], r.index(b))
	case *kernel.GRU:
		GRU(r.instance(o.H, b), r.instance(o.Prev, b), r.instance(o.Gates, b), r.instance(o.X, b), r.matrix(o.W), r.vector(o.Bias), r.of(o.State, b), o)
	case *kernel.GRUGrad:
		GRUGrad(r.instance(o.DX, b), r.instance(o.DH, b), r.instance(o.Gates, b), r.instance(o.Prev, b), r.matrix(o.W))
	case *kernel.PPO:
		PPO(r.instance(o.DOut, b), r.instance(o.Out, b), r.instance(o.Sample, b), r.of(o.Sums, b), o)
	default:
		return fmt.Errorf("reference: op %s is unknown", op.Kind())
	}
	return nil
}

// matrices are parameters, or gradients of some of them.
func (r *Runner[F]) matrices(ts []*kernel.Tensor) []Matrix[F] {
	out := make([]Matrix[F], len(ts))
	for i, t := range ts {
		out[i] = r.matrix(t)
	}
	return out
}

// decoderGrad is where instance b's gradient goes, cleared where the op writes and does not add.
func (r *Runner[F]) decoderGrad(o *kernel.RolloutGrad, b int) DecoderGrad[F] {
	g := DecoderGrad[F]{Proj: r.instance(o.DProj, b), Pointer: r.instance(o.DPointer, b), Graph: r.instance(o.DGraph, b).Row(0), Context: r.vector(o.DContext)}
	clear(g.Graph)
	for j := range g.Pointer.Rows {
		clear(g.Pointer.Row(j))
		clear(g.Proj.Row(j)[:3*g.Pointer.Cols])
	}
	if o.DPair != nil {
		g.Pair, g.PairContext = r.instance(o.DPair, b), r.vector(o.DPairContext)
		for j := range g.Pair.Rows {
			clear(g.Pair.Row(j)[:2*g.Pointer.Cols])
		}
	}
	return g
}

// whole says that the step ends an update.
func (r *Runner[F]) whole() bool { return r.state.Part == uint64(r.every)-1 }

// scalar is what State carries under the tensor's name; 0 for nil.
func (r *Runner[F]) scalar(t *kernel.Tensor) float64 {
	if t == nil {
		return 0
	}
	return r.state.Scalars[t.Name]
}

// term is what a term adds in a step of instances with so many columns.
func (r *Runner[F]) term(t kernel.Term, columns int) float64 {
	sum := 0.0
	for b := range r.prog.Batch {
		for c := range columns {
			v := r.element(t.X, b, c)
			if t.Log {
				v = math.Log(v)
			}
			sum += v * r.element(t.Y, b, c)
		}
	}
	sum *= t.Weight
	if t.Coefficient != "" {
		sum *= float64(r.control.Coefficients[t.Coefficient])
	}
	if t.Mean {
		sum /= float64(r.prog.Batch * columns)
	}
	return sum
}

// element is column c of instance b of a Batch tensor, or its only column; 1 for nil.
func (r *Runner[F]) element(t *kernel.Tensor, b, c int) float64 {
	if t == nil {
		return 1
	}
	at := b*t.Stride + min(c, t.Cols()-1)
	if t.Parent != nil {
		at += t.Offset
	}
	if t.Type == kernel.I32 {
		return float64(r.ints[t.Root()][at])
	}
	return float64(r.floats[t.Root()][at])
}

func (r *Runner[F]) once(op kernel.Op) error {
	switch o := op.(type) {
	// shards have added to one gradient; its parts are counted when the step is over
	case *kernel.Reduce:
		if r.sets[0].m == nil {
			return fmt.Errorf("reference: %s: weight set 0 was not made for training", r.prog.Name)
		}
		r.every = max(1, o.Every)
	case *kernel.Exchange:
		if !r.whole() {
			return nil
		}
		flat := make([]float32, len(r.grad))
		if err := convert(flat, r.grad); err != nil {
			return err
		}
		if err := o.Peer.Exchange(flat); err != nil {
			return err
		}
		return convert(r.grad, flat)
	case *kernel.AdamW:
		if r.whole() {
			s := r.sets[0]
			AdamW(s.w, s.m, s.v, r.grad, o, r.control, &r.state, &r.metrics)
		}
	case *kernel.Tally:
		for _, s := range o.Sums {
			for _, t := range s.Terms {
				r.sums[slices.Index(r.prog.Sums(), s.Name)] += r.term(t, o.Columns())
			}
		}
	case *kernel.RunningMean:
		mean := r.term(kernel.Term{X: o.X, Weight: 1, Mean: true}, o.X.Cols())
		scalars := maps.Clone(r.state.Scalars) // the step before may be replayed from its own
		if scalars[o.Count.Name] > 0 {
			mean = o.Decay*scalars[o.Mean.Name] + (1-o.Decay)*mean
		}
		scalars[o.Mean.Name], scalars[o.Count.Name] = mean, scalars[o.Count.Name]+1
		r.state.Scalars = scalars
	default:
		return fmt.Errorf("reference: op %s is unknown", op.Kind())
	}
	return nil
}
