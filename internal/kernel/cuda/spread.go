package cuda

import (
	"fmt"

	"haul/internal/kernel"
)

// spread copies vectors of 16 bytes where heads are whole ones, else number by number.
func (b *binder) spread(o *kernel.Spread) ([]launch, error) {
	bits, columns, err := b.spreadVector(o, o.Y, o.X, o.Y.Cols()/3/o.Heads)
	if err != nil {
		return nil, err
	}
	return []launch{b.spreadBy(fmt.Sprint("spread_", bits/8*columns), o.Y, o.X, o.Y.Len()/columns, o.Y.Cols()/3/columns, o.Heads, o.KVHeads)}, nil
}

// spreadGrad gives each vector of the gradient to a thread, which adds up the copies. Its kernels
// count columns, whatever a vector has.
func (b *binder) spreadGrad(o *kernel.SpreadGrad) ([]launch, error) {
	bits, columns, err := b.spreadVector(o, o.DX, o.DY, o.DY.Cols()/3/o.Heads)
	if err != nil {
		return nil, err
	}
	return []launch{b.spreadBy(fmt.Sprintf("spread_grad_%d_%d", bits, columns), o.DX, o.DY, o.DX.Len()/columns, o.DY.Cols()/3, o.Heads, o.KVHeads)}, nil
}

// spreadVector is the bits of a number and how many of them a thread has: 16 bytes, if heads so
// wide are whole vectors of them.
func (b *binder) spreadVector(op kernel.Op, to, from *kernel.Tensor, width int) (bits, columns int, err error) {
	if b.compact(to) != b.compact(from) {
		return 0, 0, fmt.Errorf("%s: %v and %v are held in different precisions", op.Kind(), to, from)
	}
	bits, columns = 32, 1
	if b.compact(from) {
		bits = 16
	}
	if n := 128 / bits; width%n == 0 && b.address(to)%16 == 0 && b.address(from)%16 == 0 {
		columns = n
	}
	return bits, columns, dense(op, to, from)
}

// spreadBy is a launch of n threads over rows of d queries, in the kernel's own unit of columns.
func (b *binder) spreadBy(name string, to, from *kernel.Tensor, n, d, heads, kv int) launch {
	l := each(name, n, b.addr(to), b.addr(from), uint32(n), i32(d), i32(d/heads*kv), i32(d/heads), i32(heads/kv))
	l.module = "spread"
	return l
}

// unjoined says that the program trains layers whose ops run one after the other because their
// heads share keys, where layers of their sizes are else joined, and which setting would change
// that; "" where there are none.
func unjoined(p *kernel.Program) string {
	grouped, sized := false, false
	for _, op := range p.PerShard {
		switch o := op.(type) {
		case *kernel.SpreadGrad:
			grouped = grouped || o.DY.Cols() == 3*layerWidth
		case *kernel.Linear:
			sized = sized || o.Pre != nil && product(o, layerWidth, layerFeed)
		}
	}
	if !grouped || !sized {
		return ""
	}
	return "heads that share keys and values are trained op by op here, slower than layers of these sizes without, which are joined; tf_n_kv_head=0 would bring those"
}
