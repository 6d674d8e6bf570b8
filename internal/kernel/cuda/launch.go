package cuda

import (
	"fmt"

	"haul/internal/kernel"
)

// What the binders of all ops share: a launch, what a kernel asks of a tensor before it may read it
// by vectors or as one piece, and arguments in the widths that kernels take.

// dim3 is a grid or a block: x, y, z.
type dim3 [3]int

// launch is one kernel of an op, with its arguments by value: uint64 device addresses, int32,
// uint32, uint64, float32. The kernel's parameter list must have the same widths in the same order.
type launch struct {
	module, kernel string
	grid, block    dim3
	shared         int // bytes of dynamic shared memory
	args           []any
	// it need not wait for the op's launch before it, only for what that one waited for
	beside bool
	// its blocks go before all others that could start: few multiprocessors are busy with it for long
	first bool
	// its blocks start only when what it waits for has ended, where those of others would sit and wait
	// on a multiprocessor
	after bool
	// only ops over the flat buffers read what it leaves, and no op adds to it (bindAll): no other
	// followers need wait for it
	aside bool
	// of the batch it does this part, from 1; 0: all. It waits for that part alone of ops in parts
	part int
}

// key names the kernel among all.
func (l *launch) key() string { return l.module + "." + l.kernel }

// dense fails for a tensor whose rows have gaps, which no op but a linear layer expects.
func dense(op kernel.Op, ts ...*kernel.Tensor) error {
	for _, t := range ts {
		if t != nil && !t.Dense() {
			return fmt.Errorf("%s: %v is a view of columns", op.Kind(), t)
		}
	}
	return nil
}

// vectors reports whether every tensor's rows are made of 16-byte vectors at aligned places; absent
// tensors are.
func (b *binder) vectors(ts ...*kernel.Tensor) bool {
	for _, t := range ts {
		if t != nil && (b.address(t)%16 != 0 || t.Stride%4 != 0 || t.Cols()%4 != 0) {
			return false
		}
	}
	return true
}

// fresh reports whether t's gradient is written here for the first time in the step, and marks it.
// Later writers add.
func (b *binder) fresh(t *kernel.Tensor) bool {
	first := !b.seen[t.Offset]
	b.seen[t.Offset], b.again = true, b.again || !first
	return first
}

// adds is a kernel's flag for a gradient that an earlier op of the step has written already.
func (b *binder) adds(t *kernel.Tensor) uint32 {
	if t == nil {
		return 0
	}
	return flag(!b.fresh(t))
}

// addr is address for tensors that may be absent: 0 then.
func (b *binder) addr(t *kernel.Tensor) uint64 {
	if t == nil {
		return 0
	}
	return b.address(t)
}

// stride is a tensor's, 0 where it is absent.
func stride(t *kernel.Tensor) int {
	if t == nil {
		return 0
	}
	return t.Stride
}

func flag(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

func i32(n int) int32 { return int32(n) }

func ceil(a, b int) int { return (a + b - 1) / b }
