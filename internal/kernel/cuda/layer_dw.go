package cuda

import "haul/internal/kernel"

// layerTile is a block's tile of DW that src/sequence/layer_dw.cu is built for.
type layerTile struct {
	kernel        string
	rows, columns int
	groups        int // warpgroups
	stage, stages int // rows of a stage
}

// layerTiles are for the four weights of a layer, by N and K: each takes as much of DW as a block's registers hold.
var layerTiles = map[[2]int]layerTile{
	{layerWidth, layerFeed}:      {"layer_dw_128x256", 128, 256, 2, 32, 9},
	{layerFeed, layerWidth}:      {"layer_dw_256x128", 256, 128, 2, 32, 9},
	{3 * layerWidth, layerWidth}: {"layer_dw_384x128", 384, 128, 3, 32, 7},
	{layerWidth, layerWidth}:     {"layer_dw_128x128", 128, 128, 2, 64, 7},
}

// shared is a block's stages and the ones that make sums of columns.
func (t layerTile) shared() int { return t.stages*t.stage*2*(t.rows+t.columns) + 256 }

// layerParts launches the parts of DYᵀ·X and of DY's column sums, as bf16Parts does.
func (b *binder) layerParts(dy, x *kernel.Tensor) (l launch, parts uint64, shares int) {
	rows, n, k := dy.Rows(), dy.Cols(), x.Cols()
	t := layerTiles[[2]int{n, k}]
	count := n / t.rows * (k / t.columns)
	shares = max(1, min(b.sms/count, ceil(rows, t.stage)))
	parts = b.scratch(4 * shares * (n*k + n))
	return launch{module: "layer_dw", kernel: t.kernel, grid: dim3{count * shares, 1, 1}, block: dim3{128 * t.groups, 1, 1}, shared: t.shared(),
		args: []any{parts, b.address(dy), b.address(x), i32(rows), i32(n), i32(k), i32(dy.Stride), i32(x.Stride), i32(shares),
			flag(true)}}, parts, shares
}

// layerGradW is the gradient of a weight that no norm stands before.
type layerGradW struct{ *kernel.LinearGradW }

func (o *layerGradW) bind(b *binder) ([]launch, error) {
	addW, addBias := b.adds(o.DW), b.adds(o.DBias)
	l, parts, shares := b.layerParts(o.DY, o.X)
	return []launch{l, b.bf16SumParts(b.address(o.DW), b.addr(o.DBias), parts, o.DY.Cols(), o.X.Cols(), shares, b.laneSize, addW, addBias)}, nil
}
