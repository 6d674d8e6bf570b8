package attention

import (
	"fmt"
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

const attentionWarps = 8 // maxWarps of src/attention.cu

// headShape is what the kernels of src/attention.cuh make of one head: sizes are theirs.
type headShape struct {
	n, d, heads, hd int
	warps           int
	ld, wide        int // rows of a slice, and of the matrix of scores, in floats
}

func NewHeadShape(n, d, heads int) headShape {
	quads := func(c int) int { return 4 * (bind.Ceil(c, 4) | 1) }
	return headShape{n: n, d: d, heads: heads, hd: d / heads, warps: min(attentionWarps, bind.Ceil(n, 4)), ld: quads(d / heads), wide: quads(n)}
}

// shared is what the forward kernel needs, sharedGrad the backward one, in bytes.
func (s headShape) shared() int { return 4 * (3*s.n*s.ld + s.warps*4*s.n + 2*s.n) }

func (s headShape) sharedGrad() int {
	return 4 * (4*s.n*s.ld + s.n*s.wide + s.warps*4*s.n + 2*s.n + s.warps)
}

func (s headShape) Scale() float32 { return float32(1 / math.Sqrt(float64(s.hd))) }

// vectors reports whether a head's rows are made of 16-byte vectors in all tensors.
func (s headShape) vectors(b *bind.Binder, ts ...*kernel.Tensor) uint32 {
	return bind.Flag(s.hd%4 == 0 && b.Vectors(ts...))
}

// far shapes a launch of src/attention_far.cu.
func (s headShape) far(b *bind.Binder, op kernel.Op, name string, instances, floats int, args ...any) (bind.Launch, error) {
	return s.rows(b, op, "attention_far", name, instances, floats, args...)
}

// rows shapes a launch with a warp per row of scores and `floats` floats in shared memory for each.
func (s headShape) rows(b *bind.Binder, op kernel.Op, module, name string, instances, floats int, args ...any) (bind.Launch, error) {
	warps := min(4, b.MaxShared/(4*floats))
	if warps == 0 {
		return bind.Launch{}, fmt.Errorf("%s: %d nodes are too many for this card: a row takes %d bytes of shared memory, it has %d", op.Kind(), s.n, 4*floats, b.MaxShared)
	}
	return bind.Launch{Module: module, Kernel: name, Grid: bind.Dim3{bind.Ceil(instances*s.heads*s.n, warps), 1, 1}, Block: bind.Dim3{32 * warps, 1, 1},
		Shared: 4 * floats * warps, Args: args}, nil
}

func attention(b *bind.Binder, o *kernel.Attention) ([]bind.Launch, error) {
	instances, n, d := o.Dims()
	s := NewHeadShape(n, d, o.Heads)
	if err := bind.Dense(o, o.Y, o.P, o.QKV, o.PosX, o.PosY); err != nil {
		return nil, err
	}
	if s.near(b, o.P, o.Y, o.QKV) {
		return []bind.Launch{attentionNear(b, o, s, instances)}, nil
	}
	if t := s.tiles(b, o.Y, o.QKV); t > 0 {
		return []bind.Launch{attentionTiles(b, o, s, t, instances)}, nil
	}
	if s.streamed(b, o.Y, o.QKV) {
		return []bind.Launch{attentionStream(b, o, s, instances)}, nil
	}
	if s.shared() > b.MaxShared {
		l, err := s.far(b, o, "attention_far", instances, n, b.Addr(o.Y), b.Addr(o.P), b.Addr(o.QKV), b.Addr(o.PosX), b.Addr(o.PosY), b.Addr(o.Slope),
			bind.I32(instances), bind.I32(n), bind.I32(d), bind.I32(o.Heads), bind.I32(o.P.Cols()), s.Scale())
		return []bind.Launch{l}, err
	}
	return []bind.Launch{{Module: "attention", Kernel: "attention", Grid: bind.Dim3{instances * o.Heads, 1, 1}, Block: bind.Dim3{32 * s.warps, 1, 1}, Shared: s.shared(),
		Args: []any{b.Addr(o.Y), b.Addr(o.P), b.Addr(o.QKV), b.Addr(o.PosX), b.Addr(o.PosY), b.Addr(o.Slope), bind.I32(n), bind.I32(d), bind.I32(o.Heads),
			bind.I32(o.P.Cols()), s.Scale(), s.vectors(b, o.Y, o.QKV)}}}, nil
}

func attentionGrad(b *bind.Binder, o *kernel.AttentionGrad) ([]bind.Launch, error) {
	instances, n, d := o.Dims()
	s := NewHeadShape(n, d, o.Heads)
	if err := bind.Dense(o, o.DQKV, o.DY, o.P, o.QKV, o.PosX, o.PosY); err != nil {
		return nil, err
	}
	add := b.Adds(o.DSlope)
	if s.near(b, o.P, o.DQKV, o.DY, o.QKV) {
		return []bind.Launch{attentionNearGrad(b, o, s, instances, add)}, nil
	}
	if t := s.tiles(b, o.DY, o.QKV, o.DQKV); t > 0 {
		return attentionTilesGrad(b, o, s, t, instances, add)
	}
	if s.streamed(b, o.DY, o.QKV, o.DQKV) {
		return attentionStreamGrad(b, o, s, instances, add)
	}
	if s.sharedGrad() > b.MaxShared {
		return attentionGradFar(b, o, s, instances, add)
	}
	partial, turn := b.Scratch(4*instances*o.Heads), b.Scratch(4)
	return []bind.Launch{{Module: "attention", Kernel: "attention_grad", Grid: bind.Dim3{instances * o.Heads, 1, 1}, Block: bind.Dim3{32 * s.warps, 1, 1}, Shared: s.sharedGrad(),
		Args: []any{b.Addr(o.DQKV), b.Addr(o.DSlope), b.Addr(o.DY), b.Addr(o.P), b.Addr(o.QKV), b.Addr(o.PosX), b.Addr(o.PosY), partial, turn,
			bind.I32(n), bind.I32(d), bind.I32(o.Heads), bind.I32(o.P.Cols()), s.Scale(), s.vectors(b, o.DQKV, o.DY, o.QKV), bind.I32(instances), bind.I32(b.Lanes), bind.I32(b.LaneSize), add}}}, nil
}

func attentionGradFar(b *bind.Binder, o *kernel.AttentionGrad, s headShape, instances int, add uint32) ([]bind.Launch, error) {
	rows := instances * s.heads * s.n
	mean, partial := b.Scratch(4*rows), b.Scratch(4*rows)
	byRows, err := s.far(b, o, "attention_far_rows", instances, s.n, b.Addr(o.DQKV), mean, partial, b.Addr(o.DY), b.Addr(o.P), b.Addr(o.QKV), b.Addr(o.PosX),
		b.Addr(o.PosY), bind.I32(instances), bind.I32(s.n), bind.I32(s.d), bind.I32(s.heads), bind.I32(o.P.Cols()), s.Scale())
	if err != nil {
		return nil, err
	}
	byColumns, err := s.far(b, o, "attention_far_columns", instances, 2*s.n, b.Addr(o.DQKV), mean, b.Addr(o.DY), b.Addr(o.P), b.Addr(o.QKV),
		bind.I32(instances), bind.I32(s.n), bind.I32(s.d), bind.I32(s.heads), bind.I32(o.P.Cols()), s.Scale())
	if err != nil || o.DSlope == nil {
		return []bind.Launch{byRows, byColumns}, err
	}
	slope := bind.Launch{Module: "attention_far", Kernel: "attention_far_slope", Grid: bind.Dim3{1, 1, 1}, Block: bind.Dim3{1024, 1, 1},
		Args: []any{b.Addr(o.DSlope), partial, bind.I32(instances), bind.I32(s.heads), bind.I32(s.n), bind.I32(b.Lanes), bind.I32(b.LaneSize), add}}
	return []bind.Launch{byRows, byColumns, slope}, nil
}
