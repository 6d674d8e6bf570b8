package cuda

import (
	"fmt"

	"haul/internal/kernel"
)

// Limits of src/attention/attention_tiles.cu.
const attentionTilesWarps = 8 // maxWarps, and twelve past 128 nodes

// attentionTileCounts are how many nodes, in eights, its modules are made for.
var attentionTileCounts = []int{4, 7, 13, 16, 17}

// tiles is how many tiles of eight nodes a head has on tensor cores, 0 where they do not serve: in
// fp32, for other heads than of 16 and 32, and past 136 nodes, which attention_stream.go takes.
func (s headShape) tiles(b *binder, ts ...*kernel.Tensor) int {
	if b.precision == FP32 || s.hd != 16 && s.hd != 32 || !b.vectors(ts...) {
		return 0
	}
	for _, t := range attentionTileCounts {
		if s.n <= 8*t && s.tilesSharedGrad(t, s.tilesEach()) <= b.maxShared {
			return t
		}
	}
	return 0
}

// tilesWarps is a head's, 16 rows each; tilesEach how many heads a block takes.
func (s headShape) tilesWarps() int { return ceil(s.n, 16) }

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

func (s headShape) tilesLaunch(kind string, t, each, instances, shared int, args ...any) launch {
	return launch{module: fmt.Sprint("attention_tiles_", 8*t), kernel: fmt.Sprint("attention_tiles_", kind, s.hd),
		grid:  dim3{instances * s.heads / each, 1, 1},
		block: dim3{32 * each * s.tilesWarps(), 1, 1}, shared: shared, args: args}
}

func (b *binder) attentionTiles(o *kernel.Attention, s headShape, t, instances int) launch {
	each := s.tilesEach()
	return s.tilesLaunch("", t, each, instances, s.tilesShared(t, each), b.addr(o.Y), b.addr(o.P), b.addr(o.QKV), b.addr(o.PosX),
		b.addr(o.PosY), b.addr(o.Slope),
		i32(s.n), i32(s.heads), i32(each), s.scale())
}

func (b *binder) attentionTilesGrad(o *kernel.AttentionGrad, s headShape, t, instances int, add uint32) ([]launch, error) {
	if o.Y == nil || o.Slope == nil {
		return nil, fmt.Errorf("%s: in %s it makes the probabilities again, for which it needs the attention's result and slopes",
			o.Kind(), b.precision)
	}
	each := s.tilesEach()
	return []launch{s.tilesLaunch("grad_", t, each, instances, s.tilesSharedGrad(t, each), b.addr(o.DQKV), b.addr(o.DSlope), b.addr(o.DY),
		b.addr(o.Y), b.addr(o.P), b.addr(o.QKV),
		b.addr(o.PosX), b.addr(o.PosY), b.addr(o.Slope), b.scratch(4*instances*s.heads), b.scratch(4), i32(s.n), i32(s.heads), i32(each),
		s.scale(), i32(instances),
		i32(b.lanes), i32(b.laneSize), add)}, dense(o, o.Y)
}
