package bind

import (
	"fmt"

	"haul/internal/kernel"
)

// What the binders of all ops share: a launch, what a kernel asks of a tensor before it may read it
// by vectors or as one piece, and arguments in the widths that kernels take.

// Dim3 is a grid or a block: x, y, z.
type Dim3 [3]int

// Launch is one kernel of an op, with its arguments by value: uint64 device addresses, int32,
// uint32, uint64, float32. The kernel's parameter list must have the same widths in the same order.
type Launch struct {
	Module, Kernel string
	Grid, Block    Dim3
	Shared         int // bytes of dynamic shared memory
	Args           []any
	// it need not wait for the op's launch before it, only for what that one waited for
	Beside bool
	// its blocks go before all others that could start: few multiprocessors are busy with it for long
	First bool
	// its blocks start only when what it waits for has ended, where those of others would sit and wait
	// on a multiprocessor
	After bool
	// only ops over the flat buffers read what it leaves, and no op adds to it (bindAll): no other
	// followers need wait for it
	Aside bool
	// of the batch it does this part, from 1; 0: all. It waits for that part alone of ops in parts
	Part int
}

// Key names the kernel among all.
func (l *Launch) Key() string { return l.Module + "." + l.Kernel }

// Dense fails for a tensor whose rows have gaps, which no op but a linear layer expects.
func Dense(op kernel.Op, ts ...*kernel.Tensor) error {
	for _, t := range ts {
		if t != nil && !t.Dense() {
			return fmt.Errorf("%s: %v is a view of columns", op.Kind(), t)
		}
	}
	return nil
}

// Vectors reports whether every tensor's rows are made of 16-byte vectors at aligned places; absent
// tensors are.
func (b *Binder) Vectors(ts ...*kernel.Tensor) bool {
	for _, t := range ts {
		if t != nil && (b.Address(t)%16 != 0 || t.Stride%4 != 0 || t.Cols()%4 != 0) {
			return false
		}
	}
	return true
}

// Fresh reports whether t's gradient is written here for the first time in the step, and marks it.
// Later writers add.
func (b *Binder) Fresh(t *kernel.Tensor) bool {
	first := !b.Seen[t.Offset]
	b.Seen[t.Offset], b.Again = true, b.Again || !first
	return first
}

// Adds is a kernel's flag for a gradient that an earlier op of the step has written already.
func (b *Binder) Adds(t *kernel.Tensor) uint32 {
	if t == nil {
		return 0
	}
	return Flag(!b.Fresh(t))
}

// Addr is address for tensors that may be absent: 0 then.
func (b *Binder) Addr(t *kernel.Tensor) uint64 {
	if t == nil {
		return 0
	}
	return b.Address(t)
}

// Stride is a tensor's, 0 where it is absent.
func Stride(t *kernel.Tensor) int {
	if t == nil {
		return 0
	}
	return t.Stride
}

func Flag(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

func I32(n int) int32 { return int32(n) }

func Ceil(a, b int) int { return (a + b - 1) / b }

// Each launches one thread for each of n pieces of work.
func Each(kernel string, n int, args ...any) Launch {
	const threads = 256
	return Launch{Module: "elementwise", Kernel: kernel, Grid: Dim3{Ceil(n, threads), 1, 1}, Block: Dim3{threads, 1, 1}, Args: args}
}

// DropArgs are what a kernel needs to make a mask: state, seed, site, threshold, scale.
func (b *Binder) DropArgs(d kernel.Drop) []any {
	return []any{b.State, d.Seed, uint32(d.Site), d.Threshold(), d.Scale()}
}

// Sizes of the kernels that hold all rows of an instance in one tile of tensor cores.
const (
	NearNodes    = 16 // rows of src/common/rows16.cuh and of attention/src/attention_near.cu
	SixteenHeads = 4  // heads that a block of them takes, a pair of warps each
)
