package sequence

import (
	"fmt"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// spread copies vectors of 16 bytes where heads are whole ones, else number by number.
func spread(b *bind.Binder, o *kernel.Spread) ([]bind.Launch, error) {
	bits, columns, err := spreadVector(b, o, o.Y, o.X, o.Y.Cols()/3/o.Heads)
	if err != nil {
		return nil, err
	}
	return []bind.Launch{spreadBy(b, fmt.Sprint("spread_", bits/8*columns), o.Y, o.X, o.Y.Len()/columns, o.Y.Cols()/3/columns, o.Heads, o.KVHeads)}, nil
}

// spreadGrad gives each vector of the gradient to a thread, which adds up the copies. Its kernels
// count columns, whatever a vector has.
func spreadGrad(b *bind.Binder, o *kernel.SpreadGrad) ([]bind.Launch, error) {
	bits, columns, err := spreadVector(b, o, o.DX, o.DY, o.DY.Cols()/3/o.Heads)
	if err != nil {
		return nil, err
	}
	return []bind.Launch{spreadBy(b, fmt.Sprintf("spread_grad_%d_%d", bits, columns), o.DX, o.DY, o.DX.Len()/columns, o.DY.Cols()/3, o.Heads, o.KVHeads)}, nil
}

// spreadVector is the bits of a number and how many of them a thread has: 16 bytes, if heads so
// wide are whole vectors of them.
func spreadVector(b *bind.Binder, op kernel.Op, to, from *kernel.Tensor, width int) (bits, columns int, err error) {
	if b.Compact(to) != b.Compact(from) {
		return 0, 0, fmt.Errorf("%s: %v and %v are held in different precisions", op.Kind(), to, from)
	}
	bits, columns = 32, 1
	if b.Compact(from) {
		bits = 16
	}
	if n := 128 / bits; width%n == 0 && b.Address(to)%16 == 0 && b.Address(from)%16 == 0 {
		columns = n
	}
	return bits, columns, bind.Dense(op, to, from)
}

// spreadBy is a launch of n threads over rows of d queries, in the kernel's own unit of columns.
func spreadBy(b *bind.Binder, name string, to, from *kernel.Tensor, n, d, heads, kv int) bind.Launch {
	l := bind.Each(name, n, b.Addr(to), b.Addr(from), uint32(n), bind.I32(d), bind.I32(d/heads*kv), bind.I32(d/heads), bind.I32(heads/kv))
	l.Module = "spread"
	return l
}
