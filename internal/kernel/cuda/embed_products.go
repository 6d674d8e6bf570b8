package cuda

import "haul/internal/kernel"

// Sizes of src/sequence/embed_products.cu.
const (
	embedWidth   = 128
	embedGroups  = 3
	embedRows    = 64 * embedGroups // of a block's tables
	embedTokens  = 64               // of a stage
	embedBuffers = 3
	embedThreads = 128 * embedGroups
)

// embedsByProducts reports whether a card has the instructions and the tables are of the shape:
// every block reads all tokens' columns, so more tables than two blocks keep are not worth it, and
// a launch has all fields of a token.
func (b *binder) embedsByProducts(o *kernel.EmbedGrad, all int) bool {
	return b.hopper && b.precision == BF16 && o.Index.Cols() <= embedTables && o.DY.Cols() == embedWidth && all <= 2*embedRows && b.vectors(o.DY)
}

// embedProducts multiplies ones and zeros with what comes in. It says how many blocks a lane has.
func (b *binder) embedProducts(o *kernel.EmbedGrad, starts []any, all int) (launch, int) {
	rows, fields, tiles := o.DY.Rows(), o.Index.Cols(), ceil(all, embedRows)
	chunk := ceil(rows, b.lanes)
	blocks := max(1, min(b.sms/(b.lanes*tiles), ceil(chunk, embedTokens)))
	name := "embed_products"
	if b.compact(o.DY) {
		name += "_compact"
	}
	return launch{module: "embed_products", kernel: name, grid: dim3{b.lanes * blocks, tiles, 1},
		block: dim3{embedThreads, 1, 1}, shared: embedBuffers * embedTokens * (2*embedWidth + 4*embedTables),
		args: append(append([]any{b.scratch(4 * b.lanes * blocks * all * embedWidth), b.addr(o.DY), b.addr(o.Index)}, starts...),
			i32(fields), i32(rows), i32(all), i32(chunk), i32(ceil(chunk, blocks)), i32(blocks))}, blocks
}
