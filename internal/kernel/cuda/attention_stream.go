package cuda

import (
	"fmt"

	"haul/internal/kernel"
)

const streamStep = 64 // SPAN of src/attention/attention_stream.cu

// streamed reports whether a head's keys pass through shared memory a few at a time, as in
// src/attention/attention_stream.cu: past the nodes of attention_tiles.cu, for heads of 16 and 32,
// not in fp32.
func (s headShape) streamed(b *binder, ts ...*kernel.Tensor) bool {
	return b.precision != FP32 && (s.hd == 16 || s.hd == 32) && b.vectors(ts...)
}

// streamRanges are the blocks that share a head's nodes, and a block's warps of sixteen.
func (s headShape) streamRanges() (ranges, warps int) {
	tiles := ceil(s.n, 16)
	ranges = ceil(tiles, attentionTilesWarps)
	return ranges, ceil(tiles, ranges)
}

// streamSpan is how many nodes lie in shared memory at a time: all, up to what two blocks of a
// multiprocessor have room for.
func (s headShape) streamSpan() int { return min(streamStep*ceil(s.n, streamStep), 4*streamStep) }

func (s headShape) streamLaunch(kind string, instances int, args ...any) launch {
	ranges, warps := s.streamRanges()
	span := s.streamSpan()
	return launch{module: "attention_stream", kernel: fmt.Sprint("attention_stream_", kind, s.hd), grid: dim3{instances * s.heads, ranges, 1},
		block: dim3{32 * warps, 1, 1}, shared: 4 * span * (2*s.hd + 4), args: append(args, i32(span))}
}

func (b *binder) attentionStream(o *kernel.Attention, s headShape, instances int) launch {
	return s.streamLaunch("", instances, b.addr(o.Y), b.addr(o.P), b.addr(o.QKV), b.addr(o.PosX), b.addr(o.PosY), b.addr(o.Slope), i32(s.n), i32(s.heads),
		s.scale())
}

func (b *binder) attentionStreamGrad(o *kernel.AttentionGrad, s headShape, instances int, add uint32) ([]launch, error) {
	if o.Y == nil || o.Slope == nil {
		return nil, fmt.Errorf("%s: in %s it makes the probabilities again, for which it needs the attention's result and slopes",
			o.Kind(), b.precision)
	}
	ranges, _ := s.streamRanges()
	from := []any{b.addr(o.DY), b.addr(o.Y), b.addr(o.P), b.addr(o.QKV), b.addr(o.PosX), b.addr(o.PosY), b.addr(o.Slope)}
	columns := append(append([]any{b.addr(o.DQKV), b.addr(o.DSlope)}, from...), b.scratch(4*instances*s.heads*ranges), b.scratch(4), i32(s.n), i32(s.heads),
		s.scale(), i32(instances), i32(ranges), i32(b.lanes), i32(b.laneSize), add)
	rows := append(append([]any{b.addr(o.DQKV)}, from...), i32(s.n), i32(s.heads), s.scale())
	return []launch{s.streamLaunch("columns_", instances, columns...), s.streamLaunch("rows_", instances, rows...)}, dense(o, o.Y)
}
