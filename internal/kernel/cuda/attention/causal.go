package attention

import (
	"fmt"
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

const causalThreads = 128 // threads of src/causal.cu

// causalShape is what the kernels of src/causal.cu make of a head: sizes are theirs.
type causalShape struct {
	parts int // PARTS: threads of a row, each with 16 columns
	rows  int // of a block
	tile  int // rows brought at a time
}

func newCausalShape(op kernel.Op, d, heads int) (causalShape, error) {
	s := causalShape{parts: 1}
	for 16*s.parts < d/heads {
		s.parts *= 2
	}
	if s.parts > 16 {
		return s, fmt.Errorf("%s: heads of %d columns, the GPU takes at most 256", op.Kind(), d/heads)
	}
	s.rows, s.tile = causalThreads/s.parts, max(32, 128/s.parts)
	return s, nil
}

// slices are the bytes of two tiles.
func (s causalShape) slices() int { return 4 * 2 * s.tile * 16 * s.parts }

// byQuery is the shared memory of the kernels whose blocks own queries, byKey of the one whose
// blocks own keys.
func (s causalShape) byQuery() int { return s.slices() + 4*s.rows*s.tile/32 }
func (s causalShape) byKey() int   { return s.slices() + 4*s.tile*(3+max(1, s.rows/32)) }

// launch is one of the kernels, a block for each head of a row and each so many tokens of it.
func (s causalShape) launch(name string, b, t, heads, shared int, args []any) bind.Launch {
	return bind.Launch{Module: "causal", Kernel: fmt.Sprintf("%s_%d", name, s.parts), Grid: bind.Dim3{b * heads, bind.Ceil(t, s.rows), 1},
		Block: bind.Dim3{causalThreads, 1, 1}, Shared: shared, Args: args}
}

// causalArgs end the parameters of every kernel.
func causalArgs(b *bind.Binder, d kernel.Drop, t, width, heads int, vectors bool) []any {
	return append(b.DropArgs(d), bind.I32(t), bind.I32(width), bind.I32(heads), headScale(width, heads), bind.Flag(vectors))
}

// headScale is what scores are multiplied by.
func headScale(d, heads int) float32 { return float32(1 / math.Sqrt(float64(d/heads))) }

func causal(b *bind.Binder, o *kernel.CausalAttention) ([]bind.Launch, error) {
	rows, t, d := o.Dims()
	s, err := newCausalShape(o, d, o.Heads)
	if err != nil {
		return nil, err
	}
	vectors := d/o.Heads%4 == 0 && b.Vectors(o.Y, o.QKV)
	args := []any{b.Addr(o.Y), b.Addr(o.LogSum), b.Addr(o.QKV), b.Addr(o.First)}
	return []bind.Launch{s.launch("causal", rows, t, o.Heads, s.byQuery(), append(args, causalArgs(b, o.Drop, t, d, o.Heads, vectors)...))},
		bind.Dense(o, o.Y, o.QKV)
}

// causalGrad makes the queries' gradient, then that of keys and values: each adds up over what the
// other shares out.
func causalGrad(b *bind.Binder, o *kernel.CausalAttentionGrad) ([]bind.Launch, error) {
	rows, t, d := o.Dims()
	s, err := newCausalShape(o, d, o.Heads)
	if err != nil {
		return nil, err
	}
	delta := b.Scratch(4 * rows * o.Heads * t)
	tail := causalArgs(b, o.Drop, t, d, o.Heads, d/o.Heads%4 == 0 && b.Vectors(o.DQKV, o.DY, o.Y, o.QKV))
	dq := []any{b.Addr(o.DQKV), delta, b.Addr(o.DY), b.Addr(o.Y), b.Addr(o.LogSum), b.Addr(o.QKV), b.Addr(o.First)}
	dkv := []any{b.Addr(o.DQKV), delta, b.Addr(o.DY), b.Addr(o.LogSum), b.Addr(o.QKV), b.Addr(o.First)}
	return []bind.Launch{
		s.launch("causal_dq", rows, t, o.Heads, s.byQuery(), append(dq, tail...)),
		s.launch("causal_dkv", rows, t, o.Heads, s.byKey(), append(dkv, tail...)),
	}, bind.Dense(o, o.DQKV, o.DY, o.Y, o.QKV)
}

const (
	cachedWarps = 4   // warps of src/cached.cu
	keepThreads = 256 // of a block of its keep
)

// cached reads queries, keys and values in bf16 where they are compact; the caches are always fp32.
func cached(b *bind.Binder, o *kernel.CacheAttention) ([]bind.Launch, error) {
	if b.Compact(o.QKV) != b.Compact(o.Y) {
		return nil, fmt.Errorf("%s: %v and %v are held in different precisions", o.Kind(), o.QKV, o.Y)
	}
	d, t, pairs := o.Y.Cols(), o.Keys.Shape[1], o.Y.Shape[0]*o.Heads
	shared := 4 * cachedWarps * (d/o.Heads + t)
	if shared > b.MaxShared {
		return nil, fmt.Errorf("%s: a cache of %d positions is longer than the GPU's shared memory takes", o.Kind(), t)
	}
	kept, compact, of := o.Keys.Cols(), bind.Flag(b.Compact(o.QKV)), uint64(0)
	var launches []bind.Launch
	if o.Of != nil {
		of = b.Addr(o.Of)
	}
	if o.Of != nil || kept < d {
		n := o.Y.Shape[0] * kept
		launches = append(launches, bind.Launch{Module: "cached", Kernel: "keep", Grid: bind.Dim3{bind.Ceil(n, keepThreads), 1, 1}, Block: bind.Dim3{keepThreads, 1, 1},
			Args: []any{b.Addr(o.QKV), b.Addr(o.Keys), b.Addr(o.Values), b.Addr(o.At), of, bind.I32(n), bind.I32(t), bind.I32(d), bind.I32(kept), compact}})
	}
	return append(launches, bind.Launch{Module: "cached", Kernel: "cached", Grid: bind.Dim3{bind.Ceil(pairs, cachedWarps), 1, 1}, Block: bind.Dim3{32 * cachedWarps, 1, 1}, Shared: shared,
		Args: []any{b.Addr(o.Y), b.Addr(o.QKV), b.Addr(o.Keys), b.Addr(o.Values), b.Addr(o.At), of, bind.I32(pairs), bind.I32(t), bind.I32(d), bind.I32(kept), bind.I32(o.Heads),
			headScale(d, o.Heads), compact}}), bind.Dense(o, o.Y, o.QKV)
}
