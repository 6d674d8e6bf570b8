package attention

import (
	"fmt"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/rng"
)

// KeptHeadMost is the most columns of a head that src/bf16_attention.cu reads masks for.
const KeptHeadMost = 16

// Limits of src/bf16_attention.cu.
const (
	bf16HeadMost = 64 // columns of a head
	bf16Group    = 32 // keys taken at a time by the gradient
	bf16Warps    = 4  // warps of a forward block
	bf16Most     = 6  // where rows of narrow heads are so long that shared memory holds few blocks
	// its heads: two warps a head end sooner, so that a card's last blocks idle less of it
	bf16Heads      = 2
	bf16MostShared = 64 << 10
	bf16MostFrom   = 768 // tokens of a row
)

// bf16Head is what the kernels of src/bf16_attention*.cu make of a head: sizes are
// theirs.
type bf16Head struct {
	t, heads, hd int
	rows         int // tokens in whole tiles
	wide         int // columns of a row in shared memory
}

func NewBF16Head(op kernel.Op, t, d, heads int) (bf16Head, error) {
	s := bf16Head{t: t, heads: heads, hd: d / heads, rows: 16 * bind.Ceil(t, 16), wide: 16}
	if s.hd%8 != 0 || s.hd > bf16HeadMost {
		return s, fmt.Errorf("%s: heads of %d columns; in bf16 the GPU takes multiples of 8 up to %d (train in tf32 or fp32)", op.Kind(), s.hd, bf16HeadMost)
	}
	for s.wide < s.hd {
		s.wide *= 2
	}
	return s, nil
}

// name is the kernel for this width, with or without dropout; kept says what it does about masks
// that are in memory.
func (s bf16Head) name(kernel string, drop kernel.Drop, bits *kernel.Tensor, kept string) string {
	if drop.Threshold() != 0 && bits != nil {
		kernel += kept
	} else if drop.Threshold() != 0 {
		kernel += "_drop"
	}
	return fmt.Sprintf("%s_%d", kernel, s.wide)
}

// shared is what a forward block of so many heads needs, sharedGrad a backward one that reads masks
// or not, in bytes.
func (s bf16Head) shared(heads int) int { return 2 * s.wide * (2*heads*s.rows + 16) }

func (s bf16Head) sharedGrad(kept bool) int {
	n := 4*s.t*s.wide + 8*bf16Group*s.wide + 20*s.rows
	if s.wide < bf16HeadMost {
		n += 4 * s.rows * s.wide
	}
	if kept {
		r := s.rows / 16 // tiles, each with masks up to its own pair of groups
		n += 128 * (r/4 + 1) * (r/4*2 + r%4)
	}
	return n
}

// split says how many heads a forward block has: as many as leave room for a few blocks on a
// multiprocessor. Its warps share them out.
func (s bf16Head) split() int {
	each := bf16Heads
	for each > 1 && (s.heads%each != 0 || s.shared(each) > bf16MostShared) {
		each /= 2
	}
	return each
}

// warps are those of a forward block, a multiple of its heads.
func (s bf16Head) warps() int {
	if s.wide == 16 && s.t >= bf16MostFrom {
		return bf16Most
	}
	return bf16Warps
}

// weightArgs are dropArgs for the weights of attention, with the keys of Philox's rounds in the
// seed's place and a word for each bit of the threshold, all ones where it is clear.
func weightArgs(b *bind.Binder, d kernel.Drop) []any {
	args := []any{b.State, uint32(d.Site), d.Scale()}
	for i := range uint32(rng.ShortRounds) {
		args = append(args, uint32(d.Seed)+i*0x9E3779B9, uint32(d.Seed>>32)+i*0xBB67AE85)
	}
	for bit := range 16 {
		args = append(args, d.Threshold()>>bit&1-1)
	}
	return args
}

// compactAll fails unless an op's tensors are all held in bf16 and dense.
func compactAll(b *bind.Binder, op kernel.Op, ts ...*kernel.Tensor) error {
	for _, t := range ts {
		if !b.Compact(t) {
			return fmt.Errorf("%s: %v is in fp32, others in bf16", op.Kind(), t)
		}
	}
	return bind.Dense(op, ts...)
}

// Bf16Causal binds attention; bits is where its masks go, or nil.
func Bf16Causal(b *bind.Binder, o *kernel.CausalAttention, bits *kernel.Tensor) ([]bind.Launch, error) {
	if err := compactAll(b, o, o.Y, o.QKV); err != nil {
		return nil, err
	}
	batch, t, d := o.Dims()
	s, err := NewBF16Head(o, t, d, o.Heads)
	if err != nil {
		return nil, err
	}
	if s.streams(b.MaxShared) {
		return longCausal(b, o, s, bits)
	}
	each := s.split()
	args := append([]any{b.Addr(o.Y), b.Addr(o.LogSum), b.Addr(bits), b.Addr(o.QKV), b.Addr(o.First)}, weightArgs(b, o.Drop)...)
	if s.Short() && o.Heads%ShortHeads == 0 {
		return s.shortCausal(o, bits, b.Portions(batch, t), args), nil
	}
	if s.pipedHolds() && bits != nil && o.Drop.Threshold() != 0 {
		return pipedCausal(b, o, s, batch, args, false), nil
	}
	return []bind.Launch{{Module: "bf16_attention", Kernel: s.name("bf16_attention", o.Drop, bits, "_made"), Grid: bind.Dim3{batch * o.Heads / each, 1, 1}, Block: bind.Dim3{32 * s.warps(), 1, 1},
		Shared: s.shared(each), Args: append(args, bind.I32(t), bind.I32(o.Heads), bind.I32(s.hd), bind.I32(each), headScale(d, o.Heads))}}, nil
}

func Bf16CausalGrad(b *bind.Binder, o *kernel.CausalAttentionGrad, bits *kernel.Tensor) ([]bind.Launch, error) {
	if err := compactAll(b, o, o.DQKV, o.DY, o.Y, o.QKV); err != nil {
		return nil, err
	}
	batch, t, d := o.Dims()
	s, err := NewBF16Head(o, t, d, o.Heads)
	if err != nil {
		return nil, err
	}
	if s.streamsGrad(b.MaxShared) {
		return longCausalGrad(b, o, s, bits)
	}
	if s.Short() {
		args := append([]any{b.Addr(o.DQKV), b.Addr(o.DY), b.Addr(o.Y), b.Addr(o.LogSum), b.Addr(bits), b.Addr(o.QKV), b.Addr(o.First)},
			weightArgs(b, o.Drop)...)
		return s.shortCausalGrad(o, bits, b.Portions(batch, t), args), nil
	}
	var sums uint64 // of the queries' gradients, where they do not fit shared memory
	if s.wide == bf16HeadMost {
		sums = b.Scratch(4 * batch * o.Heads * s.rows * s.wide)
	}
	args := append([]any{b.Addr(o.DQKV), b.Addr(o.DY), b.Addr(o.Y), b.Addr(o.LogSum), b.Addr(bits), b.Addr(o.QKV), b.Addr(o.First), sums}, weightArgs(b, o.Drop)...)
	return []bind.Launch{{Module: "bf16_attention_grad", Kernel: s.name("bf16_attention_grad", o.Drop, bits, "_kept"), Grid: bind.Dim3{batch * o.Heads, 1, 1}, Block: bind.Dim3{64, 1, 1},
		Shared: s.sharedGrad(o.Drop.Threshold() != 0 && bits != nil), Args: append(args, bind.I32(t), bind.I32(o.Heads), bind.I32(s.hd), headScale(d, o.Heads))}}, nil
}
