package cuda

import (
	"fmt"
	"math"

	"haul/internal/kernel"
)

const causalThreads = 128 // threads of src/attention/causal.cu

// causalShape is what the kernels of src/attention/causal.cu make of a head: sizes are theirs.
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
func (s causalShape) launch(name string, b, t, heads, shared int, args []any) launch {
	return launch{module: "causal", kernel: fmt.Sprintf("%s_%d", name, s.parts), grid: dim3{b * heads, ceil(t, s.rows), 1},
		block: dim3{causalThreads, 1, 1}, shared: shared, args: args}
}

// causalArgs end the parameters of every kernel.
func (b *binder) causalArgs(d kernel.Drop, t, width, heads int, vectors bool) []any {
	return append(b.dropArgs(d), i32(t), i32(width), i32(heads), headScale(width, heads), flag(vectors))
}

// headScale is what scores are multiplied by.
func headScale(d, heads int) float32 { return float32(1 / math.Sqrt(float64(d/heads))) }

func (b *binder) causal(o *kernel.CausalAttention) ([]launch, error) {
	rows, t, d := o.Dims()
	s, err := newCausalShape(o, d, o.Heads)
	if err != nil {
		return nil, err
	}
	vectors := d/o.Heads%4 == 0 && b.vectors(o.Y, o.QKV)
	args := []any{b.addr(o.Y), b.addr(o.LogSum), b.addr(o.QKV), b.addr(o.First)}
	return []launch{s.launch("causal", rows, t, o.Heads, s.byQuery(), append(args, b.causalArgs(o.Drop, t, d, o.Heads, vectors)...))},
		dense(o, o.Y, o.QKV)
}

// causalGrad makes the queries' gradient, then that of keys and values: each adds up over what the
// other shares out.
func (b *binder) causalGrad(o *kernel.CausalAttentionGrad) ([]launch, error) {
	rows, t, d := o.Dims()
	s, err := newCausalShape(o, d, o.Heads)
	if err != nil {
		return nil, err
	}
	delta := b.scratch(4 * rows * o.Heads * t)
	tail := b.causalArgs(o.Drop, t, d, o.Heads, d/o.Heads%4 == 0 && b.vectors(o.DQKV, o.DY, o.Y, o.QKV))
	dq := []any{b.addr(o.DQKV), delta, b.addr(o.DY), b.addr(o.Y), b.addr(o.LogSum), b.addr(o.QKV), b.addr(o.First)}
	dkv := []any{b.addr(o.DQKV), delta, b.addr(o.DY), b.addr(o.LogSum), b.addr(o.QKV), b.addr(o.First)}
	return []launch{
		s.launch("causal_dq", rows, t, o.Heads, s.byQuery(), append(dq, tail...)),
		s.launch("causal_dkv", rows, t, o.Heads, s.byKey(), append(dkv, tail...)),
	}, dense(o, o.DQKV, o.DY, o.Y, o.QKV)
}

const (
	cachedWarps = 4   // warps of src/attention/cached.cu
	keepThreads = 256 // of a block of its keep
)

// cached reads queries, keys and values in bf16 where they are compact; the caches are always fp32.
func (b *binder) cached(o *kernel.CacheAttention) ([]launch, error) {
	if b.compact(o.QKV) != b.compact(o.Y) {
		return nil, fmt.Errorf("%s: %v and %v are held in different precisions", o.Kind(), o.QKV, o.Y)
	}
	d, t, pairs := o.Y.Cols(), o.Keys.Shape[1], o.Y.Shape[0]*o.Heads
	shared := 4 * cachedWarps * (d/o.Heads + t)
	if shared > b.maxShared {
		return nil, fmt.Errorf("%s: a cache of %d positions is longer than the GPU's shared memory takes", o.Kind(), t)
	}
	kept, compact, of := o.Keys.Cols(), flag(b.compact(o.QKV)), uint64(0)
	var launches []launch
	if o.Of != nil {
		of = b.addr(o.Of)
	}
	if o.Of != nil || kept < d {
		n := o.Y.Shape[0] * kept
		launches = append(launches, launch{module: "cached", kernel: "keep", grid: dim3{ceil(n, keepThreads), 1, 1}, block: dim3{keepThreads, 1, 1},
			args: []any{b.addr(o.QKV), b.addr(o.Keys), b.addr(o.Values), b.addr(o.At), of, i32(n), i32(t), i32(d), i32(kept), compact}})
	}
	return append(launches, launch{module: "cached", kernel: "cached", grid: dim3{ceil(pairs, cachedWarps), 1, 1}, block: dim3{32 * cachedWarps, 1, 1}, shared: shared,
		args: []any{b.addr(o.Y), b.addr(o.QKV), b.addr(o.Keys), b.addr(o.Values), b.addr(o.At), of, i32(pairs), i32(t), i32(d), i32(kept), i32(o.Heads),
			headScale(d, o.Heads), compact}}), dense(o, o.Y, o.QKV)
}
