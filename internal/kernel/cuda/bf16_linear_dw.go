package cuda

import "haul/internal/kernel"

// bf16Tile is a block's tile of DW that src/dense/bf16_linear_dw.cu is built for.
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

func (t bf16Tile) count(n, k int) int { return ceil(n, t.rows) * ceil(k, t.columns) }
func (t bf16Tile) shared() int        { return t.stages * bf16StageRows * 2 * (t.rows + t.columns) }

// traffic is how many columns of DY and X all tiles read for a row: what the tile is chosen by.
func (t bf16Tile) traffic(n, k int) int { return ceil(k, t.columns)*n + ceil(n, t.rows)*k }

// bf16Parts launches the parts of DYᵀ·X and of DY's column sums: n·k and then n numbers for every
// share of the rows. It tells where they are and how many; false where no kernel takes the
// operands.
func (b *binder) bf16Parts(dyT, xT *kernel.Tensor, sums bool) (ls []launch, parts uint64, shares int, ok bool) {
	rows, n, k := dyT.Rows(), dyT.Cols(), xT.Cols()
	dy, ls, okY := b.bf16Matrix(dyT)
	x, more, okX := b.bf16Matrix(xT)
	var t bf16Tile
	for _, c := range bf16Tiles {
		if c.shared() <= b.maxShared && (t.rows == 0 || c.traffic(n, k) < t.traffic(n, k)) {
			t = c
		}
	}
	if !okY || !okX || t.rows == 0 {
		return nil, 0, 0, false
	}
	count := t.count(n, k)
	shares = max(1, min(t.resident*b.sms/count, ceil(rows, bf16StageRows)))
	parts = b.scratch(4 * shares * (n*k + n))
	return append(append(ls, more...), launch{module: "bf16_linear_dw", kernel: t.kernel, grid: dim3{count * shares, 1, 1}, block: dim3{32 * t.warps, 1, 1},
		shared: t.shared(), args: []any{parts, dy.at, x.at, i32(rows), i32(n), i32(k), i32(dy.stride), i32(x.stride), i32(shares), flag(sums)}}), parts, shares, true
}

// bf16SumParts adds up the parts into lanes `size` floats apart.
func (b *binder) bf16SumParts(dw, dbias, parts uint64, n, k, shares, size int, addW, addBias uint32) launch {
	const threads = 256
	return launch{module: "bf16_linear_dw", kernel: "linear_dw_sum", grid: dim3{ceil(n*k+n, threads), b.lanes, 1}, block: dim3{threads, 1, 1},
		args: []any{dw, dbias, parts, i32(n), i32(k), i32(shares), i32(ceil(shares, b.lanes)), i32(size), addW, addBias}}
}

// bf16LinearGradW binds DW += DYᵀ·X and DBias: as many shares of the rows as there are blocks, then
// their sum into the lanes.
func (b *binder) bf16LinearGradW(o *kernel.LinearGradW) ([]launch, error) {
	addW, addBias := b.adds(o.DW), b.adds(o.DBias)
	ls, parts, shares, ok := b.bf16Parts(o.DY, o.X, o.DBias != nil)
	if !ok {
		return b.anyGradW(o, addW, addBias), nil
	}
	return append(ls, b.bf16SumParts(b.address(o.DW), b.addr(o.DBias), parts, o.DY.Cols(), o.X.Cols(), shares, b.laneSize, addW, addBias)), nil
}

// anyGradW gives each lane of the gradient a contiguous share of the rows.
func (b *binder) anyGradW(o *kernel.LinearGradW, addW, addBias uint32) []launch {
	rows, n, k := o.DY.Rows(), o.DY.Cols(), o.X.Cols()
	p := anyProduct{c: o.DW, a: o.DY, b: o.X, m: n, n: k, terms: rows, aRow: 1, aTerm: o.DY.Stride, bTerm: o.X.Stride, bColumn: 1,
		chunk: ceil(rows, b.lanes), lanes: b.lanes, sums: o.DBias, sumsAdded: addBias != 0}
	if addW != 0 {
		p.add = o.DW
	}
	return b.anyProduct(p)
}
