package attention

import (
	"fmt"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

const streamStep = 64 // SPAN of src/attention_stream.cu

// streamed reports whether a head's keys pass through shared memory a few at a time, as in
// src/attention_stream.cu: past the nodes of attention_tiles.cu, for heads of 16 and 32,
// not in fp32.
func (s headShape) streamed(b *bind.Binder, ts ...*kernel.Tensor) bool {
	return b.Precision != bind.FP32 && (s.hd == 16 || s.hd == 32) && b.Vectors(ts...)
}

// streamRanges are the blocks that share a head's nodes, and a block's warps of sixteen.
func (s headShape) streamRanges() (ranges, warps int) {
	tiles := bind.Ceil(s.n, 16)
	ranges = bind.Ceil(tiles, attentionTilesWarps)
	return ranges, bind.Ceil(tiles, ranges)
}

// streamSpan is how many nodes lie in shared memory at a time: all, up to what two blocks of a
// multiprocessor have room for.
func (s headShape) streamSpan() int { return min(streamStep*bind.Ceil(s.n, streamStep), 4*streamStep) }

func (s headShape) streamLaunch(kind string, instances int, args ...any) bind.Launch {
	ranges, warps := s.streamRanges()
	span := s.streamSpan()
	return bind.Launch{Module: "attention_stream", Kernel: fmt.Sprint("attention_stream_", kind, s.hd), Grid: bind.Dim3{instances * s.heads, ranges, 1},
		Block: bind.Dim3{32 * warps, 1, 1}, Shared: 4 * span * (2*s.hd + 4), Args: append(args, bind.I32(span))}
}

func attentionStream(b *bind.Binder, o *kernel.Attention, s headShape, instances int) bind.Launch {
	return s.streamLaunch("", instances, b.Addr(o.Y), b.Addr(o.P), b.Addr(o.QKV), b.Addr(o.PosX), b.Addr(o.PosY), b.Addr(o.Slope), bind.I32(s.n), bind.I32(s.heads),
		s.Scale())
}

func attentionStreamGrad(b *bind.Binder, o *kernel.AttentionGrad, s headShape, instances int, add uint32) ([]bind.Launch, error) {
	if o.Y == nil || o.Slope == nil {
		return nil, fmt.Errorf("%s: in %s it makes the probabilities again, for which it needs the attention's result and slopes",
			o.Kind(), b.Precision)
	}
	ranges, _ := s.streamRanges()
	from := []any{b.Addr(o.DY), b.Addr(o.Y), b.Addr(o.P), b.Addr(o.QKV), b.Addr(o.PosX), b.Addr(o.PosY), b.Addr(o.Slope)}
	columns := append(append([]any{b.Addr(o.DQKV), b.Addr(o.DSlope)}, from...), b.Scratch(4*instances*s.heads*ranges), b.Scratch(4), bind.I32(s.n), bind.I32(s.heads),
		s.Scale(), bind.I32(instances), bind.I32(ranges), bind.I32(b.Lanes), bind.I32(b.LaneSize), add)
	rows := append(append([]any{b.Addr(o.DQKV)}, from...), bind.I32(s.n), bind.I32(s.heads), s.Scale())
	return []bind.Launch{s.streamLaunch("columns_", instances, columns...), s.streamLaunch("rows_", instances, rows...)}, bind.Dense(o, o.Y)
}
