package dense

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// bf16Tile is a block's tile of DW that src/bf16_linear_dw.cu is built for.
type bf16Tile struct {
	kernel        string
	rows, columns int
	warps, stages int
	resident      int // blocks a multiprocessor runs at once
}

var bf16Tiles = []bf16Tile{
	{"linear_dw_128x128", 128, 128, 4, 3, 2},
	{"linear_dw_192x128", 192, 128, 8, 5, 1},
	{"linear_dw_256x128", 256, 128, 8, 4, 1},
	{"linear_dw_128x256", 128, 256, 8, 4, 1},
}

// bf16StageRows is the rows of DY and X in one stage.
const bf16StageRows = 64

func (t bf16Tile) count(n, k int) int { return bind.Ceil(n, t.rows) * bind.Ceil(k, t.columns) }
func (t bf16Tile) shared() int        { return t.stages * bf16StageRows * 2 * (t.rows + t.columns) }

// traffic is how many columns of DY and X all tiles read for a row: what the tile is chosen by.
func (t bf16Tile) traffic(n, k int) int { return bind.Ceil(k, t.columns)*n + bind.Ceil(n, t.rows)*k }

// bf16Parts launches the parts of DYᵀ·X and of DY's column sums: n·k and then n numbers for every
// share of the rows. It tells where they are and how many; false where no kernel takes the
// operands.
func bf16Parts(b *bind.Binder, dyT, xT *kernel.Tensor, sums bool) (ls []bind.Launch, parts uint64, shares int, ok bool) {
	rows, n, k := dyT.Rows(), dyT.Cols(), xT.Cols()
	dy, ls, okY := bf16MatrixOf(b, dyT)
	x, more, okX := bf16MatrixOf(b, xT)
	var t bf16Tile
	for _, c := range bf16Tiles {
		if c.shared() <= b.MaxShared && (t.rows == 0 || c.traffic(n, k) < t.traffic(n, k)) {
			t = c
		}
	}
	if !okY || !okX || t.rows == 0 {
		return nil, 0, 0, false
	}
	count := t.count(n, k)
	shares = max(1, min(t.resident*b.SMs/count, bind.Ceil(rows, bf16StageRows)))
	parts = b.Scratch(4 * shares * (n*k + n))
	return append(append(ls, more...), bind.Launch{Module: "bf16_linear_dw", Kernel: t.kernel, Grid: bind.Dim3{count * shares, 1, 1}, Block: bind.Dim3{32 * t.warps, 1, 1},
		Shared: t.shared(), Args: []any{parts, dy.at, x.at, bind.I32(rows), bind.I32(n), bind.I32(k), bind.I32(dy.stride), bind.I32(x.stride), bind.I32(shares), bind.Flag(sums)}}), parts, shares, true
}

// bf16SumParts adds up the parts into lanes `size` floats apart.
func bf16SumParts(b *bind.Binder, dw, dbias, parts uint64, n, k, shares, size int, addW, addBias uint32) bind.Launch {
	const threads = 256
	return bind.Launch{Module: "bf16_linear_dw", Kernel: "linear_dw_sum", Grid: bind.Dim3{bind.Ceil(n*k+n, threads), b.Lanes, 1}, Block: bind.Dim3{threads, 1, 1},
		Args: []any{dw, dbias, parts, bind.I32(n), bind.I32(k), bind.I32(shares), bind.I32(bind.Ceil(shares, b.Lanes)), bind.I32(size), addW, addBias}}
}

// bf16LinearGradW binds DW += DYᵀ·X and DBias: as many shares of the rows as there are blocks, then
// their sum into the lanes.
func bf16LinearGradW(b *bind.Binder, o *kernel.LinearGradW) ([]bind.Launch, error) {
	addW, addBias := b.Adds(o.DW), b.Adds(o.DBias)
	ls, parts, shares, ok := bf16Parts(b, o.DY, o.X, o.DBias != nil)
	if !ok {
		return anyGradW(b, o, addW, addBias), nil
	}
	return append(ls, bf16SumParts(b, b.Address(o.DW), b.Addr(o.DBias), parts, o.DY.Cols(), o.X.Cols(), shares, b.LaneSize, addW, addBias)), nil
}

// anyGradW gives each lane of the gradient a contiguous share of the rows.
func anyGradW(b *bind.Binder, o *kernel.LinearGradW, addW, addBias uint32) []bind.Launch {
	rows, n, k := o.DY.Rows(), o.DY.Cols(), o.X.Cols()
	p := anyProduct{c: o.DW, a: o.DY, b: o.X, m: n, n: k, terms: rows, aRow: 1, aTerm: o.DY.Stride, bTerm: o.X.Stride, bColumn: 1,
		chunk: bind.Ceil(rows, b.Lanes), lanes: b.Lanes, sums: o.DBias, sumsAdded: addBias != 0}
	if addW != 0 {
		p.add = o.DW
	}
	return anyProductOf(b, p)
}
