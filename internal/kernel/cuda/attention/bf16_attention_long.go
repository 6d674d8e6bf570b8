package attention

import (
	"fmt"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// Sizes of src/bf16_attention_long*.cu, whose blocks stream a row through shared memory.
const (
	longWarps  = 8   // of a forward block, 16 queries each
	longTile   = 128 // keys brought at a time
	longStages = 3
	longAhead  = 2   // slots of the gradient's ring beyond two for every warp; for heads of 64 columns one less
	statsBlock = 256 // threads
)

// Rows of so many tokens are streamed though a block could hold them: blocks that hold a head wait
// for nothing, but leave a multiprocessor too few warps. In the gradient heads of more columns than
// masks are kept for are streamed from twice as many tokens on.
var LongFrom, LongGradFrom = 1536, 512

// streams and streamsGrad tell whether a row is streamed: one that is long, or that a block cannot
// hold. most is what the card has of shared memory.
func (s bf16Head) streams(most int) bool {
	return s.shared(s.split()) > most || s.t >= LongFrom && s.longShared() <= most
}

func (s bf16Head) streamsGrad(most int) bool {
	from := LongGradFrom
	if s.wide > KeptHeadMost {
		from *= 2
	}
	return s.sharedGrad(s.wide <= KeptHeadMost) > most || s.t >= from && s.longSharedGrad() <= most
}

// StreamsGrad tells whether the gradient of an attention in bf16 is streamed.
func StreamsGrad(b *bind.Binder, o *kernel.CausalAttentionGrad) bool {
	_, t, d := o.Dims()
	s, err := NewBF16Head(o, t, d, o.Heads)
	return err == nil && s.streamsGrad(b.MaxShared)
}

// gradWarps are the warps of a block of the gradient, 32 keys each.
func (s bf16Head) gradWarps() int {
	switch s.wide {
	case 16:
		return 6
	case bf16HeadMost:
		return 4
	}
	return 8
}

// longShared is what a forward block needs, longSharedGrad a backward one, in bytes.
func (s bf16Head) longShared() int { return 4 * longStages * longTile * s.wide }

func (s bf16Head) longSharedGrad() int {
	w, masks := s.gradWarps(), 0
	if s.wide <= KeptHeadMost {
		masks = 128 * w
	}
	slot, ahead := s.chunkBytes()+128*s.wide+masks+16*bind.Ceil(w+1, 2), longAhead
	if s.wide == bf16HeadMost {
		ahead--
	}
	return (2*w+ahead)*slot + 256*w*s.wide
}

// chunkBytes are those of a Chunk: 32 queries, their dy and numbers.
func (s bf16Head) chunkBytes() int { return 128*s.wide + 640 }

// fits fails where a block's shared memory is more than a card has.
func (s bf16Head) fits(op kernel.Op, shared, most int) error {
	if shared > most {
		return fmt.Errorf("%s: heads of %d columns take %d bytes of shared memory, this card has %d (train in tf32 or fp32)", op.Kind(), s.hd, shared, most)
	}
	return nil
}

// longCausal binds attention by the kernels that stream a row.
func longCausal(b *bind.Binder, o *kernel.CausalAttention, s bf16Head, bits *kernel.Tensor) ([]bind.Launch, error) {
	batch, t, d := o.Dims()
	if bits != nil && o.Drop.Threshold() != 0 {
		args := append([]any{b.Addr(o.Y), b.Addr(o.LogSum), b.Addr(bits), b.Addr(o.QKV), b.Addr(o.First)}, weightArgs(b, o.Drop)...)
		return pipedCausal(b, o, s, batch, args, true), s.fits(o, s.pipedShared(), b.MaxShared)
	}
	args := append([]any{b.Addr(o.Y), b.Addr(o.LogSum), b.Addr(o.QKV), b.Addr(o.First)}, weightArgs(b, o.Drop)...)
	return []bind.Launch{{Module: "bf16_attention_long", Kernel: s.name("bf16_attention_long", o.Drop, nil, ""), Grid: bind.Dim3{batch * o.Heads * bind.Ceil(t, 16*longWarps), 1, 1},
		Block: bind.Dim3{32 * longWarps, 1, 1}, Shared: s.longShared(), Args: append(args, bind.I32(t), bind.I32(o.Heads), bind.I32(s.hd), headScale(d, o.Heads))}}, s.fits(o, s.longShared(), b.MaxShared)
}

// longCausalGrad gathers every query's numbers, makes the gradient, and adds up what shares have of
// the queries'.
func longCausalGrad(b *bind.Binder, o *kernel.CausalAttentionGrad, s bf16Head, bits *kernel.Tensor) ([]bind.Launch, error) {
	batch, t, d := o.Dims()
	rows := bf16Group * bind.Ceil(t, bf16Group)
	count := batch * o.Heads * rows
	chunks := b.Scratch(s.chunkBytes() * (count / bf16Group))
	share := s.longGradShare(batch*o.Heads, b.SMs)
	var sums uint64 // of the queries' gradients, between passes and of every share
	if rows > bf16Group*s.gradWarps() {
		sums = b.Scratch(4 * rows * s.wide * share.blocks())
	}
	args := append([]any{b.Addr(o.DQKV), chunks, sums, b.Addr(bits), b.Addr(o.QKV)}, weightArgs(b, o.Drop)...)
	gather := bind.Launch{Module: "bf16_attention_long_grad", Kernel: fmt.Sprintf("bf16_attention_rows_%d", s.wide), Block: bind.Dim3{statsBlock, 1, 1},
		Args: []any{chunks, b.Addr(o.QKV), b.Addr(o.DY), b.Addr(o.Y), b.Addr(o.LogSum), b.Addr(o.First), headScale(d, o.Heads), o.Drop.Scale(), bind.I32(rows / bf16Group), bind.I32(t), bind.I32(o.Heads), bind.I32(s.hd)}}
	if s.wide == 16 { // a chunk of all heads for every block
		gather.Grid, gather.Shared = bind.Dim3{batch * rows / bf16Group, 1, 1}, 4*(bf16Group+1)*o.Heads
	} else {
		gather.Grid, gather.Args = bind.Dim3{bind.Ceil(count, statsBlock), 1, 1}, append(gather.Args, bind.I32(count))
	}
	out := []bind.Launch{gather,
		{Module: "bf16_attention_long_grad", Kernel: s.name("bf16_attention_long_grad", o.Drop, bits, "_kept"), Grid: bind.Dim3{share.blocks(), 1, 1},
			Block: bind.Dim3{32 * s.gradWarps(), 1, 1}, Shared: s.longSharedGrad(),
			Args: append(args, bind.I32(t), bind.I32(o.Heads), bind.I32(s.hd), bind.I32(share.wholes), bind.I32(share.rest), bind.I32(share.shares), headScale(d, o.Heads))},
	}
	if share.rest > 0 {
		tiles := share.rest * bind.Ceil(t, 16)
		out = append(out, bind.Launch{Module: "bf16_attention_long_grad", Kernel: fmt.Sprintf("bf16_attention_long_queries_%d", s.wide), Grid: bind.Dim3{bind.Ceil(tiles, statsBlock/32), 1, 1},
			Block: bind.Dim3{statsBlock, 1, 1},
			Args:  []any{b.Addr(o.DQKV), chunks, sums, headScale(d, o.Heads) * o.Drop.Scale(), bind.I32(t), bind.I32(o.Heads), bind.I32(s.hd), bind.I32(share.wholes), bind.I32(share.rest), bind.I32(share.shares), bind.I32(s.gradWarps()), bind.I32(tiles)}})
	}
	return out, s.fits(o, s.longSharedGrad(), b.MaxShared)
}

// LongBlocks are the shares of heads for every multiprocessor, one after the other, where heads
// have the passes for it; 0: a block for every head.
var LongBlocks = 8

// longGradShare is how heads are shared out among the gradient's blocks. Blocks for whole heads
// add up their queries' gradients themselves, and there are as many as fill the card a whole
// number of times. Those of the rest are small, so that they end together; where the rest fills
// three quarters of the card, that gains less than it costs.
func (s bf16Head) longGradShare(heads, sms int) shareOut {
	slots := sms
	if s.wide <= KeptHeadMost {
		slots *= 2
	}
	rest := heads % slots
	if rest == 0 || rest < heads && 4*rest > 3*slots {
		return shareOut{heads, 0, 1}
	}
	shares := min(bind.Ceil(LongBlocks*sms, rest), bind.Ceil(s.t, bf16Group*s.gradWarps()))
	if shares < 2 {
		return shareOut{heads, 0, 1}
	}
	return shareOut{heads - rest, rest, shares}
}
