package cuda

import (
	"fmt"
	"math"

	"haul/internal/kernel"
)

const attentionWarps = 8 // maxWarps of src/attention/attention.cu

// headShape is what the kernels of src/attention/attention.cuh make of one head: sizes are theirs.
type headShape struct {
	n, d, heads, hd int
	warps           int
	ld, wide        int // rows of a slice, and of the matrix of scores, in floats
}

func newHeadShape(n, d, heads int) headShape {
	quads := func(c int) int { return 4 * (ceil(c, 4) | 1) }
	return headShape{n: n, d: d, heads: heads, hd: d / heads, warps: min(attentionWarps, ceil(n, 4)), ld: quads(d / heads), wide: quads(n)}
}

// shared is what the forward kernel needs, sharedGrad the backward one, in bytes.
func (s headShape) shared() int { return 4 * (3*s.n*s.ld + s.warps*4*s.n + 2*s.n) }

func (s headShape) sharedGrad() int {
	return 4 * (4*s.n*s.ld + s.n*s.wide + s.warps*4*s.n + 2*s.n + s.warps)
}

func (s headShape) scale() float32 { return float32(1 / math.Sqrt(float64(s.hd))) }

// vectors reports whether a head's rows are made of 16-byte vectors in all tensors.
func (s headShape) vectors(b *binder, ts ...*kernel.Tensor) uint32 {
	return flag(s.hd%4 == 0 && b.vectors(ts...))
}

// far shapes a launch of src/attention/attention_far.cu.
func (s headShape) far(b *binder, op kernel.Op, name string, instances, floats int, args ...any) (launch, error) {
	return s.rows(b, op, "attention_far", name, instances, floats, args...)
}

// rows shapes a launch with a warp per row of scores and `floats` floats in shared memory for each.
func (s headShape) rows(b *binder, op kernel.Op, module, name string, instances, floats int, args ...any) (launch, error) {
	warps := min(4, b.maxShared/(4*floats))
	if warps == 0 {
		return launch{}, fmt.Errorf("%s: %d nodes are too many for this card: a row takes %d bytes of shared memory, it has %d", op.Kind(), s.n, 4*floats, b.maxShared)
	}
	return launch{module: module, kernel: name, grid: dim3{ceil(instances*s.heads*s.n, warps), 1, 1}, block: dim3{32 * warps, 1, 1},
		shared: 4 * floats * warps, args: args}, nil
}

func (b *binder) attention(o *kernel.Attention) ([]launch, error) {
	instances, n, d := o.Dims()
	s := newHeadShape(n, d, o.Heads)
	if err := dense(o, o.Y, o.P, o.QKV, o.PosX, o.PosY); err != nil {
		return nil, err
	}
	if s.near(b, o.P, o.Y, o.QKV) {
		return []launch{b.attentionNear(o, s, instances)}, nil
	}
	if t := s.tiles(b, o.Y, o.QKV); t > 0 {
		return []launch{b.attentionTiles(o, s, t, instances)}, nil
	}
	if s.streamed(b, o.Y, o.QKV) {
		return []launch{b.attentionStream(o, s, instances)}, nil
	}
	if s.shared() > b.maxShared {
		l, err := s.far(b, o, "attention_far", instances, n, b.addr(o.Y), b.addr(o.P), b.addr(o.QKV), b.addr(o.PosX), b.addr(o.PosY), b.addr(o.Slope),
			i32(instances), i32(n), i32(d), i32(o.Heads), i32(o.P.Cols()), s.scale())
		return []launch{l}, err
	}
	return []launch{{module: "attention", kernel: "attention", grid: dim3{instances * o.Heads, 1, 1}, block: dim3{32 * s.warps, 1, 1}, shared: s.shared(),
		args: []any{b.addr(o.Y), b.addr(o.P), b.addr(o.QKV), b.addr(o.PosX), b.addr(o.PosY), b.addr(o.Slope), i32(n), i32(d), i32(o.Heads),
			i32(o.P.Cols()), s.scale(), s.vectors(b, o.Y, o.QKV)}}}, nil
}

func (b *binder) attentionGrad(o *kernel.AttentionGrad) ([]launch, error) {
	instances, n, d := o.Dims()
	s := newHeadShape(n, d, o.Heads)
	if err := dense(o, o.DQKV, o.DY, o.P, o.QKV, o.PosX, o.PosY); err != nil {
		return nil, err
	}
	add := b.adds(o.DSlope)
	if s.near(b, o.P, o.DQKV, o.DY, o.QKV) {
		return []launch{b.attentionNearGrad(o, s, instances, add)}, nil
	}
	if t := s.tiles(b, o.DY, o.QKV, o.DQKV); t > 0 {
		return b.attentionTilesGrad(o, s, t, instances, add)
	}
	if s.streamed(b, o.DY, o.QKV, o.DQKV) {
		return b.attentionStreamGrad(o, s, instances, add)
	}
	if s.sharedGrad() > b.maxShared {
		return b.attentionGradFar(o, s, instances, add)
	}
	partial, turn := b.scratch(4*instances*o.Heads), b.scratch(4)
	return []launch{{module: "attention", kernel: "attention_grad", grid: dim3{instances * o.Heads, 1, 1}, block: dim3{32 * s.warps, 1, 1}, shared: s.sharedGrad(),
		args: []any{b.addr(o.DQKV), b.addr(o.DSlope), b.addr(o.DY), b.addr(o.P), b.addr(o.QKV), b.addr(o.PosX), b.addr(o.PosY), partial, turn,
			i32(n), i32(d), i32(o.Heads), i32(o.P.Cols()), s.scale(), s.vectors(b, o.DQKV, o.DY, o.QKV), i32(instances), i32(b.lanes), i32(b.laneSize), add}}}, nil
}

func (b *binder) attentionGradFar(o *kernel.AttentionGrad, s headShape, instances int, add uint32) ([]launch, error) {
	rows := instances * s.heads * s.n
	mean, partial := b.scratch(4*rows), b.scratch(4*rows)
	byRows, err := s.far(b, o, "attention_far_rows", instances, s.n, b.addr(o.DQKV), mean, partial, b.addr(o.DY), b.addr(o.P), b.addr(o.QKV), b.addr(o.PosX),
		b.addr(o.PosY), i32(instances), i32(s.n), i32(s.d), i32(s.heads), i32(o.P.Cols()), s.scale())
	if err != nil {
		return nil, err
	}
	byColumns, err := s.far(b, o, "attention_far_columns", instances, 2*s.n, b.addr(o.DQKV), mean, b.addr(o.DY), b.addr(o.P), b.addr(o.QKV),
		i32(instances), i32(s.n), i32(s.d), i32(s.heads), i32(o.P.Cols()), s.scale())
	if err != nil || o.DSlope == nil {
		return []launch{byRows, byColumns}, err
	}
	slope := launch{module: "attention_far", kernel: "attention_far_slope", grid: dim3{1, 1, 1}, block: dim3{1024, 1, 1},
		args: []any{b.addr(o.DSlope), partial, i32(instances), i32(s.heads), i32(s.n), i32(b.lanes), i32(b.laneSize), add}}
	return []launch{byRows, byColumns, slope}, nil
}
