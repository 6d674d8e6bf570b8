package attention

import (
	"fmt"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// Limits of src/attention_tiles.cu.
const attentionTilesWarps = 8 // maxWarps, and twelve past 128 nodes

// attentionTileCounts are how many nodes, in eights, its modules are made for.
var attentionTileCounts = []int{4, 7, 13, 16, 17}

// tiles is how many tiles of eight nodes a head has on tensor cores, 0 where they do not serve: in
// fp32, for other heads than of 16 and 32, and past 136 nodes, which attention_stream.go takes.
func (s headShape) tiles(b *bind.Binder, ts ...*kernel.Tensor) int {
	if b.Precision == bind.FP32 || s.hd != 16 && s.hd != 32 || !b.Vectors(ts...) {
		return 0
	}
	for _, t := range attentionTileCounts {
		if s.n <= 8*t && s.tilesSharedGrad(t, s.tilesEach()) <= b.MaxShared {
			return t
		}
	}
	return 0
}

// tilesWarps is a head's, 16 rows each; tilesEach how many heads a block takes.
func (s headShape) tilesWarps() int { return bind.Ceil(s.n, 16) }

func (s headShape) tilesEach() int {
	each := 1
	for e := 1; e <= s.heads; e++ {
		if s.heads%e == 0 && e*s.tilesWarps() <= attentionTilesWarps {
			each = e
		}
	}
	return each
}

// tilesShared is what the forward kernel needs, tilesSharedGrad the backward one, in bytes.
func (s headShape) tilesShared(t, each int) int { return 4 * (each*2*8*t*s.hd + 2*8*t) }

func (s headShape) tilesSharedGrad(t, each int) int {
	rows, warps := 8*t, attentionTilesWarps
	if rows > 128 {
		warps = 12
	}
	return 4 * (2*rows + warps + each*(3*rows*s.hd+rows*(rows+4)+2*rows))
}

func (s headShape) tilesLaunch(kind string, t, each, instances, shared int, args ...any) bind.Launch {
	return bind.Launch{Module: fmt.Sprint("attention_tiles_", 8*t), Kernel: fmt.Sprint("attention_tiles_", kind, s.hd),
		Grid:  bind.Dim3{instances * s.heads / each, 1, 1},
		Block: bind.Dim3{32 * each * s.tilesWarps(), 1, 1}, Shared: shared, Args: args}
}

func attentionTiles(b *bind.Binder, o *kernel.Attention, s headShape, t, instances int) bind.Launch {
	each := s.tilesEach()
	return s.tilesLaunch("", t, each, instances, s.tilesShared(t, each), b.Addr(o.Y), b.Addr(o.P), b.Addr(o.QKV), b.Addr(o.PosX),
		b.Addr(o.PosY), b.Addr(o.Slope),
		bind.I32(s.n), bind.I32(s.heads), bind.I32(each), s.Scale())
}

func attentionTilesGrad(b *bind.Binder, o *kernel.AttentionGrad, s headShape, t, instances int, add uint32) ([]bind.Launch, error) {
	if o.Y == nil || o.Slope == nil {
		return nil, fmt.Errorf("%s: in %s it makes the probabilities again, for which it needs the attention's result and slopes",
			o.Kind(), b.Precision)
	}
	each := s.tilesEach()
	return []bind.Launch{s.tilesLaunch("grad_", t, each, instances, s.tilesSharedGrad(t, each), b.Addr(o.DQKV), b.Addr(o.DSlope), b.Addr(o.DY),
		b.Addr(o.Y), b.Addr(o.P), b.Addr(o.QKV),
		b.Addr(o.PosX), b.Addr(o.PosY), b.Addr(o.Slope), b.Scratch(4*instances*s.heads), b.Scratch(4), bind.I32(s.n), bind.I32(s.heads), bind.I32(each),
		s.Scale(), bind.I32(instances),
		bind.I32(b.Lanes), bind.I32(b.LaneSize), add)}, bind.Dense(o, o.Y)
}
